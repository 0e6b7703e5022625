// Package tokenuse keeps when tokens were last used, such as trigger tokens: a table of the activity database, which nothing else reads
// or writes.
package tokenuse

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/sweep"
)

// KindTriggerToken is the kind of trigger tokens.
const KindTriggerToken = "trigger_token"

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

const (
	// interval is how much later a use has to be than the last one that this process wrote.
	interval = time.Minute
	// maxMarks is of how many tokens this process knows what it wrote.
	maxMarks = 16384
)

// Store is the uses of a database, for use by several goroutines.
type Store struct {
	db    *database.DB
	marks marks
}

// New returns the uses of a database that was opened with Migrations.
func New(db *database.DB) *Store { return &Store{db: db, marks: newMarks()} }

// Use notes that a token was used at a time. An earlier time never replaces a later one.
//
// It may be called on every use: one that follows another within a minute is not written, so what is read may be up to a
// minute behind.
func (s *Store) Use(ctx context.Context, token database.Subject, at time.Time) error {
	if !s.marks.mark(token, at) {
		return nil
	}
	row := &use{SubjectKind: token.Kind, SubjectID: token.ID, SubjectUID: token.UID, LastUsed: at}
	err := s.db.Write(ctx, fmt.Sprintf("noting the use of %s", token), func(ctx context.Context, db bun.IDB) error {
		return note(ctx, db, row)
	})
	if err != nil {
		s.marks.forget(token)
	}
	return err
}

// note writes a use, unless a later one is written.
func note(ctx context.Context, db bun.IDB, row *use) error {
	_, err := db.NewInsert().Model(row).
		On("CONFLICT (subject_kind, subject_id, subject_uid) DO UPDATE").Set("last_used = EXCLUDED.last_used").
		Where("?TableAlias.last_used < EXCLUDED.last_used").Exec(ctx)
	return err
}

// LastUsed returns when each of the tokens of a kind was last used, by their UIDs; what was never used is not in it.
func (s *Store) LastUsed(ctx context.Context, kind string, uids ...types.UID) (map[types.UID]time.Time, error) {
	last := make(map[types.UID]time.Time, len(uids))
	if len(uids) == 0 {
		return last, nil
	}
	var rows []use
	err := s.db.Read(ctx, fmt.Sprintf("reading when each %s was last used", kind), func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model(&rows).Where("subject_kind = ?", kind).Where("subject_uid IN ?", bun.Tuple(uids)).
			Where("subject_uid <> ''").Scan(ctx)
	})
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		last[row.SubjectUID] = row.LastUsed.UTC()
	}
	return last, nil
}

// Remove forgets that a token was ever used, as when it is deleted.
func (s *Store) Remove(ctx context.Context, token database.Subject) error {
	defer s.db.Afterwards(ctx, func() { s.marks.forget(token) })
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

// FillIn implements sweep.Rows.
func (s subjects) FillIn(ctx context.Context, token database.Subject, o sweep.Known) error {
	return s.db.Atomically(ctx, fmt.Sprintf("filling in the UID of %s", token), func(ctx context.Context, tx bun.IDB) error {
		var rows []use
		_, err := tx.NewDelete().Model(&rows).Where("subject_kind = ?", token.Kind).Where("subject_id = ?", token.ID).
			Where("subject_uid = ''").Where("last_used >= ?", o.Created).Returning("*").Exec(ctx)
		for i := range rows {
			rows[i].SubjectUID = o.UID
			if err == nil {
				err = note(ctx, tx, &rows[i])
			}
		}
		return err
	})
}

// marks remembers which uses this process wrote.
type marks struct {
	mu      *sync.Mutex
	written *lru.Cache
}

func newMarks() marks { return marks{mu: &sync.Mutex{}, written: lru.New(maxMarks)} }

// mark reports whether a use must be written, and from now on treats it as written.
func (m marks) mark(token database.Subject, at time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last, ok := m.written.Get(token); ok && at.Sub(last.(time.Time)) < interval {
		return false
	}
	m.written.Add(token, at)
	return true
}

func (m marks) forget(token database.Subject) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.written.Remove(token)
}
