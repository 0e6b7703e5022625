package refs_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/test/patience"
	"github.com/forgeplane/forgeplane/test/seed"
)

// known is a repository with branches and tags, and an engine that can remember them.
type known struct {
	*git.Repository
	client   *gittest.Client
	one, two string
	starts   func(subcommand string) int
}

func newKnown(t *testing.T) *known {
	t.Helper()
	g := NewWithT(t)
	k := &known{client: gittest.New(t, "sha1")}
	k.one = k.client.Commit(t, "a", "1")
	k.client.Git(t, "tag", "v1.0-rc1")
	k.client.Git(t, "branch", "topic/deep/one")
	k.two = k.client.Commit(t, "a", "2")
	k.client.Git(t, "tag", "--annotate", "--message=x", "v1.0")
	k.client.Git(t, "branch", "other")
	binary, starts := gittest.Logged(t)
	e, err := git.NewEngine(t.Context(), git.Options{Binary: binary})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(e.Close)
	k.Repository, k.starts = gittest.Repository(t, e, t.TempDir(), "a.git"), starts
	g.Expect(k.Init(t.Context(), git.InitOptions{})).To(Succeed())
	k.client.Git(t, "push", "--quiet", "--mirror", k.Dir())
	return k
}

// git runs a git command in the repository, as an administrator would.
func (k *known) git(t *testing.T, args ...string) string {
	t.Helper()
	return k.client.Git(t, append([]string{"--git-dir=" + k.Dir()}, args...)...)
}

var lists = []struct {
	prefix     string
	by         refs.Order
	descending bool
}{{"refs/heads/", refs.ByName, false}, {"refs/heads/", refs.ByDate, true}, {"refs/tags/", refs.ByVersion, false}}

// expect checks that the repository lists the same refs as git, and knows HEAD.
func (k *known) expect(t *testing.T, g Gomega, about string) {
	t.Helper()
	head := refs.Head{Branch: strings.TrimPrefix(k.git(t, "symbolic-ref", "HEAD"), "refs/heads/")}
	head.Commit = k.git(t, "for-each-ref", "--format=%(objectname)", "refs/heads/"+head.Branch)
	g.Expect(refs.ReadHead(t.Context(), k.Repository)).To(Equal(head), about)
	for _, of := range lists {
		got, err := refs.Sorted(t.Context(), k.Repository, of.prefix, of.by, of.descending)
		g.Expect(err).NotTo(HaveOccurred(), about)
		sign := map[bool]string{true: "-"}[of.descending]
		g.Expect(got).To(Equal(refsOf(t, k.Repository, "--sort="+sign+string(of.by), of.prefix)), "%s: %s by %s%s", about, of.prefix, sign, of.by)
	}
}

// await waits until every list comes from memory and equals git's.
func (k *known) await(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	g.Eventually(func(g Gomega) {
		before := k.starts("for-each-ref")
		for _, of := range lists {
			_, err := refs.Sorted(t.Context(), k.Repository, of.prefix, of.by, of.descending)
			g.Expect(err).NotTo(HaveOccurred())
		}
		_, err := refs.ReadHead(t.Context(), k.Repository)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(k.starts("for-each-ref")).To(Equal(before))
	}).WithTimeout(patience.Wait).WithPolling(200 * time.Millisecond).Should(Succeed())
	k.expect(t, g, "from memory")
}

func TestSorted_areRememberedUntilARefChanges(t *testing.T) {
	for about, tt := range map[string]struct{ before, change func(t *testing.T, k *known) }{
		"a branch is made":           {change: func(t *testing.T, k *known) { k.git(t, "update-ref", "refs/heads/new", k.one) }},
		"one in a new directory":     {change: func(t *testing.T, k *known) { k.git(t, "update-ref", "refs/heads/new/one", k.one) }},
		"one in a directory":         {change: func(t *testing.T, k *known) { k.git(t, "update-ref", "refs/heads/topic/deep/two", k.two) }},
		"a branch moves":             {change: func(t *testing.T, k *known) { k.git(t, "update-ref", "refs/heads/other", k.one) }},
		"one in a directory moves":   {change: func(t *testing.T, k *known) { k.git(t, "update-ref", "refs/heads/topic/deep/one", k.two) }},
		"a branch is removed":        {change: func(t *testing.T, k *known) { k.git(t, "update-ref", "-d", "refs/heads/other") }},
		"the last of a directory":    {change: func(t *testing.T, k *known) { k.git(t, "update-ref", "-d", "refs/heads/topic/deep/one") }},
		"a branch has another name":  {change: func(t *testing.T, k *known) { k.git(t, "branch", "--move", "other", "another") }},
		"the default branch moves":   {change: func(t *testing.T, k *known) { k.git(t, "update-ref", "refs/heads/main", k.one) }},
		"another one is the default": {change: func(t *testing.T, k *known) { k.git(t, "symbolic-ref", "HEAD", "refs/heads/other") }},
		"the default is not there":   {change: func(t *testing.T, k *known) { k.git(t, "symbolic-ref", "HEAD", "refs/heads/none") }},
		"a tag is made":              {change: func(t *testing.T, k *known) { k.git(t, "tag", "v2", k.one) }},
		"all are packed":             {change: func(t *testing.T, k *known) { k.git(t, "pack-refs", "--all", "--prune") }},
		"numbers are sorted anew":    {change: func(t *testing.T, k *known) { k.git(t, "config", "versionsort.suffix", "-rc") }},
		"a packed one moves":         {packed, func(t *testing.T, k *known) { k.git(t, "update-ref", "refs/heads/topic/deep/one", k.two) }},
		"a packed branch is removed": {packed, func(t *testing.T, k *known) { k.git(t, "update-ref", "-d", "refs/heads/other") }},
		"a packed tag is removed":    {packed, func(t *testing.T, k *known) { k.git(t, "tag", "--delete", "v1.0") }},
		"a push": {change: func(t *testing.T, k *known) {
			k.client.Git(t, "push", "--quiet", k.Dir(), "main:pushed", ":other", "main~1:refs/tags/v3")
		}},
		"another server changes refs": {packed, func(t *testing.T, k *known) {
			err := refs.Apply(t.Context(), k.elsewhere(t),
				update.Ref{Name: "refs/heads/made", New: k.one}, update.Ref{Name: "refs/heads/other", Old: k.two})
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
		}},
		"another server makes it anew": {change: func(t *testing.T, k *known) {
			g, r := NewWithT(t), k.elsewhere(t)
			g.Expect(r.Remove(t.Context())).To(Succeed())
			g.Expect(r.Init(t.Context(), git.InitOptions{})).To(Succeed())
			k.client.Git(t, "push", "--quiet", k.Dir(), "main:anew")
		}},
		"what a branch leads to moves": {
			func(t *testing.T, k *known) {
				k.git(t, "update-ref", "refs/apart/one", k.one)
				k.git(t, "symbolic-ref", "refs/heads/alias", "refs/apart/one")
			},
			func(t *testing.T, k *known) { k.git(t, "update-ref", "refs/apart/one", k.two) },
		},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			g, k := NewWithT(t), newKnown(t)
			if tt.before != nil {
				tt.before(t, k)
			}
			k.await(t)
			tt.change(t, k)
			k.expect(t, g, "at once")
			k.await(t)
		})
	}
}

func packed(t *testing.T, k *known) { k.git(t, "pack-refs", "--all", "--prune") }

// elsewhere returns the repository as another server sees it.
func (k *known) elsewhere(t *testing.T) *git.Repository {
	t.Helper()
	return gittest.Repository(t, gittest.NewEngine(t), filepath.Dir(k.Dir()), filepath.Base(k.Dir()))
}

func TestSorted_ofARepositoryThatIsGone(t *testing.T) {
	g, k := NewWithT(t), newKnown(t)
	k.await(t)
	g.Expect(os.Rename(k.Dir(), k.Dir()+".away")).To(Succeed())
	_, err := refs.Sorted(t.Context(), k.Repository, "refs/heads/", refs.ByName, false)
	g.Expect(err).To(MatchError(git.ErrNotFound))
}

// A file system can give two changes the same timestamp, which this test enforces.
func TestSorted_ofTwoChangesAtTheSameTime(t *testing.T) {
	g, k := NewWithT(t), newKnown(t)
	packed(t, k)
	k.git(t, "update-ref", "refs/heads/other", k.one)
	at := time.Now().Add(-time.Hour)
	for attempt := range 100 {
		at = at.Add(time.Second)
		same := func() {
			for _, path := range []string{"", "packed-refs", "refs", "refs/heads"} {
				g.Expect(os.Chtimes(filepath.Join(k.Dir(), path), at, at)).To(Succeed())
			}
		}
		same()
		begun := time.Now()
		k.expect(t, g, "after one change")
		if time.Since(begun) >= refs.Tick {
			continue // no file system gives both the same timestamp
		}
		k.git(t, "update-ref", "refs/heads/other", []string{k.two, k.one}[attempt%2])
		same()
		k.expect(t, g, "after the other one")
		return
	}
	t.Skip("this machine is too slow for two changes at the same time")
}

// Many changes, most in quick succession and some after a pause.
func TestSorted_followEveryChange(t *testing.T) {
	g, k := NewWithT(t), newKnown(t)
	random := rand.New(rand.NewPCG(seed.Value(), 0))
	names := []string{"heads/a", "heads/b", "heads/topic/a", "heads/topic/deep/b", "tags/v9", "tags/x/v10"}
	for step := range 60 {
		ref, did := "refs/"+names[random.IntN(len(names))], []string(nil)
		switch random.IntN(6) {
		case 0, 1:
			did = []string{"update-ref", ref, k.one}
		case 2:
			did = []string{"update-ref", ref, k.two}
		case 3, 4:
			did = []string{"update-ref", "-d", ref}
		case 5:
			did = []string{"pack-refs", "--all", "--prune"}
		}
		k.git(t, did...)
		k.expect(t, g, fmt.Sprintf("step %d, after %v", step, did))
		if step%20 == 10 {
			k.await(t)
		}
	}
}

func TestSorted_areNotCachedIfChangesAreNotSeen(t *testing.T) {
	for about, prepare := range map[string]func(t *testing.T, g Gomega, k *known){
		"very many directories": func(_ *testing.T, g Gomega, k *known) {
			for n := range refs.MaxWitnesses {
				dir := filepath.Join(k.Dir(), "refs/heads/topic", fmt.Sprint(n))
				g.Expect(os.Mkdir(dir, 0o700)).To(Succeed())
				g.Expect(os.WriteFile(filepath.Join(dir, "one"), []byte(k.one+"\n"), 0o600)).To(Succeed())
			}
		},
		"a directory of another place": func(t *testing.T, g Gomega, k *known) {
			away := t.TempDir()
			g.Expect(os.WriteFile(filepath.Join(away, "one"), []byte(k.one+"\n"), 0o600)).To(Succeed())
			g.Expect(os.Symlink(away, filepath.Join(k.Dir(), "refs/heads/away"))).To(Succeed())
		},
	} {
		t.Run(about, func(t *testing.T) {
			g, k := NewWithT(t), newKnown(t)
			g.Expect(refs.Witnessed(k.Repository)).To(BeTrue())
			prepare(t, g, k)
			g.Expect(refs.Witnessed(k.Repository)).To(BeFalse())
			k.expect(t, g, about)
		})
	}
}

func BenchmarkSorted(b *testing.B) {
	for _, branches := range []int{20, 500, 50_000} {
		b.Run(fmt.Sprint(branches), func(b *testing.B) {
			c := gittest.New(b, "sha1")
			id := c.Commit(b, "a", "a")
			packed := []byte("# pack-refs with: peeled fully-peeled sorted \n")
			for n := range branches {
				packed = fmt.Appendf(packed, "%s refs/heads/topic-%06d\n", id, n)
			}
			r := gittest.Bare(b, c)
			if err := os.WriteFile(filepath.Join(r.Dir(), "packed-refs"), packed, 0o600); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := refs.Sorted(b.Context(), r, "refs/heads/", refs.ByName, false); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
