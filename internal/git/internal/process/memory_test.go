package process_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/snapshot"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
	"github.com/forgeplane/forgeplane/test/patience"
	"github.com/forgeplane/forgeplane/test/soak"
)

// greedy returns a repository in which every archive uses 64 MiB of memory until finish is called, and in which the commit small can be
// read.
func greedy(t *testing.T, total int64, wait time.Duration) (e *git.Engine, r *git.Repository, small string, finish func()) {
	t.Helper()
	return greedyIn(t, "archive*", "", total, wait)
}

// greedyIn is greedy for the commands that match a pattern, whose output is redirected to to.
func greedyIn(t *testing.T, pattern, to string, total int64, wait time.Duration) (e *git.Engine, r *git.Repository, small string, finish func()) {
	t.Helper()
	c := gittest.New(t, "sha1")
	small = c.Commit(t, "a", "a")
	large := c.Write(t, "commit", "tree "+c.Git(t, "rev-parse", small+"^{tree}")+"\nauthor a <a> 0 +0000\ncommitter a <a> 0 +0000\n\n"+
		strings.Repeat("m", 64<<20))
	c.Git(t, "update-ref", "refs/heads/large", large)
	end := filepath.Join(t.TempDir(), "end")
	binary := gittest.Script(t, `case "$*" in `+pattern+`) GIT_ALTERNATE_OBJECT_DIRECTORIES="$PWD/objects" git cat-file commit `+large+` | { head -c 200000 `+to+`; until [ -e `+end+` ]; do sleep 0.05; done; cat >/dev/null; };;
	*) exec git "$@";; esac`)
	e = gittest.EngineOf(t, git.Options{Binary: binary, Limits: git.Limits{MemoryTotal: total}, MemoryWait: wait})
	return e, gittest.Repository(t, e, gittest.Storage(t, c), "b.git"), small, func() {
		if err := os.WriteFile(end, nil, 0o600); err != nil {
			t.Error(err)
		}
	}
}

// archive requests an archive for a caller.
func archive(t *testing.T, r *git.Repository, k fair.Key, commit string) (begun <-chan struct{}, ended <-chan error) {
	t.Helper()
	to, result := &gittest.Begin{Begun: make(chan struct{})}, make(chan error, 1)
	go func() {
		result <- snapshot.WriteArchive(fair.With(t.Context(), k), r, snapshot.Archive{Commit: commit, Prefix: rand.Text(), Format: snapshot.Tar}, to)
	}()
	return to.Begun, result
}

func TestMemoryOfAllProcesses_exceeded(t *testing.T) {
	for name, enough := range map[string]bool{"with less than they take": false, "with as much as they take": true} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, r, small, finish := greedy(t, map[bool]int64{false: 200 << 20, true: 1 << 30}[enough], 0)
			ended := make(chan error, 4)
			begun, modest := archive(t, r, fair.User(2), small)
			g.Eventually(begun).WithTimeout(patience.Wait).Should(BeClosed())
			for range 3 {
				_, greedy := archive(t, r, fair.User(1), small)
				go func() { ended <- <-greedy }()
			}
			if enough {
				g.Consistently(ended).Should(BeEmpty())
			} else {
				var err error
				g.Eventually(ended).WithTimeout(patience.Wait).Should(Receive(&err))
				g.Expect(git.LimitReached(err)).To(Equal("This was stopped because not enough memory is available: the server allows all Git processes "+
					"together 200 MiB. Ask for less, or try again later."), "%v", err)
				g.Expect(git.LastingLimit(err)).To(BeEmpty(), "later there may be enough")
				ended <- nil
			}
			_, _, err := r.Read(fair.With(t.Context(), fair.User(1)), small, 1000)
			g.Expect(err).NotTo(HaveOccurred(), "what is small goes on")
			finish()
			for range 3 {
				g.Eventually(ended).WithTimeout(patience.Wait).Should(Receive(BeNil()), "the others of the same caller")
			}
			g.Eventually(modest).WithTimeout(patience.Wait).Should(Receive(BeNil()), "another caller")
		})
	}
}

func TestMemoryOfAllProcesses_isWaitedFor(t *testing.T) {
	soak.Only(t)
	g := NewWithT(t)
	e, r, small, finish := greedy(t, 100<<20, 100*time.Millisecond) // 75 MiB for heavy processes
	begun, running := archive(t, r, fair.User(1), small)
	g.Eventually(begun).WithTimeout(patience.Wait).Should(BeClosed())
	// Before the 64 MiB are in use, another archive would begin, and end the first one.
	g.Eventually(e.Processes().HeavyMemory).WithTimeout(patience.Wait).Should(BeNumerically(">", 60))
	refused := func(k fair.Key) func() string {
		return func() string {
			err := snapshot.WriteArchive(fair.With(t.Context(), k), r, snapshot.Archive{Commit: small, Prefix: rand.Text(), Format: snapshot.Zip}, io.Discard)
			if busy := (*fair.Busy)(nil); errors.As(err, &busy) && errors.Is(err, process.ErrBusy) {
				return busy.Error()
			}
			return ""
		}
	}
	g.Eventually(refused(fair.User(1))).WithTimeout(patience.Wait).Should(Equal(
		"Your Git processes use all of the 37 MiB of memory that one caller can have while others need memory. Please try again in 10 seconds."))
	g.Eventually(refused(fair.User(2))).WithTimeout(patience.Wait).Should(Equal(
		"The server is busy: its Git processes use all of the 75 MiB of memory that it allows them together. Please try again in 10 seconds."))
	_, err := history.MergeBase(fair.With(t.Context(), fair.User(2)), r, small, small, nil)
	g.Expect(err).NotTo(HaveOccurred(), "what a push is decided by")

	finish()
	g.Eventually(running).WithTimeout(patience.Wait).Should(Receive(BeNil()))
	_, waited := archive(t, r, fair.User(2), small)
	g.Eventually(waited).WithTimeout(patience.Wait).Should(Receive(BeNil()))
}

func TestMemoryOfAllProcesses_isSharedWhenOthersWait(t *testing.T) {
	soak.Only(t)
	for about, holder := range map[string]fair.Key{"of a user": fair.User(1), "of a namespace": fair.Namespace("acme"), "of Forgeplane itself": {}} {
		t.Run(about, func(t *testing.T) {
			g := NewWithT(t)
			e, r, small, finish := greedy(t, 100<<20, time.Minute)
			begun, running := archive(t, r, holder, small)
			g.Eventually(begun).WithTimeout(patience.Wait).Should(BeClosed())
			g.Eventually(e.Processes().HeavyMemory).WithTimeout(patience.Wait).Should(BeNumerically(">", 60))

			_, waiting := archive(t, r, fair.User(2), small)
			var err error
			g.Eventually(running).WithTimeout(patience.Wait).Should(Receive(&err))
			g.Expect(git.LimitReached(err)).To(ContainSubstring("100 MiB"), "%v", err)
			finish()
			g.Eventually(waiting).WithTimeout(patience.Wait).Should(Receive(BeNil()))
		})
	}
}

// stalled is a client that reads nothing until it is released.
type stalled struct {
	gittest.Begin
	release <-chan struct{}
}

func (s *stalled) Write(p []byte) (int, error) {
	_, _ = s.Begin.Write(p)
	<-s.release
	return len(p), nil
}

func TestLookups_getMemoryDespiteSlowClients(t *testing.T) {
	soak.Only(t)
	g := NewWithT(t)
	e := gittest.EngineOf(t, git.Options{Limits: git.Limits{MemoryTotal: 100 << 20}, MemoryWait: 100 * time.Millisecond}) // 25 MiB for light processes
	c := gittest.New(t, "sha1")
	large := c.Write(t, "blob", strings.Repeat("z", 31<<20))
	small := c.Commit(t, "a", "a")
	c.Git(t, "update-ref", "refs/tags/large", large)
	c.Git(t, "repack", "--quiet", "-a", "-d") // a blob that is not packed is never in memory as a whole
	r := gittest.Repository(t, e, gittest.Storage(t, c), "b.git")
	blob, err := snapshot.OpenBlob(t.Context(), r, large)
	g.Expect(err).NotTo(HaveOccurred())
	release, ended := make(chan struct{}), make(chan error, 1)
	client := &stalled{gittest.Begin{Begun: make(chan struct{})}, release}
	go func() { ended <- blob.Write(fair.With(t.Context(), fair.User(1)), client) }()
	g.Eventually(client.Begun).WithTimeout(patience.Wait).Should(BeClosed())
	g.Eventually(e.Processes().HeavyMemory).WithTimeout(patience.Wait).Should(BeNumerically(">", 30), "it is counted")
	_, err = refs.Containing(fair.With(t.Context(), fair.User(2)), r, small, "refs/heads/")
	g.Expect(err).NotTo(HaveOccurred(), "another caller")
	close(release)
	g.Eventually(ended).WithTimeout(patience.Wait).Should(Receive(BeNil()))
}

// An idle reader must not take memory from others.
func TestMemoryOfAllProcesses_isTakenFromIdleReaders(t *testing.T) {
	g := NewWithT(t)
	// Enough for two readers.
	e := gittest.EngineOf(t, git.Options{ReaderIdle: time.Hour, Limits: git.Limits{MemoryTotal: 16 << 20}, MemoryWait: time.Minute})
	c := gittest.New(t, "sha1")
	id := c.Commit(t, "a", "a")
	for range 5 {
		_, _, err := gittest.Repository(t, e, gittest.Storage(t, c), "b.git").Read(fair.With(t.Context(), fair.User(1)), id, 1000)
		g.Expect(err).NotTo(HaveOccurred())
	}
}

// A lookup is assumed to need little memory, even if it turns out to need much, so waiting for it does not take long.
func TestMemoryOfAllProcesses_endsLookingUpThatTakesMuch(t *testing.T) {
	soak.Only(t)
	for name, lookUp := range map[string]func(context.Context, *git.Repository) error{
		"the objects of a push": func(ctx context.Context, r *git.Repository) error {
			pack := filepath.Join(r.Dir(), "objects/tmp_objdir-incoming-a/pack/pack-a.pack")
			if err := errors.Join(os.MkdirAll(filepath.Dir(pack), 0o755), os.WriteFile(pack, nil, 0o644)); err != nil {
				return err
			}
			q, err := r.Quarantine("tmp_objdir-incoming-a")
			return errors.Join(err, transfer.CheckPush(ctx, r, q))
		},
		"refs": func(ctx context.Context, r *git.Repository) error {
			for _, err := range refs.List(ctx, r, "refs/") {
				return err
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			e, r, small, _ := greedyIn(t, "*--batch-all-objects*|for-each-ref*", ">/dev/null", 100<<20, time.Minute) // 25 MiB for light processes
			ended := make(chan error, 1)
			go func() { ended <- lookUp(fair.With(t.Context(), fair.User(1)), r) }()
			g.Eventually(e.Processes().LightMemory).WithTimeout(patience.Wait).Should(BeNumerically(">", 60))
			_, _, err := r.Read(fair.With(t.Context(), fair.User(2)), small, 1000)
			g.Expect(err).NotTo(HaveOccurred(), "another caller")
			g.Eventually(ended).WithTimeout(patience.Wait).Should(Receive(&err))
			g.Expect(git.LimitReached(err)).To(ContainSubstring("the server allows all Git processes together 100 MiB"), "%v", err)
		})
	}
}

func TestMemory_isBoundedForAMillionRefs(t *testing.T) {
	soak.Only(t)
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	id := c.Commit(t, "a", "a")
	c.Git(t, "repack", "--quiet", "-a", "-d")
	storage := gittest.Storage(t, c)
	packed := bytes.NewBufferString("# pack-refs with: peeled fully-peeled sorted \n")
	const listed = 1_000_000
	for i := range listed {
		fmt.Fprintf(packed, "%s refs/heads/%07d\n", id, i)
	}
	g.Expect(os.WriteFile(filepath.Join(storage, "b.git/packed-refs"), packed.Bytes(), 0o644)).To(Succeed())
	list := func(total int64) (n int, failed error) {
		e := gittest.EngineOf(t, git.Options{Limits: git.Limits{MemoryTotal: total}})
		for _, err := range refs.List(fair.With(t.Context(), fair.User(1)), gittest.Repository(t, e, storage, "b.git"), "refs/heads/") {
			if err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	}
	n, err := list(32 << 20)
	g.Expect(git.LimitReached(err)).To(Equal("This takes more than the 32 MiB of memory that the server allows a Git process."), "%d: %v", n, err)
	n, err = list(1 << 30)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(n).To(BeNumerically(">=", listed))
}

// Callers who have used up their share delay only themselves.
func TestMemoryOfAllProcesses_isNotTakenFromReadersOfOtherCallers(t *testing.T) {
	g := NewWithT(t)
	// 16 MiB for readers, 8 of them for one caller.
	o := gittest.Observe(t, git.Options{ReaderIdle: time.Hour, Limits: git.Limits{MemoryTotal: 64 << 20}, MemoryWait: time.Minute})
	c := gittest.New(t, "sha1")
	id := c.Commit(t, "a", "a")
	read := func(k fair.Key) {
		t.Helper()
		_, _, err := o.Of(t, c).Read(fair.With(t.Context(), k), id, 1000)
		g.Expect(err).NotTo(HaveOccurred())
	}
	read(fair.User(2))
	others := o.Alive(t)
	g.Expect(others).To(HaveLen(1))
	const reads = 10
	for range reads {
		read(fair.User(1))
	}
	g.Expect(o.Started(t)).To(HaveLen(1 + reads))
	g.Expect(len(o.Alive(t))).To(BeNumerically("<", 1+reads), "own readers make room")
	g.Expect(o.Alive(t)).To(ContainElements(others), "those of others do not")
}

func TestMemoryOfAllProcesses_givesUpWithTheRequest(t *testing.T) {
	g := NewWithT(t)
	e, r, small, finish := greedy(t, 100<<20, time.Minute)
	begun, running := archive(t, r, fair.User(1), small)
	g.Eventually(begun).WithTimeout(patience.Wait).Should(BeClosed())
	g.Eventually(e.Processes().HeavyMemory).WithTimeout(patience.Wait).Should(BeNumerically(">", 60))
	ctx, cancel := context.WithTimeout(fair.With(t.Context(), fair.User(2)), 50*time.Millisecond)
	defer cancel()
	err := snapshot.WriteArchive(ctx, r, snapshot.Archive{Commit: small, Prefix: "b", Format: snapshot.Tar}, io.Discard)
	g.Expect(err).To(MatchError(context.DeadlineExceeded))
	finish()
	g.Eventually(running).WithTimeout(patience.Wait).Should(Receive())
}
