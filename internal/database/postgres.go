package database

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
)

const (
	// maxConnections is the maximum number of connections of a process.
	maxConnections = 16
	maxIdleTime    = 5 * time.Minute
	maxLifetime    = 30 * time.Minute
	// migrationLock is the advisory lock that processes of Forgeplane hold while they change tables.
	migrationLock = 0x666f726765 // "forge"
)

func openPostgres(ctx context.Context, text string, migrations []fs.FS) (*DB, error) {
	config, err := parsePostgres(text)
	if err != nil {
		return nil, err
	}
	pool := stdlib.OpenDB(*config)
	pool.SetMaxOpenConns(maxConnections)
	pool.SetMaxIdleConns(maxConnections)
	pool.SetConnMaxIdleTime(maxIdleTime)
	pool.SetConnMaxLifetime(maxLifetime)
	both := bun.NewDB(pool, pgdialect.New())
	d := &DB{
		name: fmt.Sprintf("the PostgreSQL database %q at %s:%d", config.Database, config.Host, config.Port),
		read: both, write: both,
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockID(migrationLock), lock.WithLockTimeout(1, 60))
	if err == nil {
		err = migrate(ctx, pool, goose.DialectPostgres, migrations, goose.WithSessionLocker(locker))
	}
	if err != nil {
		return nil, errors.Join(Failed(ctx, "opening "+d.name, err), d.Close())
	}
	return d, nil
}

// parsePostgres returns errors that quote nothing of the URL which may be a part of the password.
func parsePostgres(text string) (*pgx.ConnConfig, error) {
	unclear := errors.New("the URL of the activity database must be postgres://user:password@host/database," +
		" with the characters / ? # @ : % of the password in percent-encoding")
	// Otherwise the password would be taken for a port, and its end for the name of the database.
	_, address, _ := strings.Cut(text, "://")
	if end := strings.IndexAny(address, "/?#"); end >= 0 && strings.Contains(address[end:], "@") && !strings.Contains(address[:end], "@") {
		return nil, unclear
	}
	config, err := pgx.ParseConfig(text)
	if err != nil {
		if _, err := url.Parse(text); err != nil {
			return nil, unclear
		}
		// The error itself holds the URL; its text masks a password whose place is clear.
		return nil, errors.New("the URL of the activity database: " + err.Error())
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = Limit
	}
	// The query builder puts values into the text, so there is nothing to prepare; and it quotes them by the standard.
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	config.RuntimeParams["standard_conforming_strings"] = "on"
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "forgeplane"
	}
	return config, nil
}
