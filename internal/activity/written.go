package activity

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

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

// Wrote notes the newest revision of each kind that a server has written.
func (s *Store) Wrote(ctx context.Context, server string, revisions map[string]int64) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	now := s.clock.Now().UTC()
	rows := make([]written, 0, len(revisions))
	for kind, revision := range revisions {
		rows = append(rows, written{Server: server, Kind: kind, Revision: revision, WrittenAt: now})
	}
	_, err := s.write.NewInsert().Model(&rows).On("CONFLICT (server, kind) DO UPDATE").
		Set("revision = EXCLUDED.revision").Set("written_at = EXCLUDED.written_at").Exec(ctx)
	if err != nil {
		return failed(ctx, "noting what was written", err)
	}
	return nil
}

// WrittenByOthers returns the newest revision of each kind that servers other than this one have written in the last while.
func (s *Store) WrittenByOthers(ctx context.Context, server string, while time.Duration) (map[string]int64, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	var rows []written
	err := s.read.NewSelect().Model(&rows).Column("kind").ColumnExpr("MAX(revision) AS revision").
		Where("server <> ?", server).Where("written_at > ?", s.clock.Now().Add(-while).UTC()).Group("kind").Scan(ctx)
	if err != nil {
		return nil, failed(ctx, "reading what other servers have written", err)
	}
	revisions := make(map[string]int64, len(rows))
	for _, row := range rows {
		revisions[row.Kind] = row.Revision
	}
	return revisions, nil
}

// ForgetServers removes what is noted of servers that have written nothing for an hour.
func (s *Store) ForgetServers(ctx context.Context) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	_, err := s.write.NewDelete().Model((*written)(nil)).Where("written_at < ?", s.clock.Now().Add(-forgetServer).UTC()).Exec(ctx)
	if err != nil {
		return failed(ctx, "forgetting servers that are gone", err)
	}
	return nil
}
