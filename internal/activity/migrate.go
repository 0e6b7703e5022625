package activity

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/pressly/goose/v3" // keeps track of which migrations a database has, for either engine
)

// A folder for each engine; a migration has the same name in both. What is released is not changed any more.
//
//go:embed migrations
var migrations embed.FS

// migrationLimit is how long all migrations may take, with waiting for another process that runs them.
const migrationLimit = 5 * time.Minute

func openDatabase(ctx context.Context, name string) (database, error) {
	switch scheme, _, isURL := strings.Cut(name, "://"); {
	case name == "":
		return database{}, errors.New("no activity database is named")
	case IsPostgres(name):
		return openPostgres(ctx, name)
	case isURL && !strings.Contains(scheme, "/"):
		return database{}, errors.New("the activity database is to be the path of a file, or a URL that begins with postgres://")
	default:
		return openSQLite(ctx, name)
	}
}

// IsPostgres reports whether the name of a database, as in Options, is the URL of a PostgreSQL database.
func IsPostgres(name string) bool {
	return strings.HasPrefix(name, "postgres://") || strings.HasPrefix(name, "postgresql://")
}

func migrate(ctx context.Context, pool *sql.DB, dialect goose.Dialect, options ...goose.ProviderOption) error {
	ctx, cancel := context.WithTimeoutCause(ctx, migrationLimit, errors.New("its tables were not up to date in time"))
	defer cancel()
	folder, err := fs.Sub(migrations, "migrations/"+string(dialect))
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(dialect, pool, folder, append(options, goose.WithDisableGlobalRegistry(true))...)
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}
