// Package databasetest opens activity databases for tests, on both engines.
package databasetest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of database/sql

	"github.com/forgeplane/forgeplane/internal/database"
)

// postgresEnv names a PostgreSQL database that tests may make schemas in.
const postgresEnv = "FORGEPLANE_TEST_POSTGRES"

// Engines returns functions that create a new database for one test and return its name for database.Open, by the engine's name.
func Engines() map[string]func(testing.TB) string {
	return map[string]func(testing.TB) string{"SQLite": SQLite, "PostgreSQL": PostgreSQL}
}

// OnEachEngine runs a test with a new database of each engine.
func OnEachEngine(t *testing.T, test func(t *testing.T, name string)) {
	t.Helper()
	for engine, name := range Engines() {
		t.Run(engine, func(t *testing.T) { test(t, name(t)) })
	}
}

// SQLite returns the name of a file that does not exist yet.
func SQLite(tb testing.TB) string {
	tb.Helper()
	return filepath.Join(tb.TempDir(), "activity.db")
}

// PostgreSQL makes a schema, and returns a URL that leads to it. It skips the test if there is no server.
func PostgreSQL(tb testing.TB) string {
	tb.Helper()
	address := os.Getenv(postgresEnv)
	if address == "" {
		tb.Skip(postgresEnv + " names no PostgreSQL database; CONTRIBUTING.md says how to start one")
	}
	u, err := url.Parse(address)
	check(tb, err)
	schema := "test_" + strings.ToLower(rand.Text())
	inPostgres(tb, address, "CREATE SCHEMA "+schema)
	tb.Cleanup(func() { inPostgres(tb, address, "DROP SCHEMA "+schema+" CASCADE") })
	query := u.Query()
	query.Set("search_path", schema)
	u.RawQuery = query.Encode()
	return u.String()
}

func inPostgres(tb testing.TB, address, statement string) {
	tb.Helper()
	db, err := sql.Open("pgx", address)
	check(tb, err)
	_, err = db.ExecContext(context.Background(), statement)
	check(tb, errors.Join(err, db.Close()))
}

// Open opens a database for the time of a test.
func Open(tb testing.TB, name string, migrations ...fs.FS) *database.DB {
	tb.Helper()
	d, err := database.Open(tb.Context(), name, migrations...)
	check(tb, err)
	tb.Cleanup(func() { check(tb, d.Close()) })
	return d
}

// SQL opens a database past the package database for the time of a test.
func SQL(tb testing.TB, name string) *sql.DB {
	tb.Helper()
	driver, source := "sqlite", "file:"+name+"?_pragma=busy_timeout(10000)"
	if database.IsPostgres(name) {
		driver, source = "pgx", name
	}
	db, err := sql.Open(driver, source)
	check(tb, err)
	tb.Cleanup(func() { check(tb, db.Close()) })
	return db
}

// Lock keeps writers from a table until it is told to unlock it.
func Lock(tb testing.TB, name, table string) (unlock func()) {
	tb.Helper()
	lock := "BEGIN IMMEDIATE"
	if database.IsPostgres(name) {
		lock = "BEGIN; LOCK TABLE " + table
	}
	conn, err := SQL(tb, name).Conn(tb.Context())
	check(tb, err)
	_, err = conn.ExecContext(tb.Context(), lock)
	check(tb, err)
	return func() {
		_, err := conn.ExecContext(tb.Context(), "ROLLBACK")
		check(tb, errors.Join(err, conn.Close()))
	}
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
