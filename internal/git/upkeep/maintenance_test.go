package upkeep_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/edit"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/upkeep"
	"github.com/forgeplane/forgeplane/test/patience"
)

// inside runs git in a repository.
func inside(t testing.TB, c *gittest.Client, r *git.Repository, args ...string) string {
	t.Helper()
	return c.Git(t, append([]string{"--git-dir", r.Dir()}, args...)...)
}

// files returns the files of a repository that match a pattern.
func files(t testing.TB, r *git.Repository, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(r.Dir(), pattern))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return found
}

// maintained returns the file whose age determines when everything is repacked.
func maintained(r *git.Repository) string { return filepath.Join(r.Dir(), "forgeplane-maintenance") }

// age makes files older.
func age(t testing.TB, by time.Duration, paths ...string) {
	t.Helper()
	for _, path := range paths {
		info, err := os.Stat(path)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(os.Chtimes(path, time.Time{}, info.ModTime().Add(-by))).To(Succeed())
	}
}

const loose = "objects/??/*"

func TestMaintain_updatesTheCommitGraph(t *testing.T) {
	for _, format := range gittest.Formats {
		t.Run(format, func(t *testing.T) {
			g := NewWithT(t)
			c := gittest.New(t, format)
			c.Commit(t, "a", "0")
			r := gittest.Bare(t, c)
			for n := range 3 {
				c.Commit(t, "a", fmt.Sprint(n+1))
				c.Git(t, "push", "--quiet", r.Dir(), "main")
				g.Expect(upkeep.Maintain(t.Context(), r)).To(Succeed())
				g.Expect(inside(t, c, r, "-c", "core.commitGraph=true", "commit-graph", "verify")).To(BeEmpty())
				// Walking a commit that is in the graph does not read its object.
				g.Expect(c.Trace(t, "--git-dir", r.Dir(), "-c", "core.commitGraph=true", "rev-list", "--count", "main")).To(BeEmpty())
			}
			g.Expect(files(t, r, "objects/info/commit-graphs/*.graph")).NotTo(BeEmpty())
			g.Expect(files(t, r, loose)).NotTo(BeEmpty(), "so few objects are not packed")
			g.Expect(upkeep.Fsck(t.Context(), r, true)).To(Succeed())
		})
	}
}

func TestMaintain_packsManyObjectsAndRefs(t *testing.T) {
	for _, format := range gittest.Formats {
		t.Run(format, func(t *testing.T) {
			g := NewWithT(t)
			c := gittest.New(t, format)
			c.Commit(t, "a", "0")
			r := gittest.Bare(t, c)
			for n := range 600 {
				path := filepath.Join(c.Dir, "many", fmt.Sprint(n))
				g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
				g.Expect(os.WriteFile(path, fmt.Appendf(nil, "file %d", n), 0o644)).To(Succeed())
			}
			c.Git(t, "add", "many")
			c.Git(t, "commit", "--quiet", "--message=Many")
			var listed strings.Builder
			for n := range 300 {
				fmt.Fprintf(&listed, "branch-%d\n", n)
			}
			commit := c.Git(t, "rev-parse", "HEAD")
			c.Git(t, "-c", "receive.unpackLimit=10000", "push", "--quiet", "--receive-pack=git -c receive.unpackLimit=10000 receive-pack", r.Dir(), "main")
			for name := range strings.Lines(listed.String()) {
				g.Expect(os.WriteFile(filepath.Join(r.Dir(), "refs/heads", strings.TrimSpace(name)), []byte(commit+"\n"), 0o644)).To(Succeed())
			}
			g.Expect(len(files(t, r, loose))).To(BeNumerically(">", 600))
			g.Expect(upkeep.Maintain(t.Context(), r)).To(Succeed())
			g.Expect(files(t, r, loose)).To(BeEmpty())
			g.Expect(files(t, r, "objects/pack/*.pack")).To(HaveLen(1))
			g.Expect(files(t, r, "refs/heads/*")).To(BeEmpty())
			g.Expect(gittest.RefNames(t, r)).To(HaveLen(301))
			g.Expect(upkeep.Fsck(t.Context(), r, true)).To(Succeed())
		})
	}
}

func TestMaintain_keepsUnreachableObjectsForTwoWeeks(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "kept")
	c.Git(t, "checkout", "--quiet", "-b", "topic")
	gone := c.Commit(t, "b", "gone")
	c.Git(t, "checkout", "--quiet", "main")
	r := gittest.Bare(t, c)
	inside(t, c, r, "repack", "-a", "-d", "--quiet")
	day := 24 * time.Hour
	whole := func() {
		g.Expect(upkeep.Maintain(t.Context(), r)).To(Succeed())
		age(t, 8*day, maintained(r))
		g.Expect(upkeep.Maintain(t.Context(), r)).To(Succeed())
		g.Expect(upkeep.Fsck(t.Context(), r, true)).To(Succeed())
		inside(t, c, r, "commit-graph", "verify")
	}
	// A user deletes an old branch, but may want it back.
	age(t, 100*day, files(t, r, "objects/pack/*")...)
	c.Git(t, "push", "--quiet", r.Dir(), ":topic")
	unnamed, err := edit.Tag(t.Context(), r, object.Tag{Name: "v1", Object: c.Git(t, "rev-parse", "main"), Type: "commit", Message: "unnamed",
		Tagger: object.Signature{Name: "Ann", When: time.Unix(1e9, 0)}})
	g.Expect(err).NotTo(HaveOccurred())
	whole()
	inside(t, c, r, "cat-file", "-e", gone)
	inside(t, c, r, "cat-file", "-e", unnamed)
	g.Expect(files(t, r, "objects/pack/*.mtimes")).To(HaveLen(1))

	// The branch comes back, without new objects, and is deleted again.
	whole()
	inside(t, c, r, "update-ref", "refs/heads/again", gone)
	g.Expect(upkeep.Maintain(t.Context(), r)).To(Succeed())
	g.Expect(upkeep.Fsck(t.Context(), r, true)).To(Succeed())
	inside(t, c, r, "update-ref", "-d", "refs/heads/again")

	// The ages are in the file; pretend that two weeks have passed.
	clock := gittest.EngineWith(t, `for a; do shift; case "$a" in --cruft-expiration=*) a=--cruft-expiration=now;; esac; set -- "$@" "$a"; done`)
	later := gittest.Repository(t, clock, filepath.Dir(r.Dir()), filepath.Base(r.Dir()))
	age(t, 8*day, maintained(r))
	g.Expect(upkeep.Maintain(t.Context(), later)).To(Succeed())
	_, err = c.Try("--git-dir", r.Dir(), "cat-file", "-e", gone)
	g.Expect(err).To(HaveOccurred())
	inside(t, c, r, "cat-file", "-e", "main:a")
	g.Expect(upkeep.Fsck(t.Context(), r, true)).To(Succeed())
	inside(t, c, r, "commit-graph", "verify")
}

func TestMaintain_packsUnreachableObjectsThatWereLooseForLong(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "kept")
	c.Git(t, "checkout", "--quiet", "-b", "topic")
	gone := c.Commit(t, "b", "gone")
	c.Git(t, "checkout", "--quiet", "main")
	r := gittest.Bare(t, c)
	c.Git(t, "push", "--quiet", r.Dir(), "topic")
	g.Expect(upkeep.Maintain(t.Context(), r)).To(Succeed())
	c.Git(t, "push", "--quiet", r.Dir(), ":topic")
	g.Expect(files(t, r, loose)).NotTo(BeEmpty())

	day := 24 * time.Hour
	age(t, 100*day, files(t, r, loose)...)
	age(t, 100*day, maintained(r))
	g.Expect(upkeep.Maintain(t.Context(), r)).To(Succeed())
	g.Expect(files(t, r, loose)).To(BeEmpty())
	g.Expect(files(t, r, "objects/pack/*.mtimes")).To(HaveLen(1))
	inside(t, c, r, "cat-file", "-e", gone)
	g.Expect(upkeep.Fsck(t.Context(), r, true)).To(Succeed())
}

func TestMaintain_runsOnceAtATime(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "1")
	r := gittest.Bare(t, c)
	g.Expect(upkeep.Maintain(t.Context(), r)).To(Succeed())
	f, err := os.Open(maintained(r))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(syscall.Flock(int(f.Fd()), syscall.LOCK_EX)).To(Succeed())
	g.Expect(upkeep.Maintain(t.Context(), r)).To(MatchError(upkeep.ErrMaintained))
	g.Expect(f.Close()).To(Succeed())
	g.Expect(upkeep.Maintain(t.Context(), r)).To(Succeed())
	missing := gittest.Repository(t, gittest.NewEngine(t), t.TempDir(), "none.git")
	g.Expect(upkeep.Maintain(t.Context(), missing)).To(MatchError(git.ErrNotFound))
	g.Expect(missing.Dir()).NotTo(BeADirectory())
}

func TestMaintain_hasALowPriorityAndEndsWithItsContext(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "1")
	r := gittest.Bare(t, c)
	pid := filepath.Join(t.TempDir(), "pid")
	slow := gittest.EngineWith(t, `case "$1" in commit-graph) echo $$ > `+pid+`.new; mv `+pid+`.new `+pid+`; exec sleep 600 ;; esac`)
	held := gittest.Repository(t, slow, filepath.Dir(r.Dir()), filepath.Base(r.Dir()))
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- upkeep.Maintain(ctx, held) }()
	g.Eventually(func() error { _, err := os.Stat(pid); return err }).WithTimeout(patience.Wait).Should(Succeed())
	text, err := os.ReadFile(pid)
	g.Expect(err).NotTo(HaveOccurred())
	var process int
	_, err = fmt.Sscan(string(text), &process)
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() (int, error) { return syscall.Getpriority(syscall.PRIO_PROCESS, process) }).WithTimeout(patience.Wait).
		Should(BeNumerically("<=", 10), "the system call gives 20 less the niceness")
	g.Expect(upkeep.Maintain(t.Context(), r)).To(MatchError(upkeep.ErrMaintained))
	stopped := errors.New("the process ends")
	cancel(stopped)
	g.Eventually(ended).WithTimeout(patience.Wait).Should(Receive(MatchError(stopped)))
	g.Expect(syscall.Kill(process, 0)).To(MatchError(syscall.ESRCH))
	g.Expect(upkeep.Maintain(t.Context(), r)).To(Succeed())
}

func TestMaintain_allowsPushesAndReads(t *testing.T) {
	g := NewWithT(t)
	origin := gittest.New(t, "sha1")
	origin.Commit(t, "a", "1")
	o := gittest.Observe(t, git.Options{})
	r := o.Of(t, origin)
	const clients, pushes, each = 3, 12, 20
	ctx, stop := context.WithCancel(t.Context())
	var busy, pushing sync.WaitGroup
	runs, most := 0, 0
	busy.Go(func() {
		for ; ctx.Err() == nil; runs++ {
			if runs%3 == 2 {
				age(t, 8*24*time.Hour, maintained(r))
			}
			if err := upkeep.Maintain(t.Context(), r); err != nil {
				t.Errorf("maintaining: %v", err)
			}
			most = max(most, len(files(t, r, loose)))
		}
	})
	busy.Go(func() {
		for ctx.Err() == nil {
			head, err := refs.ReadHead(t.Context(), r)
			if err != nil || head.Commit == "" {
				t.Errorf("reading HEAD: %v", err)
				return
			}
			for _, name := range []string{head.Commit + ":a", "refs/heads/main^{tree}"} {
				if _, _, err := r.Read(t.Context(), name, 1<<20); err != nil {
					t.Errorf("reading %s: %v", name, err)
				}
			}
			if _, err := history.Contributors(t.Context(), r, head.Commit); err != nil {
				t.Errorf("walking: %v", err)
			}
		}
	})
	for n := range clients {
		pushing.Go(func() {
			c := gittest.New(t, "sha1")
			c.Git(t, "pull", "--quiet", r.Dir(), "main")
			for p := range pushes {
				for f := range each {
					path := filepath.Join(c.Dir, fmt.Sprint(f))
					if err := os.WriteFile(path, fmt.Appendf(nil, "%d %d %d", n, p, f), 0o644); err != nil {
						t.Error(err)
					}
				}
				c.Git(t, "add", ".")
				c.Git(t, "commit", "--quiet", "--message=Go on")
				c.Git(t, "push", "--quiet", r.Dir(), fmt.Sprintf("HEAD:refs/heads/%d/%d", n, p), fmt.Sprintf("HEAD:refs/heads/%d/last", n))
			}
		})
	}
	pushing.Wait()
	stop()
	busy.Wait()
	g.Expect(runs).To(BeNumerically(">", 1))
	g.Expect(upkeep.Maintain(t.Context(), r)).To(Succeed())
	g.Expect(upkeep.Fsck(t.Context(), r, true)).To(Succeed())
	inside(t, origin, r, "commit-graph", "verify")
	g.Expect(gittest.RefNames(t, r)).To(HaveLen(1 + clients*(pushes+1)))
	g.Expect(len(files(t, r, "objects/pack/*.pack"))).To(BeNumerically("<=", 12))
	t.Logf("%d runs, at most %d loose objects, %d packs", runs, most, len(files(t, r, "objects/pack/*.pack")))
	o.Close()
	g.Expect(o.Alive(t)).To(BeEmpty())
}

func TestMaintain_leavesSharedPackBesideLargerOnes(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "kept")
	r := gittest.Bare(t, c)
	inside(t, c, r, "repack", "-a", "-d", "--quiet")
	whole := files(t, r, "objects/pack/*.pack")
	g.Expect(whole).To(HaveLen(1))
	for n := range 5 {
		branch := fmt.Sprint("gone-", n)
		c.Git(t, "checkout", "--quiet", "-b", branch, "main")
		c.Commit(t, branch, rand.Text()+rand.Text()+rand.Text()+rand.Text())
		c.Git(t, "push", "--quiet", "--receive-pack=git -c receive.unpackLimit=1 receive-pack", r.Dir(), branch)
		c.Git(t, "push", "--quiet", r.Dir(), ":"+branch)
	}
	others := t.TempDir()
	for _, pack := range files(t, r, "objects/pack/*.pack") {
		g.Expect(os.Link(pack, filepath.Join(others, filepath.Base(pack)))).To(Succeed())
	}
	g.Expect(upkeep.Maintain(t.Context(), r)).To(Succeed())
	age(t, 8*24*time.Hour, maintained(r))
	g.Expect(upkeep.Maintain(t.Context(), r)).To(Succeed())
	g.Expect(upkeep.Fsck(t.Context(), r, true)).To(Succeed())
	theirs, err := os.Stat(filepath.Join(others, filepath.Base(whole[0])))
	g.Expect(err).NotTo(HaveOccurred())
	own, err := os.Stat(whole[0])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.SameFile(own, theirs)).To(BeTrue())
}
