package subscription

import (
	"context"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/sweep"
)

// Subjects returns the rows of a Store by their subjects, for a sweep.Sweeper.
func (s *Store) Subjects() sweep.Rows { return subjects{s} }

type subjects struct{ *Store }

// After implements sweep.Rows.
func (s subjects) After(ctx context.Context, after database.Subject) ([]database.Subject, error) {
	return sweep.Subjects(ctx, s.db, (*subscription)(nil), after)
}
