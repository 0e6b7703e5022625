package git_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

// begin is a writer that signals when it has received something.
type begin struct {
	begun chan struct{}
	once  sync.Once
}

func (b *begin) Write(p []byte) (int, error) {
	b.once.Do(func() { close(b.begun) })
	return len(p), nil
}

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
	binary := script(t, `case "$*" in `+pattern+`) GIT_ALTERNATE_OBJECT_DIRECTORIES="$PWD/objects" git cat-file commit `+large+` | { head -c 200000 `+to+`; until [ -e `+end+` ]; do sleep 0.05; done; cat >/dev/null; };;
	*) exec git "$@";; esac`)
	e = scarce(t, git.Options{Binary: binary, Limits: git.Limits{MemoryTotal: total}, MemoryWait: wait})
	return e, repository(t, e, bareStorage(t, c), "b.git"), small, func() {
		if err := os.WriteFile(end, nil, 0o600); err != nil {
			t.Error(err)
		}
	}
}

func scarce(t *testing.T, o git.Options) *git.Engine {
	t.Helper()
	e, err := git.NewEngine(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// archive requests an archive for a caller.
func archive(t *testing.T, r *git.Repository, k fair.Key, commit string) (begun <-chan struct{}, ended <-chan error) {
	t.Helper()
	to, result := &begin{begun: make(chan struct{})}, make(chan error, 1)
	go func() {
		result <- r.Archive(fair.With(t.Context(), k), git.Archive{Commit: commit, Prefix: rand.Text(), Format: git.Tar}, to)
	}()
	return to.begun, result
}

func TestMemoryOfAllProcesses_exceeded(t *testing.T) {
	for name, enough := range map[string]bool{"with less than they take": false, "with as much as they take": true} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, r, small, finish := greedy(t, map[bool]int64{false: 200 << 20, true: 1 << 30}[enough], 0)
			ended := make(chan error, 4)
			begun, modest := archive(t, r, fair.User(2), small)
			g.Eventually(begun).WithTimeout(time.Minute).Should(BeClosed())
			for range 3 {
				_, greedy := archive(t, r, fair.User(1), small)
				go func() { ended <- <-greedy }()
			}
			if enough {
				g.Consistently(ended).Should(BeEmpty())
			} else {
				var err error
				g.Eventually(ended).WithTimeout(time.Minute).Should(Receive(&err))
				g.Expect(git.LimitReached(err)).To(Equal("This was stopped because not enough memory is available: the server allows all Git processes "+
					"together 200 MiB. Ask for less, or try again later."), "%v", err)
				g.Expect(git.LastingLimit(err)).To(BeEmpty(), "later there may be enough")
				ended <- nil
			}
			_, _, err := r.Read(fair.With(t.Context(), fair.User(1)), small, 1000)
			g.Expect(err).NotTo(HaveOccurred(), "what is small goes on")
			finish()
			for range 3 {
				g.Eventually(ended).WithTimeout(time.Minute).Should(Receive(BeNil()), "the others of the same caller")
			}
			g.Eventually(modest).WithTimeout(time.Minute).Should(Receive(BeNil()), "another caller")
		})
	}
}

func TestMemoryOfAllProcesses_isWaitedFor(t *testing.T) {
	g := NewWithT(t)
	_, r, small, finish := greedy(t, 100<<20, 100*time.Millisecond) // 75 MiB for heavy processes
	begun, running := archive(t, r, fair.User(1), small)
	g.Eventually(begun).WithTimeout(time.Minute).Should(BeClosed())
	// The 64 MiB count once they are in use.
	refused := func(k fair.Key) func() string {
		return func() string {
			err := r.Archive(fair.With(t.Context(), k), git.Archive{Commit: small, Prefix: rand.Text(), Format: git.Zip}, io.Discard)
			if busy := (*fair.Busy)(nil); errors.As(err, &busy) && errors.Is(err, git.ErrBusy) {
				return busy.Error()
			}
			return ""
		}
	}
	g.Eventually(refused(fair.User(1))).WithTimeout(time.Minute).Should(Equal(
		"Your Git processes use all of the 37 MiB of memory that one caller can have while others need memory. Please try again in 10 seconds."))
	g.Eventually(refused(fair.User(2))).WithTimeout(time.Minute).Should(Equal(
		"The server is busy: its Git processes use all of the 75 MiB of memory that it allows them together. Please try again in 10 seconds."))
	_, err := r.MergeBase(fair.With(t.Context(), fair.User(2)), small, small, nil)
	g.Expect(err).NotTo(HaveOccurred(), "what a push is decided by")

	finish()
	g.Eventually(running).WithTimeout(time.Minute).Should(Receive(BeNil()))
	_, waited := archive(t, r, fair.User(2), small)
	g.Eventually(waited).WithTimeout(time.Minute).Should(Receive(BeNil()))
}

func TestMemoryOfAllProcesses_isSharedWhenOthersWait(t *testing.T) {
	for about, holder := range map[string]fair.Key{"of a user": fair.User(1), "of a namespace": fair.Namespace("acme"), "of Forgeplane itself": {}} {
		t.Run(about, func(t *testing.T) {
			g := NewWithT(t)
			e, r, small, finish := greedy(t, 100<<20, time.Minute)
			begun, running := archive(t, r, holder, small)
			g.Eventually(begun).WithTimeout(time.Minute).Should(BeClosed())
			g.Eventually(e.HeavyMemory).WithTimeout(time.Minute).Should(BeNumerically(">", 60))

			_, waiting := archive(t, r, fair.User(2), small)
			var err error
			g.Eventually(running).WithTimeout(time.Minute).Should(Receive(&err))
			g.Expect(git.LimitReached(err)).To(ContainSubstring("100 MiB"), "%v", err)
			finish()
			g.Eventually(waiting).WithTimeout(time.Minute).Should(Receive(BeNil()))
		})
	}
}

// stalled is a client that reads nothing until it is released.
type stalled struct {
	begin
	release <-chan struct{}
}

func (s *stalled) Write(p []byte) (int, error) {
	_, _ = s.begin.Write(p)
	<-s.release
	return len(p), nil
}

func TestMemoryOfAllProcesses_isNotKeptFromLookingUpBySlowClients(t *testing.T) {
	g := NewWithT(t)
	e := scarce(t, git.Options{Limits: git.Limits{MemoryTotal: 100 << 20}, MemoryWait: 100 * time.Millisecond}) // 25 MiB for light processes
	c := gittest.New(t, "sha1")
	large := c.Write(t, "blob", strings.Repeat("z", 31<<20))
	small := c.Commit(t, "a", "a")
	c.Git(t, "update-ref", "refs/tags/large", large)
	c.Git(t, "repack", "--quiet", "-a", "-d") // a blob that is not packed is never in memory as a whole
	r := repository(t, e, bareStorage(t, c), "b.git")
	blob, err := r.Blob(t.Context(), large)
	g.Expect(err).NotTo(HaveOccurred())
	release, ended := make(chan struct{}), make(chan error, 1)
	client := &stalled{begin{begun: make(chan struct{})}, release}
	go func() { ended <- blob.Write(fair.With(t.Context(), fair.User(1)), client) }()
	g.Eventually(client.begun).WithTimeout(time.Minute).Should(BeClosed())
	g.Eventually(e.HeavyMemory).WithTimeout(time.Minute).Should(BeNumerically(">", 30), "it is counted")
	_, err = r.RefsWith(fair.With(t.Context(), fair.User(2)), small, "refs/heads/")
	g.Expect(err).NotTo(HaveOccurred(), "another caller")
	close(release)
	g.Eventually(ended).WithTimeout(time.Minute).Should(Receive(BeNil()))
}

// An idle reader must not take memory from others.
func TestMemoryOfAllProcesses_isTakenFromIdleReaders(t *testing.T) {
	g := NewWithT(t)
	// Enough for two readers.
	e := scarce(t, git.Options{ReaderIdle: time.Hour, Limits: git.Limits{MemoryTotal: 16 << 20}, MemoryWait: time.Minute})
	c := gittest.New(t, "sha1")
	id := c.Commit(t, "a", "a")
	for range 5 {
		_, _, err := repository(t, e, bareStorage(t, c), "b.git").Read(fair.With(t.Context(), fair.User(1)), id, 1000)
		g.Expect(err).NotTo(HaveOccurred())
	}
}

// A lookup is assumed to need little memory, even if it turns out to need much, so waiting for it does not take long.
func TestMemoryOfAllProcesses_endsLookingUpThatTakesMuch(t *testing.T) {
	for name, lookUp := range map[string]func(context.Context, *git.Repository) error{
		"the objects of a push": func(ctx context.Context, r *git.Repository) error {
			pack := filepath.Join(r.Dir(), "objects/tmp_objdir-incoming-a/pack/pack-a.pack")
			if err := errors.Join(os.MkdirAll(filepath.Dir(pack), 0o755), os.WriteFile(pack, nil, 0o644)); err != nil {
				return err
			}
			q, err := r.Quarantine("tmp_objdir-incoming-a")
			return errors.Join(err, r.CheckPush(ctx, q))
		},
		"refs": func(ctx context.Context, r *git.Repository) error {
			for _, err := range r.Refs(ctx, "refs/") {
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
			g.Eventually(e.LightMemory).WithTimeout(time.Minute).Should(BeNumerically(">", 60))
			_, _, err := r.Read(fair.With(t.Context(), fair.User(2)), small, 1000)
			g.Expect(err).NotTo(HaveOccurred(), "another caller")
			g.Eventually(ended).WithTimeout(time.Minute).Should(Receive(&err))
			g.Expect(git.LimitReached(err)).To(ContainSubstring("the server allows all Git processes together 100 MiB"), "%v", err)
		})
	}
}

func TestMemory_isBoundedForAMillionRefs(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	id := c.Commit(t, "a", "a")
	c.Git(t, "repack", "--quiet", "-a", "-d")
	storage := bareStorage(t, c)
	packed := bytes.NewBufferString("# pack-refs with: peeled fully-peeled sorted \n")
	const refs = 1_000_000
	for i := range refs {
		fmt.Fprintf(packed, "%s refs/heads/%07d\n", id, i)
	}
	g.Expect(os.WriteFile(filepath.Join(storage, "b.git/packed-refs"), packed.Bytes(), 0o644)).To(Succeed())
	list := func(total int64) (n int, failed error) {
		e := scarce(t, git.Options{Limits: git.Limits{MemoryTotal: total}})
		for _, err := range repository(t, e, storage, "b.git").Refs(fair.With(t.Context(), fair.User(1)), "refs/heads/") {
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
	g.Expect(n).To(BeNumerically(">=", refs))
}

// Callers who have used up their share delay only themselves.
func TestMemoryOfAllProcesses_isNotTakenFromReadersOfOthersForWhoHasAShare(t *testing.T) {
	g := NewWithT(t)
	// 16 MiB for readers, 8 of them for one caller.
	o := observe(t, git.Options{ReaderIdle: time.Hour, Limits: git.Limits{MemoryTotal: 64 << 20}, MemoryWait: time.Minute})
	c := gittest.New(t, "sha1")
	id := c.Commit(t, "a", "a")
	read := func(k fair.Key) {
		t.Helper()
		_, _, err := o.of(t, c).Read(fair.With(t.Context(), k), id, 1000)
		g.Expect(err).NotTo(HaveOccurred())
	}
	read(fair.User(2))
	others := o.alive(t)
	g.Expect(others).To(HaveLen(1))
	const reads = 10
	for range reads {
		read(fair.User(1))
	}
	g.Expect(o.started(t)).To(HaveLen(1 + reads))
	g.Expect(len(o.alive(t))).To(BeNumerically("<", 1+reads), "own readers make room")
	g.Expect(o.alive(t)).To(ContainElements(others), "those of others do not")
}

func TestMemoryOfAllProcesses_givesUpWithTheRequest(t *testing.T) {
	g := NewWithT(t)
	e, r, small, finish := greedy(t, 100<<20, time.Minute)
	begun, running := archive(t, r, fair.User(1), small)
	g.Eventually(begun).WithTimeout(time.Minute).Should(BeClosed())
	g.Eventually(e.HeavyMemory).WithTimeout(time.Minute).Should(BeNumerically(">", 60))
	ctx, cancel := context.WithTimeout(fair.With(t.Context(), fair.User(2)), 50*time.Millisecond)
	defer cancel()
	err := r.Archive(ctx, git.Archive{Commit: small, Prefix: "b", Format: git.Tar}, io.Discard)
	g.Expect(err).To(MatchError(context.DeadlineExceeded))
	finish()
	g.Eventually(running).WithTimeout(time.Minute).Should(Receive())
}

func TestHalfMemory(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	const machine = "proc/meminfo"
	for name, tt := range map[string]struct {
		root fs.FS
		want int64
	}{
		"nothing is known": {fstest.MapFS{}, 0},
		"the machine":      {fstest.MapFS{machine: file("MemTotal:       24683840 kB\nMemFree: 1 kB\n")}, 12052 << 20},
		"version 2, in a container": {fstest.MapFS{
			machine: file("MemTotal: 24683840 kB\n"), "proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("536870912\n"),
		}, 256 << 20},
		"version 2, without a limit": {fstest.MapFS{
			machine: file("MemTotal: 2048 kB\n"), "proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("max\n"),
		}, 1 << 20},
		"version 2, of a group above": {fstest.MapFS{
			"proc/self/cgroup": file("0::/a.slice/b.service\n"), "sys/fs/cgroup/a.slice/b.service/memory.max": file("max\n"),
			"sys/fs/cgroup/a.slice/memory.max": file("4194304\n"),
		}, 2 << 20},
		"version 1, in a container": {fstest.MapFS{
			machine: file("MemTotal: 24683840 kB\n"), "proc/self/cgroup": file("5:cpu:/docker/1\n4:memory:/docker/1\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes": file("1073741824\n"),
		}, 512 << 20},
		"version 1, without a limit": {fstest.MapFS{
			machine: file("MemTotal: 2048 kB\n"), "proc/self/cgroup": file("4:memory:/\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712\n"),
		}, 1 << 20},
	} {
		if got := git.HalfOf(tt.root); got != tt.want {
			t.Errorf("%s: got %d, want %d", name, got, tt.want)
		}
	}
}
