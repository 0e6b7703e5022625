package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/pressly/goose/v3" // keeps track of which migrations a database has, for either engine
)

const (
	// versions is the table of the migrations that a database has.
	versions = goose.DefaultTablename
	// migrationLimit is the maximum time of all migrations, with the wait for another process that runs them.
	migrationLimit = 5 * time.Minute
)

// migration is one version of all tables.
type migration struct {
	// name is the name of its files, such as 00011_uids.sql.
	name string
	// parts are the statements of each aggregate.
	parts []string
}

// merge returns the migrations of all aggregates by version. An aggregate has them in migrations/sqlite3 and migrations/postgres, with the
// same names. Versions are shared by all aggregates, so a new version must be greater than all others, and a migration must not
// change. Files with the same name in several aggregates are parts of one migration.
func merge(dialect goose.Dialect, aggregates []fs.FS) (map[int64]*migration, error) {
	merged := map[int64]*migration{}
	for _, aggregate := range aggregates {
		files, err := fs.Glob(aggregate, path.Join("migrations", string(dialect), "*.sql"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			name := path.Base(file)
			number, _, _ := strings.Cut(name, "_")
			version, err := strconv.ParseInt(number, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("the migration %s has no version: %w", name, err)
			}
			statements, err := fs.ReadFile(aggregate, file)
			if err != nil {
				return nil, err
			}
			m := merged[version]
			if m == nil {
				m = &migration{name: name}
				merged[version] = m
			}
			if m.name != name {
				return nil, fmt.Errorf("the migrations %s and %s have the same version", m.name, name)
			}
			m.parts = append(m.parts, string(statements))
		}
	}
	return merged, nil
}

// run makes the changes of a migration.
func (m *migration) run(ctx context.Context, tx *sql.Tx) error {
	for _, part := range m.parts {
		if _, err := tx.ExecContext(ctx, part); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

func migrate(ctx context.Context, pool *sql.DB, dialect goose.Dialect, aggregates []fs.FS, options ...goose.ProviderOption) error {
	ctx, cancel := context.WithTimeoutCause(ctx, migrationLimit, errors.New("its tables were not up to date in time"))
	defer cancel()
	merged, err := merge(dialect, aggregates)
	if err != nil {
		return err
	}
	for version, m := range merged {
		options = append(options, goose.WithGoMigrations(goose.NewGoMigration(version, &goose.GoFunc{RunTx: m.run}, nil)))
	}
	provider, err := goose.NewProvider(dialect, pool, nil, append(options, goose.WithDisableGlobalRegistry(true))...)
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}
