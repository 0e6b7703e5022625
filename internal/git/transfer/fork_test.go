package transfer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
	"github.com/forgeplane/forgeplane/internal/git/upkeep"
)

// forks are a source and the place of its forks.
type forks struct {
	*testing.T
	c       *gittest.Client
	engine  *git.Engine
	storage string
	source  *git.Repository
}

// newForks returns a source with the branches main and topic, and an annotated tag.
func newForks(t *testing.T, format string) *forks {
	t.Helper()
	f := &forks{T: t, c: gittest.New(t, format), engine: gittest.NewEngine(t), storage: t.TempDir()}
	for i := range 5 {
		f.c.Commit(t, "a", fmt.Sprint(i))
	}
	f.c.Git(t, "branch", "topic", "HEAD~2")
	f.c.Git(t, "tag", "-a", "-m", "One", "v1", "HEAD~1")
	f.c.Git(t, "clone", "--quiet", "--mirror", ".", f.storage+"/source.git")
	f.source = f.repository("source")
	f.in(f.source, "repack", "-a", "-d", "-q", "--write-bitmap-index")
	f.in(f.source, "pack-refs", "--all")
	return f
}

func (f *forks) repository(name string) *git.Repository {
	return gittest.Repository(f, f.engine, f.storage, name+".git")
}

// in runs git in a repository.
func (f *forks) in(r *git.Repository, args ...string) string {
	f.Helper()
	return f.c.Git(f, append([]string{"--git-dir", r.Dir()}, args...)...)
}

// fork creates a fork, and checks that it has the objects that its refs need, and no others.
func (f *forks) fork(name string, o transfer.ForkOptions) *git.Repository {
	f.Helper()
	r := f.repository(name)
	if err := transfer.Fork(f.Context(), r, f.source, o); err != nil {
		f.Fatal(err)
	}
	f.check(r)
	return r
}

func (f *forks) check(r *git.Repository) {
	f.Helper()
	g := NewWithT(f)
	g.Expect(upkeep.Fsck(f.Context(), r, true)).To(Succeed())
	g.Expect(filepath.Join(r.Dir(), "objects/info/alternates")).NotTo(BeAnExistingFile())
	stored, reachable := f.objects(r), strings.Fields(f.in(r, "rev-list", "--objects", "--no-object-names", "--all"))
	slices.Sort(reachable)
	g.Expect(stored).To(Equal(slices.Compact(reachable)))
}

func (f *forks) objects(r *git.Repository) []string {
	f.Helper()
	stored := strings.Fields(f.in(r, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)"))
	slices.Sort(stored)
	return slices.Compact(stored)
}

// lost creates an object that no ref of the source needs any more, and returns its id.
func (f *forks) lost() string {
	f.Helper()
	f.c.Git(f, "checkout", "--quiet", "-b", "lost", "main")
	id := f.c.Commit(f, "password", "secret")
	f.c.Git(f, "push", "--quiet", f.source.Dir(), "lost")
	f.in(f.source, "update-ref", "-d", "refs/heads/lost")
	f.c.Git(f, "checkout", "--quiet", "main")
	f.c.Git(f, "branch", "--quiet", "-D", "lost")
	return id
}

// sharedWith returns the names of files that a repository has in common with the source.
func (f *forks) sharedWith(r *git.Repository, pattern string) (names []string) {
	f.Helper()
	all, err := filepath.Glob(filepath.Join(f.source.Dir(), "objects", pattern))
	NewWithT(f).Expect(err).NotTo(HaveOccurred())
	for _, file := range all {
		name := strings.TrimPrefix(file, f.source.Dir()+"/")
		one, err := os.Stat(file)
		NewWithT(f).Expect(err).NotTo(HaveOccurred())
		if other, err := os.Stat(filepath.Join(r.Dir(), name)); err == nil && os.SameFile(one, other) {
			names = append(names, name)
		}
	}
	return names
}

// keep maintains a repository as after a week.
func (f *forks) keep(r *git.Repository) {
	f.Helper()
	g := NewWithT(f)
	g.Expect(upkeep.Maintain(f.Context(), r)).To(Succeed())
	before := time.Now().Add(-8 * 24 * time.Hour)
	g.Expect(os.Chtimes(filepath.Join(r.Dir(), "forgeplane-maintenance"), before, before)).To(Succeed())
	g.Expect(upkeep.Maintain(f.Context(), r)).To(Succeed())
	g.Expect(upkeep.Fsck(f.Context(), r, true)).To(Succeed())
}

func TestFork(t *testing.T) {
	for _, format := range gittest.Formats {
		t.Run(format, func(t *testing.T) {
			g, f := NewWithT(t), newForks(t, format)
			f.in(f.source, "update-ref", "refs/forgeplane/x", "main") // an internal ref is not copied
			r := f.fork("fork", transfer.ForkOptions{})
			g.Expect(f.in(r, "for-each-ref")).To(Equal(f.in(f.source, "for-each-ref", "refs/heads", "refs/tags")))
			g.Expect(refs.ReadHead(t.Context(), r)).To(HaveField("Branch", "main"))
			g.Expect(f.sharedWith(r, "pack/*.pack")).To(HaveLen(1))
			g.Expect(f.sharedWith(r, "pack/*.bitmap")).To(HaveLen(1))
			g.Expect(gittest.Entries(t, f.storage)).To(ConsistOf("fork.git", "source.git"))
			g.Expect(transfer.Fork(t.Context(), r, f.repository("none"), transfer.ForkOptions{})).To(Succeed(), "it exists")

			chosen := f.fork("chosen", transfer.ForkOptions{DefaultBranch: "topic"})
			g.Expect(refs.ReadHead(t.Context(), chosen)).To(HaveField("Branch", "topic"))
		})
	}
}

func TestFork_ofLooseObjects(t *testing.T) {
	g, f := NewWithT(t), newForks(t, "sha1")
	f.c.Commit(t, "b", "loose")
	f.c.Git(t, "push", "--quiet", f.source.Dir(), "main")
	r := f.fork("fork", transfer.ForkOptions{})
	g.Expect(f.sharedWith(r, "??/*")).To(HaveLen(3))
	g.Expect(f.sharedWith(r, "pack/*.pack")).To(HaveLen(1))
}

func TestFork_ofEmptyRepository(t *testing.T) {
	g, f := NewWithT(t), newForks(t, "sha256")
	g.Expect(os.RemoveAll(f.source.Dir())).To(Succeed())
	g.Expect(transfer.Fork(t.Context(), f.repository("fork"), f.source, transfer.ForkOptions{})).To(MatchError(git.ErrNotFound))
	g.Expect(f.source.Init(t.Context(), git.InitOptions{DefaultBranch: "start", ObjectFormat: "sha256"})).To(Succeed())
	r := f.fork("fork", transfer.ForkOptions{ObjectFormat: "sha256"})
	g.Expect(refs.ReadHead(t.Context(), r)).To(Equal(refs.Head{Branch: "start"}))
	g.Expect(f.in(r, "rev-parse", "--show-object-format")).To(Equal("sha256"))
}

func TestFork_hasNoUnreachableObject(t *testing.T) {
	for state, prepare := range map[string]func(f *forks){
		"loose": func(*forks) {},
		"packed": func(f *forks) {
			f.in(f.source, "repack", "-d", "-q", "--cruft")
			f.in(f.source, "repack", "-d", "-a", "-k", "-q")
		},
		"cruft": func(f *forks) { f.in(f.source, "repack", "-d", "-q", "--cruft") },
	} {
		t.Run(state, func(t *testing.T) {
			g, f := NewWithT(t), newForks(t, "sha1")
			id := f.lost()
			prepare(f)
			f.in(f.source, "cat-file", "-e", id)
			r := f.fork("fork", transfer.ForkOptions{})
			_, err := f.c.Try("--git-dir", r.Dir(), "cat-file", "-e", id)
			g.Expect(err).To(HaveOccurred())
			if state == "packed" {
				g.Expect(f.sharedWith(r, "pack/*.pack")).To(BeEmpty())
			} else {
				g.Expect(f.sharedWith(r, "pack/*.pack")).To(HaveLen(1))
			}
		})
	}
}

// The source has as many objects that the fork does not need as the fork needs of those that the source keeps as unreachable.
func TestFork_findsAnObjectThatIsReachableAgain(t *testing.T) {
	f := newForks(t, "sha1")
	file := f.in(f.source, "rev-parse", f.lost()+":password")
	f.in(f.source, "repack", "-d", "-q", "--cruft")
	f.in(f.source, "read-tree", "main")
	f.in(f.source, "update-index", "--add", "--cacheinfo", "100644,"+file+",again")
	again := f.in(f.source, "commit-tree", "-p", "main", "-m", "Again", f.in(f.source, "write-tree"))
	f.in(f.source, "update-ref", "refs/heads/again", again)
	f.in(f.source, "hash-object", "-w", filepath.Join(f.source.Dir(), "config"))
	f.fork("fork", transfer.ForkOptions{})
}

func TestFork_ofSomeBranches(t *testing.T) {
	g, f := NewWithT(t), newForks(t, "sha1")
	r := f.fork("fork", transfer.ForkOptions{Branches: []string{"topic", "unknown"}})
	g.Expect(gittest.RefNames(t, r)).To(Equal([]string{"refs/heads/topic"}))
	g.Expect(refs.ReadHead(t.Context(), r)).To(HaveField("Branch", "topic"))
	g.Expect(f.sharedWith(r, "pack/*")).To(BeEmpty())
	second := f.fork("second", transfer.ForkOptions{Branches: []string{"unknown", "topic"}})
	g.Expect(refs.ReadHead(t.Context(), second)).To(HaveField("Branch", "topic"))
	err := transfer.Fork(t.Context(), f.repository("no"), f.source, transfer.ForkOptions{Branches: []string{"unknown", "tpyo"}})
	g.Expect(err).To(MatchError("the project has none of the branches unknown, tpyo"))
	g.Expect(f.repository("no").Check()).To(MatchError(git.ErrNotFound))
	main := f.fork("main", transfer.ForkOptions{Branches: []string{"main"}})
	g.Expect(gittest.RefNames(t, main)).To(Equal([]string{"refs/heads/main"}))
}

func TestFork_sharesPacksOfWhichItNeedsEachObject(t *testing.T) {
	g, f := NewWithT(t), newForks(t, "sha1")
	before := f.sharedWith(f.source, "pack/*.pack")
	f.c.Commit(t, "b", "new")
	f.c.Git(t, "push", "--quiet", f.source.Dir(), "main")
	id := f.lost()
	// The second pack has the new commit and the lost one.
	f.in(f.source, "update-ref", "refs/heads/lost", id)
	f.in(f.source, "repack", "-q", "-d")
	f.in(f.source, "update-ref", "-d", "refs/heads/lost")
	g.Expect(f.sharedWith(f.source, "pack/*.pack")).To(HaveLen(2))
	r := f.fork("fork", transfer.ForkOptions{})
	g.Expect(f.sharedWith(r, "pack/*.pack")).To(Equal(before))
	_, err := f.c.Try("--git-dir", r.Dir(), "cat-file", "-e", id)
	g.Expect(err).To(HaveOccurred())
}

func TestFork_copiesBetweenFileSystems(t *testing.T) {
	const memory = "/dev/shm"
	storage, err := os.MkdirTemp(memory, "forks")
	if err != nil {
		t.Skipf("%s is not there: %v", memory, err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(storage) })
	g, f := NewWithT(t), newForks(t, "sha1")
	if os.Link(f.source.Dir()+"/HEAD", storage+"/HEAD") == nil {
		t.Skipf("%s is on the same file system", memory)
	}
	f.storage = storage
	r := f.fork("fork", transfer.ForkOptions{})
	g.Expect(f.in(r, "for-each-ref")).To(Equal(f.in(f.source, "for-each-ref")))
}

func TestFork_outlivesItsSource(t *testing.T) {
	g, f := NewWithT(t), newForks(t, "sha1")
	r := f.fork("fork", transfer.ForkOptions{})
	f.keep(f.source)
	f.keep(r)
	g.Expect(f.sharedWith(r, "pack/*.pack")).To(HaveLen(1), "maintenance keeps what both need")

	f.c.Commit(t, "b", "only in the fork")
	f.c.Git(t, "push", "--quiet", r.Dir(), "main")
	_, err := f.c.Try("--git-dir", f.source.Dir(), "cat-file", "-e", f.c.Git(t, "rev-parse", "main"))
	g.Expect(err).To(HaveOccurred(), "the source does not have what is pushed to the fork")

	// The source loses a branch and repacks. Its objects must not stay because of the fork.
	f.in(f.source, "update-ref", "-d", "refs/tags/v1")
	f.in(f.source, "update-ref", "refs/heads/main", "topic")
	f.keep(f.source)
	g.Expect(f.sharedWith(r, "pack/*.pack")).To(BeEmpty())
	f.in(f.source, "prune", "--expire=now")
	f.keep(r)
	f.check(r)

	again := f.fork("again", transfer.ForkOptions{})
	g.Expect(f.source.Remove(t.Context())).To(Succeed())
	f.keep(again)
	f.check(again)
	f.check(r)
}

func TestForks_pinFewPacksOfTheirSource(t *testing.T) {
	g, f := NewWithT(t), newForks(t, "sha1")
	for i := range 6 {
		f.c.Commit(t, "b", fmt.Sprint(i))
		f.c.Git(t, "push", "--quiet", f.source.Dir(), "main")
		f.in(f.source, "repack", "-q", "-d")
		f.fork(fmt.Sprint("fork-", i), transfer.ForkOptions{})
	}
	g.Expect(f.sharedWith(f.source, "pack/*.pack")).To(HaveLen(7))
	f.keep(f.source)
	g.Expect(len(f.sharedWith(f.source, "pack/*.pack"))).To(BeNumerically("<=", 5), "four shared ones, and one with the rest")
	f.check(f.repository("fork-5"))
}
