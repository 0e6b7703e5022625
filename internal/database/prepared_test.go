package database_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"modernc.org/sqlite"

	"github.com/forgeplane/forgeplane/internal/database"
)

// counting counts what its connections prepare.
type counting struct {
	driver.Connector

	prepared *int
}

type countingConn struct {
	database.SQLiteConn

	prepared *int
}

func (c counting) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return countingConn{conn.(database.SQLiteConn), c.prepared}, nil
}

func (c countingConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	*c.prepared++
	return c.SQLiteConn.PrepareContext(ctx, query)
}

// newPreparing returns a pool of one connection with a table of unique texts, and the number of prepared statements.
func newPreparing(t *testing.T) (pool *sql.DB, prepared *int) {
	t.Helper()
	g := NewWithT(t)
	connector, err := sqlite.NewConnector("file:" + t.TempDir() + "/test.db")
	g.Expect(err).NotTo(HaveOccurred())
	prepared = new(int)
	pool = sql.OpenDB(database.Preparing(counting{connector, prepared}))
	pool.SetMaxOpenConns(1)
	t.Cleanup(func() { g.Expect(pool.Close()).To(Succeed()) })
	_, err = pool.ExecContext(t.Context(), "CREATE TABLE t (n INTEGER NOT NULL UNIQUE, text TEXT NOT NULL)")
	g.Expect(err).NotTo(HaveOccurred())
	return pool, prepared
}

func execute(t *testing.T, pool *sql.DB, query string, args ...any) error {
	t.Helper()
	_, err := pool.ExecContext(t.Context(), fmt.Sprintf(query, args...))
	return err
}

func texts(t *testing.T, q interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}, query string, then func(text string),
) {
	t.Helper()
	rows, err := q.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		then(text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestPreparing_preparesStatementsOnce(t *testing.T) {
	g, got := NewWithT(t), []string{}
	pool, prepared := newPreparing(t)
	for n := range 9 {
		g.Expect(execute(t, pool, "INSERT INTO t VALUES (%d, 'text %d')", 100+n, n)).To(Succeed())
		texts(t, pool, fmt.Sprintf("SELECT text FROM t WHERE n = %d", 100+n), func(text string) { got = append(got, text) })
	}
	g.Expect(got).To(Equal(strings.Split("text 0,text 1,text 2,text 3,text 4,text 5,text 6,text 7,text 8", ",")))
	g.Expect(*prepared).To(Equal(2))
}

func TestPreparing_runsStatementsWithinThemselves(t *testing.T) {
	g, got := NewWithT(t), ""
	pool, _ := newPreparing(t)
	for n := range 3 {
		g.Expect(execute(t, pool, "INSERT INTO t VALUES (%d, '%d')", 100+n, n)).To(Succeed())
	}
	tx, err := pool.BeginTx(t.Context(), nil)
	g.Expect(err).NotTo(HaveOccurred())
	for range 2 {
		texts(t, tx, "SELECT text FROM t WHERE n >= 100 ORDER BY n", func(outer string) {
			texts(t, tx, "SELECT text FROM t WHERE n >= 101 ORDER BY n", func(inner string) { got += outer + inner + " " })
		})
	}
	g.Expect(tx.Commit()).To(Succeed())
	g.Expect(got).To(Equal(strings.Repeat("01 02 11 12 21 22 ", 2)))
}

func TestPreparing_worksAfterErrors(t *testing.T) {
	g := NewWithT(t)
	pool, _ := newPreparing(t)
	for n := range 3 {
		g.Expect(execute(t, pool, "INSERT INTO t VALUES (%d, 'text %d')", 100+n, n)).To(Succeed())
		g.Expect(execute(t, pool, "INSERT INTO t VALUES (%d, 'text %d')", 100+n, n)).To(MatchError(ContainSubstring("UNIQUE constraint failed")))
		g.Expect(execute(t, pool, "SELECT none FROM t WHERE n = %d", 100+n)).To(MatchError(ContainSubstring("no such column: none")))
	}
}

func TestPreparing_hasRoomForNewStatements(t *testing.T) {
	g := NewWithT(t)
	pool, prepared := newPreparing(t)
	for n := range 2 * database.MaxPrepared {
		g.Expect(execute(t, pool, "SELECT text AS a%d FROM t", n)).To(Succeed())
	}
	*prepared = 0
	for range 9 {
		g.Expect(execute(t, pool, "SELECT text FROM t WHERE n = 100")).To(Succeed())
	}
	g.Expect(*prepared).To(Equal(1))
}

func TestPreparing_seesChangedTables(t *testing.T) {
	g, got := NewWithT(t), []string{}
	pool, _ := newPreparing(t)
	read := func() {
		texts(t, pool, "SELECT text FROM t WHERE n = 100", func(text string) { got = append(got, text) })
	}
	g.Expect(execute(t, pool, "INSERT INTO t VALUES (100, 'first')")).To(Succeed())
	read()
	g.Expect(execute(t, pool, "DROP TABLE t")).To(Succeed())
	g.Expect(execute(t, pool, "CREATE TABLE t (text TEXT, n INTEGER)")).To(Succeed())
	g.Expect(execute(t, pool, "INSERT INTO t VALUES ('second', 100)")).To(Succeed())
	read()
	g.Expect(got).To(Equal([]string{"first", "second"}))
}
