package database_test

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
)

// notes returns the migrations of an aggregate: a table of unique texts.
func notes() fs.FS {
	return files("00001_notes.sql", "CREATE TABLE notes (text TEXT NOT NULL PRIMARY KEY);")
}

// files returns one migration for both engines.
func files(name, statements string) fstest.MapFS {
	file := &fstest.MapFile{Data: []byte(statements)}
	return fstest.MapFS{"migrations/sqlite3/" + name: file, "migrations/postgres/" + name: file}
}

type note struct {
	bun.BaseModel `bun:"table:notes"`

	Text string `bun:"text,pk"`
}

func open(t *testing.T, name string) *database.DB {
	t.Helper()
	return databasetest.Open(t, name, notes())
}

func write(ctx context.Context, d *database.DB, text string) error {
	return d.Write(ctx, "writing "+text, func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewInsert().Model(&note{Text: text}).Exec(ctx)
		return err
	})
}

func read(ctx context.Context, d *database.DB) (texts []string, err error) {
	err = d.Read(ctx, "reading the notes", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model((*note)(nil)).Column("text").Order("text").Scan(ctx, &texts)
	})
	return texts, err
}

func expectNotes(t *testing.T, d *database.DB, want ...string) {
	t.Helper()
	g := NewWithT(t)
	texts, err := read(t.Context(), d)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(texts).To(HaveExactElements(want))
}

func TestOpen_findsDataAfterRestart(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		before, err := database.Open(t.Context(), name, notes())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(write(t.Context(), before, "kept")).To(Succeed())
		g.Expect(before.Close()).To(Succeed())
		expectNotes(t, open(t, name), "kept")
	})
}

func TestOpen_createsPrivateFilesWithAnyName(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "made anew", "50% ?mode=memory#1.db")
	open(t, path)
	for _, file := range []string{path, path + "-wal"} {
		info, err := os.Stat(file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().Perm()&0o077).To(BeZero(), file)
	}
}

// openedBy is an environment variable that makes this executable another process of the forge. It names the database to open.
const openedBy = "FORGEPLANE_TEST_DATABASE_OPEN"

func TestMain(m *testing.M) {
	if name := os.Getenv(openedBy); name != "" {
		if err := openAndWrite(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func openAndWrite(name string) error {
	d, err := database.Open(context.Background(), name, notes())
	if err != nil {
		return err
	}
	if err := write(context.Background(), d, "once"); err == nil {
		fmt.Fprintln(os.Stdout, "written")
	}
	return d.Close()
}

func TestOpen_canRunInSeveralProcessesAtOnce(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		executable, err := os.Executable()
		g.Expect(err).NotTo(HaveOccurred())
		outputs := make([]string, 3)
		var group sync.WaitGroup
		for i := range outputs {
			group.Go(func() {
				process := exec.CommandContext(t.Context(), executable)
				process.Env = append(os.Environ(), openedBy+"="+name)
				output, err := process.CombinedOutput()
				outputs[i] = string(output)
				if err != nil {
					outputs[i] += err.Error()
				}
			})
		}
		group.Wait()
		g.Expect(outputs).To(ConsistOf("written\n", "", ""))
		expectNotes(t, open(t, name), "once")
	})
}

func TestOpen_canRunConcurrently(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		var group sync.WaitGroup
		errs := make(chan error, 4)
		for range cap(errs) {
			group.Go(func() {
				d, err := database.Open(t.Context(), name, notes())
				if err == nil {
					err = d.Close()
				}
				errs <- err
			})
		}
		group.Wait()
		for range cap(errs) {
			NewWithT(t).Expect(<-errs).NotTo(HaveOccurred())
		}
	})
}

func TestCall_changesNothingIfContextHasEnded(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, d := NewWithT(t), open(t, name)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		g.Expect(write(ctx, d, "late")).To(MatchError(context.Canceled))
		g.Expect(d.Atomically(ctx, "writing", func(ctx context.Context, _ bun.IDB) error { return write(ctx, d, "late") })).To(MatchError(context.Canceled))
		_, err := read(ctx, d)
		g.Expect(err).To(MatchError(context.Canceled))
		g.Expect(d.Check(ctx)).To(MatchError(context.Canceled))
		expectNotes(t, d)
		_, err = database.Open(ctx, name, notes())
		g.Expect(err).To(MatchError(context.Canceled))
	})
}

func TestCall_stopsWaitingForLockWithContext(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, d := NewWithT(t), open(t, name)
		defer databasetest.Lock(t, name, "notes")()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		g.Expect(write(ctx, d, "late")).To(MatchError(context.DeadlineExceeded)) // and not the error of the database's own limit
	})
}

func TestCall_timesOutWithoutDeadline(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		t.Parallel() // it waits for seconds to pass
		g, d := NewWithT(t), open(t, name)
		defer databasetest.Lock(t, name, "notes")()
		g.Expect(write(t.Context(), d, "late")).To(MatchError(And(ContainSubstring("writing late"), ContainSubstring("did not answer within 5s"))))
	})
}

func TestOpen_hidesPasswordInErrors(t *testing.T) {
	g := NewWithT(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	closed := free.Addr().String()
	g.Expect(free.Close()).To(Succeed())
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	defer silent.Close()
	text := filepath.Join(t.TempDir(), "text")
	g.Expect(os.WriteFile(text, []byte(strings.Repeat("hush, this is prose\n", 100)), 0o600)).To(Succeed())
	unclear, refused := ContainSubstring("percent-encoding"), ContainSubstring("refused")
	for name, want := range map[string]types.GomegaMatcher{
		"postgres://forge:hush@" + closed + "/activity":                                       And(ContainSubstring(`"activity" at `+closed), refused),
		"postgres://forge:hush@" + closed + "," + closed + "/activity":                        refused,
		"postgres://forge@" + closed + "/activity?password=hush&sslmode=disable":              refused,
		"postgres://forge:hush@" + silent.Addr().String() + "/activity?connect_timeout=1":     ContainSubstring("timeout"),
		"postgres://forge:hush@" + closed + "/activity?sslmode=often":                         ContainSubstring("sslmode"),
		"postgres://forge:hush@" + closed + "/activity?sslmode=verify-full&sslrootcert=/none": ContainSubstring("/none"),
		"postgres://forge:hush@" + closed + "x/activity":                                      unclear,
		"postgres://forge:hush%@" + closed + "/activity":                                      unclear,
		"postgres://forge:hu/sh@" + closed + "/activity":                                      unclear,
		"postgres://forge:12/hush@" + closed + "/activity":                                    unclear,
		"postgres://forge:12#hush@" + closed + "/activity":                                    unclear,
		"postgres://forge:12?hush@" + closed + "/activity":                                    unclear,
		"mysql://forge:hush@" + closed + "/activity":                                          ContainSubstring("postgres://"),
		"":                                 ContainSubstring("no activity database"),
		text:                               And(ContainSubstring(text), ContainSubstring("not a database")),
		filepath.Join(text, "activity.db"): ContainSubstring(text),
		filepath.Dir(text):                 ContainSubstring(filepath.Dir(text)),
	} {
		_, err := database.Open(t.Context(), name, notes())
		g.Expect(err).To(MatchError(And(want, Not(ContainSubstring("hush")), Not(ContainSubstring("sh@")))), name)
	}
}

func TestWrite_keepsValues(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		d := open(t, name)
		all := []string{"", "'", "''", "a'b", "word", "a long text that has no quotes", "12", "1234", "-1234", "?", "$1 :a @a", "; DROP TABLE notes", "-- ", "\\", "\n", "日本"}
		for _, text := range all {
			NewWithT(t).Expect(write(t.Context(), d, text)).To(Succeed(), text)
		}
		slices.Sort(all)
		texts, err := read(t.Context(), d)
		slices.Sort(texts)
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(texts).To(Equal(all))
	})
}
