package database_test

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	. "github.com/onsi/gomega"
	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/test/patience"
)

// wire forwards connections to a PostgreSQL server, and can be cut.
type wire struct {
	address         string
	network, server string

	mu       sync.Mutex
	listener net.Listener
	open     []net.Conn
}

func (w *wire) mend(g Gomega) {
	listener, err := net.Listen("tcp", w.address)
	g.Expect(err).NotTo(HaveOccurred())
	w.mu.Lock()
	w.listener, w.address = listener, listener.Addr().String()
	w.mu.Unlock()
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial(w.network, w.server)
			if err != nil {
				_ = client.Close()
				continue
			}
			w.mu.Lock()
			w.open = append(w.open, client, server)
			w.mu.Unlock()
			go func() { _, _ = io.Copy(server, client) }()
			go func() { _, _ = io.Copy(client, server) }()
		}
	}()
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.listener.Close()
	for _, conn := range w.open {
		_ = conn.Close()
	}
	w.open = nil
}

func TestDatabase_recoversFromOutage(t *testing.T) {
	g := NewWithT(t)
	name := databasetest.PostgreSQL(t)
	config, err := pgx.ParseConfig(name)
	g.Expect(err).NotTo(HaveOccurred())
	w := &wire{address: "127.0.0.1:0"}
	w.network, w.server = pgconn.NetworkAddress(config.Host, config.Port)
	w.mend(g)
	defer w.cut()
	password := config.Password
	if password == "" {
		password = "hush"
	}
	u := url.URL{
		Scheme: "postgres", Host: w.address, User: url.UserPassword(config.User, password), Path: config.Database,
		RawQuery: url.Values{"search_path": {config.RuntimeParams["search_path"]}, "sslmode": {"disable"}}.Encode(),
	}
	d := open(t, u.String())
	g.Expect(d.Check(t.Context())).To(Succeed())
	g.Expect(write(t.Context(), d, "first")).To(Succeed())

	w.cut()
	g.Expect(d.Check(t.Context())).To(MatchError(And(ContainSubstring(w.address), Not(ContainSubstring(password)))))
	g.Expect(write(t.Context(), d, "second")).To(MatchError(Not(ContainSubstring(password))))
	both := func(ctx context.Context, _ bun.IDB) error { return write(ctx, d, "third") }
	g.Expect(d.Atomically(t.Context(), "writing", both)).To(MatchError(Not(ContainSubstring(password))))

	w.mend(g)
	g.Eventually(func() error { return d.Check(t.Context()) }).WithTimeout(patience.Wait).Should(Succeed())
	expectNotes(t, d, "first")
}
