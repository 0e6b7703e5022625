package watermark

import (
	"context"
	"embed"
	"io/fs"
	"time"

	"github.com/uptrace/bun"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/internal/database"
)

//go:embed migrations
var migrations embed.FS

// Migrations returns the migrations of the table of a Written, for database.Open.
func Migrations() fs.FS { return migrations }

// written is a row: the newest revision of a kind that a server has written.
type written struct {
	bun.BaseModel `bun:"table:written"`

	Server    string    `bun:"server,pk"`
	Kind      string    `bun:"kind,pk"`
	Revision  int64     `bun:"revision"`
	WrittenAt time.Time `bun:"written_at"`
}

// forgetServer is after what time the rows of a server that writes nothing any more are removed.
const forgetServer = time.Hour

// Written is a Store in the activity database.
type Written struct {
	db    *database.DB
	clock clock.PassiveClock
}

// NewWritten returns a Store in a database that was opened with Migrations.
func NewWritten(db *database.DB, c clock.PassiveClock) *Written { return &Written{db: db, clock: c} }

// Wrote implements Store.
func (w *Written) Wrote(ctx context.Context, server string, revisions map[string]int64) error {
	now := w.clock.Now().UTC()
	rows := make([]written, 0, len(revisions))
	for kind, revision := range revisions {
		rows = append(rows, written{Server: server, Kind: kind, Revision: revision, WrittenAt: now})
	}
	return w.db.Write(ctx, "recording writes", func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewInsert().Model(&rows).On("CONFLICT (server, kind) DO UPDATE").
			Set("revision = EXCLUDED.revision").Set("written_at = EXCLUDED.written_at").Exec(ctx)
		return err
	})
}

// WrittenByOthers implements Store.
func (w *Written) WrittenByOthers(ctx context.Context, server string, while time.Duration) (map[string]int64, error) {
	var rows []written
	err := w.db.Read(ctx, "reading what other servers have written", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model(&rows).Column("kind").ColumnExpr("MAX(revision) AS revision").
			Where("server <> ?", server).Where("written_at > ?", w.clock.Now().Add(-while).UTC()).Group("kind").Scan(ctx)
	})
	if err != nil {
		return nil, err
	}
	revisions := make(map[string]int64, len(rows))
	for _, row := range rows {
		revisions[row.Kind] = row.Revision
	}
	return revisions, nil
}

// Forget removes what is noted of servers that have written nothing for an hour.
func (w *Written) Forget(ctx context.Context) error {
	return w.db.Write(ctx, "removing servers that no longer exist", func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewDelete().Model((*written)(nil)).Where("written_at < ?", w.clock.Now().Add(-forgetServer).UTC()).Exec(ctx)
		return err
	})
}
