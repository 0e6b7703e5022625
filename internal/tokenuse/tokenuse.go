// Package tokenuse keeps when tokens were last used: a table of the activity database, which nothing else reads
// or writes.
package tokenuse

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/uptrace/bun"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/sweep"
)

// Kinds of tokens.
const (
	KindAccessToken  = "access_token"
	KindBotToken     = "bot_token"
	KindTriggerToken = "trigger_token"
)

// Reader knows when tokens were last used; a Store does.
type Reader interface {
	// LastUsed returns when each of the tokens of a kind was last used, by their UIDs. It has no entry for what was never used.
	LastUsed(ctx context.Context, kind string, uids ...types.UID) (map[types.UID]time.Time, error)
}

// LastUsed returns when each of the tokens of a kind was last used, by their UIDs.
func LastUsed[T metav1.Object](ctx context.Context, r Reader, kind string, tokens ...T) (map[types.UID]time.Time, error) {
	uids := make([]types.UID, len(tokens))
	for i, t := range tokens {
		uids[i] = t.GetUID()
	}
	return r.LastUsed(ctx, kind, uids...)
}

// patience is the time for which Known waits.
const patience = 2 * time.Second

// Known is LastUsed for those who show a token: they can do without. It waits two seconds at most for the database, and returns nil if that
// cannot be read.
func Known[T metav1.Object](ctx context.Context, r Reader, kind string, tokens ...T) map[types.UID]time.Time {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	used, err := LastUsed(ctx, r, kind, tokens...)
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to read the last uses of tokens", "kind", kind)
		return nil
	}
	return used
}

//go:embed migrations
var migrations embed.FS

// Migrations returns the migrations of the table, for database.Open.
func Migrations() fs.FS { return migrations }

// use is a row: when a token was last used.
type use struct {
	bun.BaseModel `bun:"table:uses"`

	SubjectKind string    `bun:"subject_kind,pk"`
	SubjectID   int64     `bun:"subject_id,pk"`
	SubjectUID  types.UID `bun:"subject_uid,pk"`
	LastUsed    time.Time `bun:"last_used"`
}

// atOnce is for how many tokens one query reads.
const atOnce = 1000

// Store is the uses of a database, for use by several goroutines.
type Store struct{ db *database.DB }

// New returns the uses of a database that was opened with Migrations.
func New(db *database.DB) *Store { return &Store{db: db} }

// Use notes that a token was used at a time. An earlier time never replaces a later one.
func (s *Store) Use(ctx context.Context, token database.Subject, at time.Time) error {
	row := &use{SubjectKind: token.Kind, SubjectID: token.ID, SubjectUID: token.UID, LastUsed: at}
	return s.db.Write(ctx, fmt.Sprintf("noting the use of %s", token), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewInsert().Model(row).
			On("CONFLICT (subject_kind, subject_id, subject_uid) DO UPDATE").Set("last_used = EXCLUDED.last_used").
			Where("?TableAlias.last_used < EXCLUDED.last_used").Exec(ctx)
		return err
	})
}

var _ Reader = (*Store)(nil)

// LastUsed implements Reader.
func (s *Store) LastUsed(ctx context.Context, kind string, uids ...types.UID) (map[types.UID]time.Time, error) {
	last := make(map[types.UID]time.Time, len(uids))
	for some := range slices.Chunk(uids, atOnce) {
		var rows []use
		err := s.db.Read(ctx, fmt.Sprintf("reading when each %s was last used", kind), func(ctx context.Context, db bun.IDB) error {
			return db.NewSelect().Model(&rows).Where("subject_kind = ?", kind).Where("subject_uid IN ?", bun.Tuple(some)).Scan(ctx)
		})
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			last[row.SubjectUID] = row.LastUsed.UTC()
		}
	}
	return last, nil
}

// Remove forgets that a token was ever used, as when it is deleted.
func (s *Store) Remove(ctx context.Context, token database.Subject) error {
	return s.db.Write(ctx, fmt.Sprintf("removing the uses of %s", token), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewDelete().Model(&use{SubjectKind: token.Kind, SubjectID: token.ID, SubjectUID: token.UID}).WherePK().Exec(ctx)
		return err
	})
}

// Subjects are the rows of a Store, for a sweep.Sweeper.
func (s *Store) Subjects() sweep.Rows { return subjects{s} }

type subjects struct{ *Store }

// After implements sweep.Rows.
func (s subjects) After(ctx context.Context, after database.Subject) ([]database.Subject, error) {
	return sweep.Subjects(ctx, s.db, (*use)(nil), after)
}
