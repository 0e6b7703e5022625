package activity_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/forgeplane/forgeplane/internal/activity"
)

func TestARestartFindsTheData(t *testing.T) {
	onEachEngine(t, func(t *testing.T, database string) {
		g := NewWithT(t)
		before, err := activity.Open(t.Context(), activity.Options{Database: database})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(before.Subscribe(t.Context(), who(userMax), label(1))).To(BeTrue())
		g.Expect(before.Use(t.Context(), trigger(1), noon)).To(Succeed())
		g.Expect(before.Close()).To(Succeed())

		after := open(t, database)
		expectSubscribed(t, after, userMax, 1)
		expectLastUsed(t, after, map[int64]time.Time{1: noon})
		g.Expect(after.Subscribe(t.Context(), who(userMax), label(1))).To(BeFalse())
	})
}

func TestAFileIsFoundUnderAnyNameAndReadByItsOwnerAlone(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "made anew", "50% ?mode=memory#1.db")
	open(t, path)
	for _, file := range []string{path, path + "-wal"} {
		info, err := os.Stat(file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().Perm()&0o077).To(BeZero(), file)
	}
}

// openedBy is set where this executable is another process of the forge: the database that it opens.
const openedBy = "FORGEPLANE_TEST_ACTIVITY_OPEN"

func TestMain(m *testing.M) {
	if database := os.Getenv(openedBy); database != "" {
		if err := openAndSubscribe(database); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func openAndSubscribe(database string) error {
	store, err := activity.Open(context.Background(), activity.Options{Database: database})
	if err != nil {
		return err
	}
	changed, err := store.Subscribe(context.Background(), who(userMax), label(1))
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, changed)
	return store.Close()
}

func TestProcessesThatStartAtOnceShareADatabase(t *testing.T) {
	onEachEngine(t, func(t *testing.T, database string) {
		g := NewWithT(t)
		executable, err := os.Executable()
		g.Expect(err).NotTo(HaveOccurred())
		outputs := make([]string, 3)
		var group sync.WaitGroup
		for i := range outputs {
			group.Go(func() {
				process := exec.CommandContext(t.Context(), executable)
				process.Env = append(os.Environ(), openedBy+"="+database)
				output, err := process.CombinedOutput()
				outputs[i] = string(output)
				if err != nil {
					outputs[i] += err.Error()
				}
			})
		}
		group.Wait()
		g.Expect(outputs).To(ConsistOf("true\n", "false\n", "false\n"))
		expectSubscribed(t, open(t, database), userMax, 1)
	})
}

func TestManyStoresOpenAtOnce(t *testing.T) {
	onEachEngine(t, func(t *testing.T, database string) {
		var group sync.WaitGroup
		errs := make(chan error, 4)
		for range cap(errs) {
			group.Go(func() {
				store, err := activity.Open(t.Context(), activity.Options{Database: database})
				if err == nil {
					err = store.Close()
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

func TestACallWhoseContextHasEndedChangesNothing(t *testing.T) {
	onEachEngine(t, func(t *testing.T, database string) {
		g, store := NewWithT(t), open(t, database)
		g.Expect(store.Subscribe(t.Context(), who(userMax), label(1))).To(BeTrue())
		g.Expect(store.Use(t.Context(), trigger(1), noon)).To(Succeed())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for name, call := range map[string]func() error{
			"Subscribe":           func() error { _, err := store.Subscribe(ctx, who(userMax), label(2)); return err },
			"Unsubscribe":         func() error { _, err := store.Unsubscribe(ctx, who(userMax), label(1)); return err },
			"Subscribed":          func() error { _, err := store.Subscribed(ctx, who(userMax), activity.KindLabel); return err },
			"MoveSubscriptions":   func() error { return store.MoveSubscriptions(ctx, label(1), label(2)) },
			"RemoveSubscriptions": func() error { return store.RemoveSubscriptions(ctx, label(1)) },
			"Use":                 func() error { return store.Use(ctx, trigger(2), noon) },
			"LastUsed":            func() error { _, err := store.LastUsed(ctx, activity.KindTriggerToken, uid(1)); return err },
			"RemoveUses":          func() error { return store.RemoveUses(ctx, trigger(1)) },
			"Check":               func() error { return store.Check(ctx) },
		} {
			g.Expect(call()).To(MatchError(context.Canceled), name)
		}
		expectSubscribed(t, store, userMax, 1)
		expectLastUsed(t, store, map[int64]time.Time{1: noon})
		g.Expect(store.Use(t.Context(), trigger(2), noon)).To(Succeed(), "after a use that was not written")
		expectLastUsed(t, store, map[int64]time.Time{1: noon, 2: noon})

		_, err := activity.Open(ctx, activity.Options{Database: database})
		g.Expect(err).To(MatchError(context.Canceled))
	})
}

func TestACallWaitsForALockNoLongerThanItsContext(t *testing.T) {
	onEachEngine(t, func(t *testing.T, database string) {
		g, store := NewWithT(t), open(t, database)
		defer lockTables(t, database)()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		begun := time.Now()
		_, err := store.Subscribe(ctx, who(userMax), label(1))
		g.Expect(err).To(MatchError(context.DeadlineExceeded))
		g.Expect(time.Since(begun)).To(BeNumerically("<", 3*time.Second))
	})
}

func TestACallWithoutAnEndHasOneAllTheSame(t *testing.T) {
	onEachEngine(t, func(t *testing.T, database string) {
		t.Parallel() // it waits for seconds to pass
		g, store := NewWithT(t), open(t, database)
		defer lockTables(t, database)()
		_, err := store.Subscribe(t.Context(), who(userMax), label(1))
		g.Expect(err).To(MatchError(And(ContainSubstring("subscribing user 7 to label 1"), ContainSubstring("did not answer within 5s"))))
	})
}

func TestADatabaseThatCannotBeOpenedIsNamedWithoutItsPassword(t *testing.T) {
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
	for database, want := range map[string]types.GomegaMatcher{
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
		_, err := activity.Open(t.Context(), activity.Options{Database: database})
		g.Expect(err).To(MatchError(And(want, Not(ContainSubstring("hush")), Not(ContainSubstring("sh@")))), database)
	}
}
