// Package database is the activity database. It stores what happens in the forge, as opposed to what is declared. Such data is written too
// often for a custom resource: for example who subscribes to what, and when a token was last used.
//
// The package opens a database, migrates its tables, limits the duration of calls and provides transactions. The content of the tables
// belongs to one package for each aggregate, such as internal/subscription, which has its own tables and queries.
//
// The database is relational: embedded SQLite for a single process, or PostgreSQL for any number of replicas.
package database

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/uptrace/bun" // builds queries for either engine
	"github.com/uptrace/bun/dialect"
)

// Limit is the maximum time of one call, and so of a transaction.
const Limit = 5 * time.Second

var errSlow = fmt.Errorf("the database did not answer within %s", Limit)

// DB is an open database, for use by several goroutines. Its errors say what failed in words for people, and never hold the password.
type DB struct {
	// name is the name for messages, without a password.
	name string
	// SQLite has one writer at a time, who must not wait for readers to finish; for PostgreSQL they are the same.
	read, write *bun.DB
}

// Open connects to a database and applies the migrations of all aggregates; several processes can do so at once. The caller must close it.
//
// The name is the URL of a PostgreSQL database, such as postgres://forgeplane:password@host/forgeplane, or the path of a SQLite file. A
// missing file is created, together with its directory.
func Open(ctx context.Context, name string, migrations ...fs.FS) (*DB, error) {
	switch scheme, _, isURL := strings.Cut(name, "://"); {
	case name == "":
		return nil, errors.New("no activity database is set")
	case IsPostgres(name):
		return openPostgres(ctx, name, migrations)
	case isURL && !strings.Contains(scheme, "/"):
		return nil, errors.New("the activity database must be the path of a file, or a URL that begins with postgres://")
	default:
		return openSQLite(ctx, name, migrations)
	}
}

// IsPostgres reports whether the name of a database is the URL of a PostgreSQL database.
func IsPostgres(name string) bool {
	return strings.HasPrefix(name, "postgres://") || strings.HasPrefix(name, "postgresql://")
}

// Close ends all connections. Calls under way fail.
func (d *DB) Close() error {
	if d.read == d.write {
		return d.write.Close()
	}
	// The last connection to a SQLite file tidies up, and has to be one that may write.
	return errors.Join(d.read.Close(), d.write.Close())
}

// Check returns an error that names the database if it does not answer.
func (d *DB) Check(ctx context.Context) error {
	return d.Read(ctx, "reaching "+d.name, func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewSelect().Table(versions).Exists(ctx)
		return err
	})
}

// Now returns the time in a statement by the clock of the database, in milliseconds since 1970. All processes agree on it.
func Now(db bun.IDB) bun.Safe {
	if db.Dialect().Name() == dialect.PG {
		return "(EXTRACT(EPOCH FROM statement_timestamp()) * 1000)::BIGINT"
	}
	return "CAST(unixepoch('subsec') * 1000 AS INTEGER)"
}

// Limited returns a context for one call.
func Limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, Limit, errSlow)
}

// Failed says what was attempted, and why the context ended if it did: the engines only say that something did.
func Failed(ctx context.Context, attempt string, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return fmt.Errorf("activity database: %s: %w", attempt, err)
}
