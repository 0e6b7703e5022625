package git_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/snapshot"
	"github.com/forgeplane/forgeplane/test/patience"
	"github.com/forgeplane/forgeplane/test/seed"
)

func TestObjects_areReadByNameAndPath(t *testing.T) {
	const odd = "a \"dir\"/line\nbreak missing\n"
	for _, format := range gittest.Formats {
		t.Run(format, func(t *testing.T) {
			g := NewWithT(t)
			c := gittest.New(t, format)
			c.Commit(t, "README", "hello\n")
			commit := c.Commit(t, odd, "odd\n")
			c.Git(t, "tag", "--annotate", "--message=first", "v1")
			r := gittest.Observe(t, git.Options{}).Of(t, c)

			tree, blob, tag := c.Git(t, "rev-parse", "HEAD^{tree}"), c.Git(t, "rev-parse", "HEAD:README"), c.Git(t, "rev-parse", "v1")
			found, err := r.Objects(t.Context(), commit, "HEAD^{tree}", "HEAD:README", "refs/tags/v1", "HEAD:"+odd, "nothing", "HEAD:no\nthing", "HEAD:README")
			g.Expect(err).NotTo(HaveOccurred())
			ids := make([]string, len(found))
			for i, o := range found {
				ids[i] = o.Type + " " + o.ID
			}
			g.Expect(ids).To(Equal([]string{
				"commit " + commit, "tree " + tree, "blob " + blob, "tag " + tag, "blob " + c.Git(t, "hash-object", odd), " ", " ", "blob " + blob,
			}))

			o, content, err := r.Read(t.Context(), "HEAD:"+odd, 4)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(content)).To(Equal("odd\n"))
			g.Expect(o.Size).To(BeEquivalentTo(4))
			o, _, err = r.Read(t.Context(), "HEAD:README", 5)
			g.Expect(err).To(MatchError(git.ErrFileTooLarge))
			g.Expect(o).To(Equal(git.Object{ID: blob, Type: "blob", Size: 6}))
			for _, missing := range []string{"", "HEAD:nothing", "a\x00b", strings.Repeat("x", 1<<20)} {
				_, _, err = r.Read(t.Context(), missing, 100)
				g.Expect(err).To(MatchError(git.ErrObjectNotFound))
			}
			_, content, err = r.Read(t.Context(), blob, 100)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(content)).To(Equal("hello\n"))
		})
	}
}

// TestASubmoduleIsNoObject covers git before and since 2.51, which has a separate answer for submodules.
func TestObjects_haveNoSubmodules(t *testing.T) {
	for _, format := range gittest.Formats {
		g := NewWithT(t)
		c := gittest.New(t, format)
		other := strings.Repeat("1", len(c.Commit(t, "a", "1")))
		c.Git(t, "update-index", "--add", "--cacheinfo", "160000,"+other+",sub")
		c.Git(t, "commit", "--quiet", "--message=Add a submodule")
		commit := c.Git(t, "rev-parse", "HEAD")
		log := filepath.Join(t.TempDir(), "pids")
		e := gittest.EngineWith(t, `case "$*" in
*--batch-command*) echo $$ >> `+log+` ;;
esac
case "$1" in
cat-file) git "$@" | sed -u 's/^.*:sub missing$/`+other+` submodule/'; exit ;;
esac`)
		t.Cleanup(e.Close)
		old := gittest.Observe(t, git.Options{})
		for _, o := range []gittest.Observed{old, {Engine: e, Log: log}} {
			r := o.Of(t, c)
			_, err := snapshot.Tree(t.Context(), r, commit, "sub", false)
			g.Expect(err).To(MatchError(git.ErrObjectNotFound))
			_, err = snapshot.Tree(t.Context(), r, commit, "sub", true)
			g.Expect(err).To(MatchError(git.ErrObjectNotFound))
			g.Expect(r.Objects(t.Context(), commit+":sub", commit)).To(HaveExactElements(git.Object{}, HaveField("ID", commit)))
			g.Expect(o.Started(t)).To(HaveLen(1)) // every answer was parsed
			_, err = snapshot.ReadFile(t.Context(), r, commit, "sub", 100)
			g.Expect(err).To(MatchError(fs.ErrNotExist))
			g.Expect(snapshot.ReadFile(t.Context(), r, commit, "a", 100)).To(BeEquivalentTo("1"))
		}
	}
}

func TestReaders_areShared(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	for n := range 20 {
		c.Commit(t, fmt.Sprint(n), strings.Repeat(fmt.Sprint(n), 1000*n))
	}
	o := gittest.Observe(t, git.Options{})
	r := o.Of(t, c)
	var all sync.WaitGroup
	for reader := range uint64(32) {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed.Value(), reader))
			for range 50 {
				n := random.IntN(20)
				_, content, err := r.Read(t.Context(), fmt.Sprintf("HEAD:%d", n), 1<<20)
				if want := strings.Repeat(fmt.Sprint(n), 1000*n); err != nil || string(content) != want {
					t.Errorf("file %d: %v, %d bytes", n, err, len(content))
				}
			}
		})
	}
	all.Wait()
	g.Expect(len(o.Started(t))).To(And(BeNumerically(">", 0), BeNumerically("<=", 4)))
}

func TestReaders_seeNewCommits(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "1")
	o := gittest.Observe(t, git.Options{})
	r := o.Of(t, c)
	for n := range 5 {
		commit := c.Commit(t, "a", fmt.Sprint("again ", n))
		c.Git(t, "push", "--quiet", r.Dir(), "main")
		if n == 3 {
			c.Git(t, "--git-dir", r.Dir(), "gc", "--quiet", "--prune=now")
		}
		g.Expect(refs.Commit(t.Context(), r, "main")).To(Equal(commit))
		_, content, err := r.Read(t.Context(), commit+":a", 100)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(content)).To(Equal(fmt.Sprint("again ", n)))
	}
	g.Expect(o.Started(t)).To(HaveLen(1))
}

func TestReaders_endIfAReadIsCanceled(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "1")
	ready := filepath.Join(t.TempDir(), "ready")
	o := gittest.Observed{Log: ready}
	e, err := git.NewEngine(t.Context(), git.Options{Binary: gittest.Script(t, `case "$1" in cat-file) echo $$ > `+ready+`; exec sleep 600 ;; esac
exec git "$@"`)})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(e.Close)
	o.Engine = e
	r := o.Of(t, c)
	cause := errors.New("the client has gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, _, err := r.Read(ctx, "HEAD:a", 100)
		ended <- err
	}()
	g.Eventually(func() []int { return o.Alive(t) }).WithTimeout(patience.Wait).Should(HaveLen(1))
	cancel(cause)
	g.Eventually(ended).WithTimeout(patience.Wait).Should(Receive(MatchError(cause)))
	g.Expect(o.Alive(t)).To(BeEmpty())
}

func TestReaders_areReplacedIfTheyDie(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "1")
	o := gittest.Observe(t, git.Options{})
	r := o.Of(t, c)
	for n := range 3 {
		_, _, err := r.Read(t.Context(), "HEAD:a", 100)
		g.Expect(err).NotTo(HaveOccurred())
		pids := o.Started(t)
		g.Expect(pids).To(HaveLen(n + 1))
		g.Expect(syscall.Kill(pids[n], syscall.SIGKILL)).To(Succeed())
	}
}

func TestReaders_endWhenIdleOrRemoved(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "1")
	read := func(r *git.Repository) error {
		_, _, err := r.Read(t.Context(), "HEAD:a", 100)
		return err
	}
	brief := gittest.Observe(t, git.Options{ReaderIdle: 50 * time.Millisecond})
	r := brief.Of(t, c)
	g.Expect(read(r)).To(Succeed())
	g.Eventually(func() []int { return brief.Alive(t) }).WithTimeout(patience.Wait).Should(BeEmpty())
	g.Expect(read(r)).To(Succeed())

	o := gittest.Observe(t, git.Options{})
	r = o.Of(t, c)
	g.Expect(read(r)).To(Succeed())
	g.Expect(o.Alive(t)).To(HaveLen(1))
	r.Evict()
	g.Expect(o.Alive(t)).To(BeEmpty())
	g.Expect(read(r)).To(Succeed())
	g.Expect(r.Remove(t.Context())).To(Succeed())
	g.Expect(o.Alive(t)).To(BeEmpty())
	g.Expect(read(r)).To(MatchError(git.ErrNotFound))

	r = o.Of(t, c)
	g.Expect(read(r)).To(Succeed())
	o.Close()
	g.Expect(o.Alive(t)).To(BeEmpty())
	g.Expect(read(r)).NotTo(Succeed())
}

func TestCommit_resolvesRevisionsLikeGit(t *testing.T) {
	for _, format := range gittest.Formats {
		t.Run(format, func(t *testing.T) {
			g := NewWithT(t)
			c := gittest.New(t, format)
			first := c.Commit(t, "a", "1")
			second := c.Commit(t, "a", "2")
			c.Git(t, "checkout", "--quiet", "-b", "topic/ä", first)
			third := c.Commit(t, "b", "3")
			c.Git(t, "merge", "--quiet", "--no-edit", "main")
			merge := c.Git(t, "rev-parse", "HEAD")
			c.Git(t, "tag", "--annotate", "--message=x", "both", first)
			c.Git(t, "branch", "both", second)
			c.Git(t, "tag", "deep/v1.0", third)
			c.Git(t, "update-ref", "refs/forgeplane/hidden", third)
			c.Git(t, "checkout", "--quiet", "main")
			r := gittest.Observe(t, git.Options{}).Of(t, c)
			for revision, want := range map[string]string{
				"main": second, "HEAD": second, "HEAD^": first, "main~1": first, "main~": first, "topic/ä": merge, "topic/ä^2": second, "topic/ä^1^": first,
				"topic/ä~1": third, "both": first, "refs/heads/both": second, "refs/tags/both": first, "deep/v1.0": third, first: first, first[:9]: first,
				merge + "^2~1": first, "heads/main": "", "refs/forgeplane/hidden": "", "forgeplane/hidden": "", "main~2": "", "main^3": "",
				"nothing": "", "": "", "-x": "", "main..both": "", ":/2": "", "main^{/2}": "", "main@{0}": "", "@": "", "main:a": "", "main\x00": "", "main\n": "",
				first[:3]: "", strings.Repeat("0", len(first)): "", "main" + strings.Repeat("^", 100): "", strings.Repeat("m", 5000): "",
				c.Git(t, "rev-parse", "main:a"): "",
			} {
				got, err := refs.Commit(t.Context(), r, revision)
				if want == "" {
					g.Expect(err).To(MatchError(refs.ErrNotFound), "%q", revision)
				} else {
					g.Expect(err).NotTo(HaveOccurred(), "%q", revision)
				}
				g.Expect(got).To(Equal(want), "%q", revision)
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	c := gittest.New(b, "sha1")
	c.Commit(b, "a", strings.Repeat("x", 1000))
	r := gittest.Observe(b, git.Options{}).Of(b, c)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := r.Read(b.Context(), "HEAD:a", 1<<20); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCommit(b *testing.B) {
	c := gittest.New(b, "sha1")
	c.Commit(b, "a", strings.Repeat("x", 1000))
	r := gittest.Observe(b, git.Options{}).Of(b, c)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := refs.Commit(b.Context(), r, "main"); err != nil {
			b.Fatal(err)
		}
	}
}
