package activity

import (
	"context"
	"database/sql"
	"io/fs"

	"github.com/pressly/goose/v3"
)

// Look has a sweeper look once.
func (s *Sweeper) Look(ctx context.Context) error { return s.look(ctx) }

// MigrateTo gives an empty database the tables of a version.
func MigrateTo(ctx context.Context, pool *sql.DB, dialect goose.Dialect, version int64) error {
	folder, err := fs.Sub(migrations, "migrations/"+string(dialect))
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(dialect, pool, folder, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	_, err = provider.UpTo(ctx, version)
	return err
}
