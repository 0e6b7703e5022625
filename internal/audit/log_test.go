package audit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/forgeplane/forgeplane/internal/git/update"
)

// stuck is a writer that blocks until let is closed.
type stuck struct {
	let chan struct{}
	err error
}

func (s *stuck) Write(p []byte) (int, error) {
	<-s.let
	return len(p), s.err
}

func (*stuck) Close() error { return nil }

func TestLog_countsDroppedLinesAndDoesNotBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &stuck{let: make(chan struct{})}
		l, err := start(out, Options{Log: logr.Discard()})
		if err != nil {
			t.Fatal(err)
		}
		const more = 3
		for i := range queue {
			l.Write(by(i % 4))
		}
		var all sync.WaitGroup
		for i := range more {
			all.Go(func() { l.Write(by(5 + i)) })
		}
		all.Wait()
		if n := testutil.ToFloat64(l.lines.WithLabelValues(dropped)); n != more {
			t.Errorf("%v lines are counted as lost, want %d", n, more)
		}
		close(out.let)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if n := testutil.ToFloat64(l.lines.WithLabelValues(written)); n != queue {
			t.Errorf("%v lines are counted as written", n)
		}
		l.Write(Event{Action: "late"})
		if n := testutil.ToFloat64(l.lines.WithLabelValues(dropped)); n != more+1 {
			t.Errorf("a line after the end is not counted: %v", n)
		}
	})
}

// by returns an event of the user with an id.
func by(id int) Event { return Event{Action: "push", User: &User{ID: int64(id)}} }

func TestLog_keepsLinesOfOthersWhenOneCallerFloods(t *testing.T) {
	elsewhere := func(i int) Event { return Event{Address: fmt.Sprintf("198.51.%d.%d", i/256, i%256)} }
	refs := make([]Ref, maxRefs)
	for i := range refs {
		refs[i] = Ref{Ref: update.Ref{Name: fmt.Sprintf("refs/heads/%0*d", 490, i)}, Result: Done}
	}
	for about, flood := range map[string]func(i int) Event{
		"a user":         func(i int) Event { return Event{User: &User{ID: 1}, Refs: refs[:max(0, i%1000-900)]} },
		"by sudo":        func(i int) Event { return Event{User: &User{ID: int64(i)}, Sudo: &User{ID: 1}} },
		"an account":     func(i int) Event { return Event{Identity: fmt.Sprint("system:serviceaccount:acme:", i)} },
		"an address":     func(int) Event { return elsewhere(0) },
		"many addresses": elsewhere,
		"a namespace": func(i int) Event {
			return Event{Door: Controller, About: &Object{Namespace: "acme", Name: fmt.Sprint(i)}}
		},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				out := &stuck{let: make(chan struct{})}
				l, err := start(out, Options{Log: logr.Discard()})
				if err != nil {
					t.Fatal(err)
				}
				var flooded, others sync.WaitGroup
				for i := range 2 * queue {
					flooded.Go(func() { l.Write(flood(i)) })
				}
				synctest.Wait()
				begun := time.Now()
				for i, e := range []Event{
					by(2), {User: &User{ID: 3}, Refs: refs}, {Identity: "system:serviceaccount:other:x"},
					{Door: Controller, About: &Object{Namespace: "other"}},
				} {
					others.Go(func() {
						l.Write(e)
						if waited := time.Since(begun); waited > 0 {
							t.Errorf("%d: another caller waits %s", i, waited)
						}
					})
				}
				others.Wait()
				flooded.Wait()
				lost := testutil.ToFloat64(l.lines.WithLabelValues(dropped))
				close(out.let)
				if err := l.Close(); err != nil {
					t.Error(err)
				}
				if lost == 0 || testutil.ToFloat64(l.lines.WithLabelValues(dropped)) != lost {
					t.Errorf("%v lines are lost", lost)
				}
			})
		})
	}
}

func TestLog_reportsFailedLinesInProcessLog(t *testing.T) {
	out := &stuck{let: make(chan struct{}), err: errors.New("no space left on device")}
	close(out.let)
	var told []string
	l, err := start(out, Options{Log: funcr.New(func(_, args string) { told = append(told, args) }, funcr.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	l.Write(Event{Action: "POST /projects"})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if len(told) != 1 || !strings.Contains(told[0], "POST /projects") || !strings.Contains(told[0], "no space left") {
		t.Errorf("told: %q", told)
	}
	if n := testutil.ToFloat64(l.lines.WithLabelValues(failed)); n != 1 {
		t.Errorf("%v lines are counted as failed", n)
	}
}

func TestLog_keepsLinesOfConcurrentWritersWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	registry := prometheus.NewRegistry()
	l, err := Open(Options{Path: path, Metrics: []prometheus.Registerer{registry}, Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	const writers, each = 20, 200
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range each {
				l.Write(Event{Action: "push", Reason: strings.Repeat("x", 200)})
			}
		})
	}
	all.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n != writers*each {
		t.Errorf("%d lines, want %d", n, writers*each)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file can be read by others: %v, %v", info.Mode(), err)
	}
}

func TestOpen_failsIfFileCannotBeWritten(t *testing.T) {
	if _, err := Open(Options{Path: filepath.Join(t.TempDir(), "nowhere", "audit.log")}); err == nil {
		t.Error("no error")
	}
	l, err := Open(Options{Path: Off})
	if l != nil || err != nil {
		t.Errorf("%v, %v", l, err)
	}
	l.Write(Event{}) // a nil log must accept events
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

var _ io.WriteCloser = (*stuck)(nil)
