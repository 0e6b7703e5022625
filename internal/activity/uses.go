package activity

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
)

// use is a row: when a subject was last used.
type use struct {
	bun.BaseModel `bun:"table:uses"`

	SubjectKind string    `bun:"subject_kind,pk"`
	SubjectID   int64     `bun:"subject_id,pk"`
	SubjectUID  types.UID `bun:"subject_uid,pk"`
	LastUsed    time.Time `bun:"last_used"`
}

// useInterval is how much later a use has to be than the last one that this process wrote.
const useInterval = time.Minute

// Use notes that a subject was used at a time. An earlier time never replaces a later one.
//
// It may be called on every use: one that follows another within a minute is not written, so what is read may be up to a
// minute behind.
func (s *Store) Use(ctx context.Context, subject Subject, at time.Time) error {
	if !s.uses.mark(subject, at) {
		return nil
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	row := &use{SubjectKind: subject.Kind, SubjectID: subject.ID, SubjectUID: subject.UID, LastUsed: at}
	if err := note(ctx, s.write, row); err != nil {
		s.uses.forget(subject)
		return failed(ctx, fmt.Sprintf("noting the use of %s", subject), err)
	}
	return nil
}

// note writes a use, unless a later one is written.
func note(ctx context.Context, db bun.IDB, row *use) error {
	_, err := db.NewInsert().Model(row).
		On("CONFLICT (subject_kind, subject_id, subject_uid) DO UPDATE").Set("last_used = EXCLUDED.last_used").
		Where("?TableAlias.last_used < EXCLUDED.last_used").Exec(ctx)
	return err
}

// LastUsed returns when each of the subjects of a kind was last used, by their UIDs; what was never used is not in it.
func (s *Store) LastUsed(ctx context.Context, kind string, uids ...types.UID) (map[types.UID]time.Time, error) {
	last := make(map[types.UID]time.Time, len(uids))
	if len(uids) == 0 {
		return last, nil
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	var rows []use
	err := s.read.NewSelect().Model(&rows).Where("subject_kind = ?", kind).Where("subject_uid IN ?", bun.Tuple(uids)).Where("subject_uid <> ''").Scan(ctx)
	if err != nil {
		return nil, failed(ctx, fmt.Sprintf("reading when each %s was last used", kind), err)
	}
	for _, row := range rows {
		last[row.SubjectUID] = row.LastUsed.UTC()
	}
	return last, nil
}

// RemoveUses forgets that a subject was ever used, as when it is deleted.
func (s *Store) RemoveUses(ctx context.Context, subject Subject) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	defer s.uses.forget(subject)
	_, err := s.write.NewDelete().Model(&use{SubjectKind: subject.Kind, SubjectID: subject.ID, SubjectUID: subject.UID}).WherePK().Exec(ctx)
	if err != nil {
		return failed(ctx, fmt.Sprintf("removing the uses of %s", subject), err)
	}
	return nil
}

// marks remembers which uses this process wrote.
type marks struct {
	mu      *sync.Mutex
	written *lru.Cache
}

func newMarks() marks { return marks{mu: &sync.Mutex{}, written: lru.New(maxRemembered)} }

// mark reports whether a use is to be written, and takes it for written from now on.
func (m marks) mark(subject Subject, at time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last, ok := m.written.Get(subject); ok && at.Sub(last.(time.Time)) < useInterval {
		return false
	}
	m.written.Add(subject, at)
	return true
}

func (m marks) forget(subject Subject) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.written.Remove(subject)
}
