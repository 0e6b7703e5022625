package relocate_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/relocate"
	"github.com/forgeplane/forgeplane/internal/git/upkeep"
)

// shop is a project whose repository can move.
type shop struct {
	client *gittest.Client
	pair   relocate.Pair
	// head is the newest commit of the client.
	head string
}

// opened returns a project whose repository has a few commits.
func opened(t *testing.T, format string) *shop {
	t.Helper()
	s := &shop{client: gittest.New(t, format)}
	for n := range 3 {
		s.head = s.client.Commit(t, "a", fmt.Sprint(n))
	}
	s.pair = place(t, s.client)
	return s
}

// place returns a repository with the content of a client, and its place on another storage.
func place(t *testing.T, c *gittest.Client) relocate.Pair {
	t.Helper()
	from := gittest.Bare(t, c)
	return relocate.Pair{From: from, To: gittest.Repository(t, from.Engine(), t.TempDir(), "a/b.git")}
}

func pairs(p relocate.Pair) []relocate.Pair { return []relocate.Pair{p} }

// now switches without doing anything.
func now(context.Context) error { return nil }

// options returns the options of an attempt that switches to the copy.
func options() relocate.Options { return relocate.Options{By: "one", Switch: now} }

// shown returns all refs and HEAD of a repository.
func shown(t *testing.T, r *git.Repository) string {
	t.Helper()
	g := NewWithT(t)
	var all strings.Builder
	for ref, err := range refs.List(t.Context(), r, "refs/") {
		g.Expect(err).NotTo(HaveOccurred())
		fmt.Fprintln(&all, ref.Object, ref.Name)
	}
	head, err := os.ReadFile(filepath.Join(r.Dir(), "HEAD"))
	g.Expect(err).NotTo(HaveOccurred())
	return all.String() + string(head)
}

// nothingLeft expects that neither a copy nor a part of one is at a place.
func nothingLeft(t *testing.T, r *git.Repository) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(r.Check()).To(MatchError(git.ErrNotFound))
	tidy(t, r)
}

// tidy expects that nothing is staged for a place, or in its trash.
func tidy(t *testing.T, r *git.Repository) {
	t.Helper()
	for _, suffix := range []string{".new", ".trash"} {
		NewWithT(t).Expect(gittest.Exists(r.Dir()+suffix)).To(BeFalse(), suffix)
	}
}

// writable expects that a repository accepts a push.
func writable(t *testing.T, c *gittest.Client, r *git.Repository) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(r.RetiredBy()).To(BeEmpty())
	_, end, err := r.BeginWrite(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	defer end()
	c.Git(t, "push", "--quiet", "--force", r.Dir(), "HEAD:refs/heads/written")
}

// untouched expects that a move had no effect.
func untouched(t *testing.T, s *shop) {
	t.Helper()
	nothingLeft(t, s.pair.To)
	writable(t, s.client, s.pair.From)
}

func TestMove_copiesEverything(t *testing.T) {
	for _, format := range gittest.Formats {
		for name, prepare := range map[string]func(t *testing.T, c *gittest.Client, r *git.Repository){
			"loose objects": func(*testing.T, *gittest.Client, *git.Repository) {},
			"packed": func(t *testing.T, c *gittest.Client, r *git.Repository) {
				c.Git(t, "--git-dir", r.Dir(), "repack", "-a", "-d", "-q", "--write-bitmap-index")
				c.Git(t, "--git-dir", r.Dir(), "pack-refs", "--all")
				c.Git(t, "--git-dir", r.Dir(), "commit-graph", "write", "--reachable")
			},
			"detached": func(t *testing.T, c *gittest.Client, r *git.Repository) {
				id := c.Commit(t, "b", "only HEAD has it")
				c.Git(t, "push", "--quiet", r.Dir(), id+":refs/heads/gone")
				c.Git(t, "--git-dir", r.Dir(), "update-ref", "--no-deref", "HEAD", id)
				c.Git(t, "--git-dir", r.Dir(), "update-ref", "-d", "refs/heads/gone")
			},
			"unborn": func(t *testing.T, c *gittest.Client, r *git.Repository) {
				c.Git(t, "--git-dir", r.Dir(), "symbolic-ref", "HEAD", "refs/heads/not/yet")
			},
			"many refs": func(t *testing.T, c *gittest.Client, r *git.Repository) {
				id := c.Git(t, "rev-parse", "HEAD")
				for n := range 1000 {
					if n == 700 {
						c.Git(t, "--git-dir", r.Dir(), "pack-refs", "--all")
					}
					ref := filepath.Join(r.Dir(), "refs/heads", fmt.Sprint("n", n))
					NewWithT(t).Expect(os.WriteFile(ref, []byte(id+"\n"), 0o644)).To(Succeed())
				}
			},
			"hidden refs and odd names": func(t *testing.T, c *gittest.Client, r *git.Repository) {
				for _, ref := range []string{"refs/merge-requests/1/head", "refs/keep/x", "refs/heads/\xff\xfe", "refs/heads/a'b\"c;$d", "refs/tags/\u00e9"} {
					c.Git(t, "--git-dir", r.Dir(), "update-ref", ref, "refs/heads/main")
				}
			},
		} {
			t.Run(format+" "+name, func(t *testing.T) {
				g := NewWithT(t)
				s := opened(t, format)
				from, to := s.pair.From, s.pair.To
				s.client.Git(t, "tag", "--annotate", "--message=v1", "v1")
				s.client.Git(t, "push", "--quiet", from.Dir(), "v1")
				prepare(t, s.client, from)
				g.Expect(os.WriteFile(filepath.Join(from.Dir(), "description"), []byte("a wheel"), 0o644)).To(Succeed())
				before := shown(t, from)
				var phases []relocate.Phase
				var last relocate.Progress
				o := options()
				o.Report = func(p relocate.Progress) { phases, last = append(phases, p.Phase), p }
				o.Switch = func(context.Context) error {
					g.Expect(from.RetiredBy()).To(Equal("one"))
					g.Expect(to.Check()).To(Succeed())
					return nil
				}
				g.Expect(relocate.Move(t.Context(), pairs(s.pair), o)).To(Succeed())
				g.Expect(shown(t, to)).To(Equal(before))
				g.Expect(os.ReadFile(filepath.Join(to.Dir(), "description"))).To(BeEquivalentTo("a wheel"))
				g.Expect(upkeep.Fsck(t.Context(), to, true)).To(Succeed())
				g.Expect(phases).To(ContainElements(relocate.Copying, relocate.Closing, relocate.Finishing, relocate.Verifying, relocate.Switching))
				g.Expect(last.Bytes).To(And(BeNumerically(">", 0), BeNumerically("<=", last.TotalBytes)))
				g.Expect(last.Objects).To(BeNumerically(">=", 9))
				tidy(t, to)
				writable(t, s.client, to)

				_, _, err := from.BeginWrite(t.Context())
				g.Expect(err).To(MatchError(git.ErrClosed))
				g.Expect(from.Closed()).To(BeTrue())
				g.Expect(from.RemoveRetired(t.Context(), "one")).To(Succeed())
				nothingLeft(t, from)
			})
		}
	}
}

func TestMove_ofAnEmptyRepository(t *testing.T) {
	for _, format := range gittest.Formats {
		g := NewWithT(t)
		e := gittest.NewEngine(t)
		p := relocate.Pair{From: gittest.Repository(t, e, t.TempDir(), "a.git"), To: gittest.Repository(t, e, t.TempDir(), "a.git")}
		g.Expect(p.From.Init(t.Context(), git.InitOptions{DefaultBranch: "trunk", ObjectFormat: format})).To(Succeed())
		g.Expect(relocate.Move(t.Context(), pairs(p), options())).To(Succeed())
		g.Expect(refs.ReadHead(t.Context(), p.To)).To(Equal(refs.Head{Branch: "trunk"}))
		c := gittest.New(t, format)
		c.Commit(t, "a", "1")
		writable(t, c, p.To)
	}
}

func TestMove_skipsWhatDoesNotExist(t *testing.T) {
	g := NewWithT(t)
	s, e := opened(t, "sha1"), gittest.NewEngine(t)
	wiki := relocate.Pair{From: gittest.Repository(t, e, t.TempDir(), "w.git"), To: gittest.Repository(t, e, t.TempDir(), "w.git")}
	both := []relocate.Pair{s.pair, wiki}
	o := options()
	o.Reached = func(point string) {
		if point == relocate.PointSynced {
			g.Expect(wiki.From.Init(t.Context(), git.InitOptions{})).To(Succeed())
		}
	}
	g.Expect(relocate.Move(t.Context(), both, o)).To(MatchError(git.ErrBusy), "it was created meanwhile")
	untouched(t, s)
	g.Expect(wiki.From.Remove(t.Context())).To(Succeed())
	o.Reached = nil
	g.Expect(relocate.Move(t.Context(), both, o)).To(Succeed())
	nothingLeft(t, wiki.To)
	writable(t, s.client, s.pair.To)
}

// pushers push to a repository until stop is called, which returns the refs of the accepted pushes.
func pushers(t *testing.T, s *shop, number int) (accepted *atomic.Int64, stop func() map[string]string) {
	t.Helper()
	accepted = &atomic.Int64{}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	var mu sync.Mutex
	all := map[string]string{}
	for who := range number {
		c := gittest.New(t, "sha1")
		running.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				id, ref := c.Commit(t, "f", fmt.Sprint(who, n)), fmt.Sprintf("refs/heads/%d/%d", who, n)
				_, end, err := s.pair.From.BeginWrite(t.Context())
				if errors.Is(err, git.ErrClosed) {
					continue
				}
				out, err := c.Try("push", "--quiet", s.pair.From.Dir(), id+":"+ref)
				end()
				if err != nil {
					t.Errorf("%v: %s", err, out)
					return
				}
				mu.Lock()
				all[ref] = id
				mu.Unlock()
				accepted.Add(1)
			}
		})
	}
	return accepted, func() map[string]string {
		cancel()
		running.Wait()
		return all
	}
}

func TestMove_losesNoPush(t *testing.T) {
	g := NewWithT(t)
	s := opened(t, "sha1")
	accepted, stop := pushers(t, s, 2)
	defer stop()
	more := func(than int64) {
		gittest.Eventually(t, "more pushes", func() bool { return accepted.Load() > than+3 })
	}
	more(0)
	var closed time.Time
	var pause time.Duration
	o := options()
	o.Reached = func(point string) {
		switch point {
		case relocate.PointStaged, relocate.PointCopied, relocate.PointSynced:
			more(accepted.Load())
			if point == relocate.PointCopied { // maintenance runs too
				g.Expect(os.WriteFile(s.pair.From.Dir()+"/forgeplane-maintenance", nil, 0o644)).To(Succeed())
				old := time.Now().AddDate(0, -1, 0)
				g.Expect(os.Chtimes(s.pair.From.Dir()+"/forgeplane-maintenance", old, old)).To(Succeed())
				g.Expect(upkeep.Maintain(t.Context(), s.pair.From)).To(Succeed())
				more(accepted.Load())
			}
		case relocate.PointClosed:
			closed = time.Now()
		case relocate.PointSwitched:
			pause = time.Since(closed)
		}
	}
	g.Expect(relocate.Move(t.Context(), pairs(s.pair), o)).To(Succeed())
	t.Log("pause", pause)
	all := stop()
	g.Expect(len(all)).To(BeNumerically(">", 9))
	there := shown(t, s.pair.To)
	for ref, id := range all {
		g.Expect(there).To(ContainSubstring(id + " " + ref + "\n"))
	}
	g.Expect(upkeep.Fsck(t.Context(), s.pair.To, true)).To(Succeed())
	g.Expect(s.pair.From.RemoveRetired(t.Context(), "one")).To(Succeed())
}

func TestMove_followsEveryChange(t *testing.T) {
	g := NewWithT(t)
	s := opened(t, "sha1")
	inside := func(args ...string) { s.client.Git(t, append([]string{"--git-dir", s.pair.From.Dir()}, args...)...) }
	for _, ref := range []string{"refs/heads/dir/branch", "refs/heads/plain", "refs/heads/deep/a/b", "refs/heads/deleted"} {
		inside("update-ref", ref, s.head)
	}
	o := options()
	o.Reached = func(point string) {
		if point != relocate.PointSynced {
			return
		}
		inside("update-ref", "-d", "refs/heads/deleted")
		inside("update-ref", "-d", "refs/heads/dir/branch")
		inside("update-ref", "refs/heads/dir", s.head) // where a directory was
		inside("update-ref", "-d", "refs/heads/plain")
		inside("update-ref", "refs/heads/plain/below", s.head) // where a file was
		inside("symbolic-ref", "HEAD", "refs/heads/dir")
		inside("update-ref", "refs/heads/main", s.head+"^")
		inside("repack", "-a", "-d", "-q")
		inside("pack-refs", "--all")
		inside("update-ref", "refs/heads/dir", s.head+"~2")
	}
	g.Expect(relocate.Move(t.Context(), pairs(s.pair), o)).To(Succeed())
	g.Expect(shown(t, s.pair.To)).To(Equal(shown(t, s.pair.From)))
	g.Expect(upkeep.Fsck(t.Context(), s.pair.To, true)).To(Succeed())
	objects := filepath.Join(s.pair.To.Dir(), "objects")
	g.Expect(filepath.Glob(objects+"/??/*")).To(BeEmpty(), "they are packed")
	g.Expect(filepath.Glob(objects + "/pack/*.pack")).To(HaveLen(1))
}

func TestMove_leavesWhatIsNotOfTheCopy(t *testing.T) {
	g := NewWithT(t)
	s := opened(t, "sha1")
	elsewhere := filepath.Join(t.TempDir(), "secret")
	g.Expect(os.WriteFile(elsewhere, []byte("secret"), 0o600)).To(Succeed())
	left := []string{"refs/heads/main.lock", "objects/pack/tmp_pack_x", "objects/tmp_objdir-incoming-x/pack/a", "objects/incoming-y/a", "HEAD.lock"}
	for _, name := range left {
		path := filepath.Join(s.pair.From.Dir(), name)
		g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(path, nil, 0o644)).To(Succeed())
	}
	left = append(left, "link", "info/link", "forgeplane-gate", "forgeplane-writes", "forgeplane-retired")
	g.Expect(os.Symlink(elsewhere, filepath.Join(s.pair.From.Dir(), "link"))).To(Succeed())
	g.Expect(os.MkdirAll(filepath.Join(s.pair.From.Dir(), "info"), 0o755)).To(Succeed())
	g.Expect(os.Symlink(filepath.Dir(elsewhere), filepath.Join(s.pair.From.Dir(), "info/link"))).To(Succeed())
	g.Expect(relocate.Move(t.Context(), pairs(s.pair), options())).To(Succeed())
	for _, name := range left {
		g.Expect(gittest.Exists(filepath.Join(s.pair.To.Dir(), name))).To(BeFalse(), name)
	}
}

func TestMove_keepsTheAgesOfObjects(t *testing.T) {
	g := NewWithT(t)
	s := opened(t, "sha1")
	name := filepath.Join("objects", s.head[:2], s.head[2:])
	old := time.Now().AddDate(0, -1, 0).Truncate(time.Second)
	g.Expect(os.Chtimes(filepath.Join(s.pair.From.Dir(), name), old, old)).To(Succeed())
	g.Expect(relocate.Move(t.Context(), pairs(s.pair), options())).To(Succeed())
	info, err := os.Stat(filepath.Join(s.pair.To.Dir(), name))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.ModTime()).To(BeTemporally("==", old))
	g.Expect(info.Mode().Perm()).To(Equal(fs.FileMode(0o444)))
}
