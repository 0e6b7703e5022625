package activity_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/internal/activity"
)

// postgresEnv names a PostgreSQL database that tests may make schemas in.
const postgresEnv = "FORGEPLANE_TEST_POSTGRES"

// engines are what every test of the store runs on; each makes a database for one test.
var engines = map[string]func(testing.TB) string{
	"SQLite":     newSQLite,
	"PostgreSQL": newPostgres,
}

func onEachEngine(t *testing.T, test func(t *testing.T, database string)) {
	t.Helper()
	for name, database := range engines {
		t.Run(name, func(t *testing.T) { test(t, database(t)) })
	}
}

func newSQLite(tb testing.TB) string { return filepath.Join(tb.TempDir(), "activity.db") }

// newPostgres makes a schema, and a URL that leads to it.
func newPostgres(tb testing.TB) string {
	tb.Helper()
	address := os.Getenv(postgresEnv)
	if address == "" {
		tb.Skip(postgresEnv + " names no PostgreSQL database; CONTRIBUTING.md says how to start one")
	}
	g := NewWithT(tb)
	u, err := url.Parse(address)
	g.Expect(err).NotTo(HaveOccurred())
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
	g := NewWithT(tb)
	db, err := sql.Open("pgx", address)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = db.ExecContext(context.Background(), statement)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(db.Close()).To(Succeed())
}

// open opens a store for the time of a test.
func open(tb testing.TB, database string) *activity.Store {
	tb.Helper()
	return openAt(tb, database, nil)
}

// openAt opens a store with a clock of the test's.
func openAt(tb testing.TB, database string, c clock.PassiveClock) *activity.Store {
	tb.Helper()
	store, err := activity.Open(tb.Context(), activity.Options{Database: database, Clock: c})
	NewWithT(tb).Expect(err).NotTo(HaveOccurred())
	tb.Cleanup(func() { NewWithT(tb).Expect(store.Close()).To(Succeed()) })
	return store
}

func label(id int64) activity.Subject {
	return activity.Subject{Kind: activity.KindLabel, ID: id, UID: uid(id)}
}

// uid is that of the object that has an id, and who the user.
func uid(id int64) types.UID { return types.UID(fmt.Sprint("uid-", id)) }

func who(id int64) activity.User { return activity.User{ID: id, UID: uid(id)} }

func uids(ids ...int64) []types.UID {
	all := make([]types.UID, len(ids))
	for i, id := range ids {
		all[i] = uid(id)
	}
	return all
}

// lockTables keeps writers from the tables until it is told to unlock them.
func lockTables(tb testing.TB, database string) (unlock func()) {
	tb.Helper()
	g := NewWithT(tb)
	driver, source, lock := "sqlite", "file:"+database, "BEGIN IMMEDIATE"
	if activity.IsPostgres(database) {
		driver, source, lock = "pgx", database, "BEGIN; LOCK TABLE subscriptions"
	}
	db, err := sql.Open(driver, source)
	g.Expect(err).NotTo(HaveOccurred())
	conn, err := db.Conn(tb.Context())
	g.Expect(err).NotTo(HaveOccurred())
	_, err = conn.ExecContext(tb.Context(), lock)
	g.Expect(err).NotTo(HaveOccurred())
	return func() {
		_, err := conn.ExecContext(tb.Context(), "ROLLBACK")
		g.Expect(errors.Join(err, conn.Close(), db.Close())).To(Succeed())
	}
}
