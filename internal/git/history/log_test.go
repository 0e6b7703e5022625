package history_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/snapshot"
	"github.com/forgeplane/forgeplane/test/soak"
)

// wound has the files and the environment of a client that winding has made, by object format. Git takes seconds to make one.
var wound = map[string]struct {
	files fstest.MapFS
	env   []string
}{}

// winding returns a client with merges, renames, odd names, several authors and, on a separate branch, an unrelated history.
func winding(t testing.TB, format string) *gittest.Client {
	t.Helper()
	c := &gittest.Client{Dir: filepath.Join(t.TempDir(), "winding")}
	made, ok := wound[format]
	if !ok {
		made.files = fstest.MapFS{}
		from := wind(t, format)
		err := filepath.WalkDir(from.Dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			name, err := filepath.Rel(from.Dir, path)
			if err != nil {
				return err
			}
			content, err := os.ReadFile(path)
			made.files[name] = &fstest.MapFile{Data: content, Mode: 0o644}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		made.env = from.Env
		wound[format] = made
	}
	if err := os.CopyFS(c.Dir, made.files); err != nil {
		t.Fatal(err)
	}
	c.Env = made.env
	return c
}

func wind(t testing.TB, format string) *gittest.Client {
	t.Helper()
	c := gittest.New(t, format)
	random := rand.New(rand.NewPCG(5, 6))
	c.Commit(t, "file", "1\n")
	c.Commit(t, ".mailmap", "Somebody Else <else@example.com> <1@example.com>\n")
	for i := range 60 {
		c.Env = []string{
			fmt.Sprintf("GIT_COMMITTER_DATE=%d +0100", 1_700_000_000+i*100-random.IntN(150)),
			fmt.Sprintf("GIT_AUTHOR_NAME=Author %d.*", random.IntN(4)), fmt.Sprintf("GIT_AUTHOR_EMAIL=%d@example.com", random.IntN(3)),
		}
		c.Git(t, "checkout", "--quiet", []string{"main", "main", "side"}[random.IntN(3)*min(i/20, 1)])
		switch {
		case i == 20:
			c.Git(t, "branch", "side")
		case i%15 == 7:
			c.Git(t, "mv", "file", fmt.Sprintf("moved-%d", i))
			c.Git(t, "commit", "--quiet", "--message=Move")
			c.Git(t, "mv", fmt.Sprintf("moved-%d", i), "file")
			c.Git(t, "commit", "--quiet", "--message=Move back")
		case i > 21 && i%9 == 0:
			c.Git(t, "merge", "--quiet", "--no-edit", "-Xours", "main", "side")
		default:
			name := []string{"file", "dir/a b", `dir/*"?`, "ümläut\n"}[random.IntN(4)]
			c.Commit(t, name, strings.Repeat(fmt.Sprintf("line %d\n", i), 1+random.IntN(9)))
		}
	}
	c.Git(t, "checkout", "--quiet", "--orphan", "apart")
	c.Commit(t, "other", "x\x00y")
	c.Git(t, "tag", "--annotate", "--message=about", "v1", "main~3")
	c.Git(t, "tag", "content", "main:file")
	c.Git(t, "checkout", "--quiet", "main")
	return c
}

func ids(commits []*object.Commit) (all []string) {
	for _, c := range commits {
		all = append(all, c.ID)
	}
	return all
}

func TestList_agreesWithGitLog(t *testing.T) {
	for _, format := range gittest.Formats {
		t.Run(format, func(t *testing.T) {
			g := NewWithT(t)
			c := winding(t, format)
			r := gittest.Bare(t, c)
			random := rand.New(rand.NewPCG(7, 8))
			one := func(all ...string) string { return all[random.IntN(len(all))] }
			some := 0
			for range soak.Times(20, 80) {
				revision := one("main", "side", "v1", "HEAD~2", "main..side", "side..main", "main...side", "v1..", "..side", "main~9...v1", "main...apart")
				l, err := history.Range(t.Context(), r, revision)
				g.Expect(err).NotTo(HaveOccurred(), revision)
				args := []string{"--literal-pathspecs", "log", "--format=%H", "--no-mailmap"}
				if l.Topo = random.IntN(3) == 0; l.Topo {
					args = append(args, "--topo-order")
				}
				if l.FirstParent = random.IntN(3) == 0; l.FirstParent {
					args = append(args, "--first-parent")
				}
				if l.Author = one("", "", "", "", "Author 1.*", "2@example", "author", "else@"); l.Author != "" {
					args = append(args, "--fixed-strings", "--author="+l.Author)
				}
				if random.IntN(5) == 0 {
					l.Since = time.Unix(1_700_000_000+random.Int64N(6000), 0)
					args = append(args, "--since="+l.Since.Format(time.RFC3339))
				}
				if random.IntN(5) == 0 {
					l.Until = time.Unix(1_700_000_000+random.Int64N(6000), 5e8)
					args = append(args, "--until="+l.Until.Format(time.RFC3339))
				}
				l.Path = one("", "", "", "", "", "file", "file", "dir", "dir/", `dir/*"?`, "dir/a b", "ümläut\n", "dir/*", "gone")
				if args = append(args, revision, "--"); l.Path != "" {
					args = append(slices.Insert(args, 2, "--follow"), l.Path)
				}
				all := strings.Fields(c.Git(t, args...))
				l.Skip, l.Limit = random.IntN(6), 1+random.IntN(12)
				from := min(l.Skip, len(all))
				want := all[from:min(from+l.Limit, len(all))]
				for range 2 { // the second time, from memory
					got, more, err := history.List(t.Context(), r, l)
					g.Expect(err).NotTo(HaveOccurred(), "%+v", l)
					g.Expect(slices.Equal(ids(got), want)).To(BeTrue(), "%q: %v, want %v", args, ids(got), want)
					g.Expect(more).To(Equal(l.Skip+l.Limit < len(all)), "%q: %d of %d", args, l.Skip+l.Limit, len(all))
				}
				some += len(want)
			}
			g.Expect(some).To(BeNumerically(">", soak.Times(10, 100)))
		})
	}
}

func TestList_beginsAtAllTips(t *testing.T) {
	g := NewWithT(t)
	c := winding(t, "sha1")
	r := gittest.Bare(t, c)
	l := history.Log{Limit: 1000}
	var err error
	l.Tips, err = refs.Tips(t.Context(), r, "refs/heads/", "refs/tags/")
	g.Expect(err).NotTo(HaveOccurred())
	got, more, err := history.List(t.Context(), r, l)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ids(got)).To(Equal(strings.Fields(c.Git(t, "log", "--all", "--format=%H"))))
	g.Expect(more).To(BeFalse())
}

func TestList_canBeEmpty(t *testing.T) {
	g := NewWithT(t)
	c := winding(t, "sha1")
	r := gittest.Bare(t, c)
	for _, l := range []history.Log{
		{Limit: 5}, {Tips: []string{c.Git(t, "rev-parse", "main")}}, {Tips: []string{c.Git(t, "rev-parse", "main:file")}, Limit: 5},
		{Tips: []string{c.Git(t, "rev-parse", "main")}, Limit: 5, Skip: 1 << 40},
		{Tips: []string{c.Git(t, "rev-parse", "main")}, Limit: 5, Path: "../file"},
		{Tips: []string{c.Git(t, "rev-parse", "main")}, Limit: 5, Path: ":/"},
		{Tips: []string{c.Git(t, "rev-parse", "main")}, Limit: 5, Since: time.Unix(1<<33, 0)},
		{Tips: []string{c.Git(t, "rev-parse", "main")}, Limit: 5, Until: time.Unix(-1, 0)},
	} {
		got, more, err := history.List(t.Context(), r, l)
		g.Expect(err).NotTo(HaveOccurred(), "%+v", l)
		g.Expect(ids(got)).To(BeEmpty(), "%+v", l)
		g.Expect(more).To(BeFalse(), "%+v", l)
	}
	for _, tip := range []string{"main", "--all", ""} {
		_, _, err := history.List(t.Context(), r, history.Log{Tips: []string{tip}, Limit: 5})
		g.Expect(err).To(HaveOccurred(), tip)
	}
	for _, revision := range []string{"gone", "gone..main", "main..gone", "main....side", "main..side..apart", "--all", "^main", "main:file", "main..--all"} {
		_, err := history.Range(t.Context(), r, revision)
		g.Expect(err).To(MatchError(refs.ErrNotFound), revision)
	}
}

func TestCountLines_agreesWithGit(t *testing.T) {
	for _, format := range gittest.Formats {
		t.Run(format, func(t *testing.T) {
			g := NewWithT(t)
			c := winding(t, format)
			c.Git(t, "commit", "--quiet", "--allow-empty", "--message=nothing")
			r := gittest.Bare(t, c)
			all := strings.Fields(c.Git(t, "rev-list", "--all"))
			counted, err := history.CountLines(t.Context(), r, all...)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(counted).To(HaveLen(len(all)))
			for i, id := range all {
				if i%5 > 0 && id != all[len(all)-1] {
					continue
				}
				var want history.Lines
				for line := range strings.Lines(c.Git(t, "show", "--diff-merges=first-parent", "--numstat", "--find-renames", "--format=", id)) {
					var added, removed int
					if n, _ := fmt.Sscan(line, &added, &removed); n == 2 { // and not "-" for a binary file
						want.Added, want.Removed = want.Added+added, want.Removed+removed
					}
				}
				g.Expect(counted[id]).To(Equal(want), id)
				g.Expect(history.CountLines(t.Context(), r, id)).To(Equal(map[string]history.Lines{id: want}))
			}
			g.Expect(history.CountLines(t.Context(), r)).To(BeEmpty())
			_, err = history.CountLines(t.Context(), r, "--all")
			g.Expect(err).To(HaveOccurred())
		})
	}
}

func TestLastCommit_agreesWithGit(t *testing.T) {
	g := NewWithT(t)
	c := winding(t, "sha1")
	r := gittest.Bare(t, c)
	for _, id := range strings.Fields(c.Git(t, "rev-list", "--max-count=8", "main")) {
		for _, path := range []string{"file", "dir", `dir/*"?`, "dir/a b", "ümläut\n", "dir/*", "gone", ":/"} {
			want := c.Git(t, "--literal-pathspecs", "log", "--max-count=1", "--format=%H", id, "--", path)
			got, err := history.LastCommit(t.Context(), r, id, path)
			if want == "" {
				g.Expect(err).To(MatchError(git.ErrObjectNotFound), path)
				continue
			}
			g.Expect(err).NotTo(HaveOccurred(), path)
			g.Expect(got).To(Equal(want), path)
		}
	}
}

func TestContaining_agreesWithGit(t *testing.T) {
	g := NewWithT(t)
	c := winding(t, "sha1")
	r := gittest.Bare(t, c)
	for _, id := range strings.Fields(c.Git(t, "rev-parse", "main", "main~9", "main~20", "side", "side~3", "apart")) {
		found, err := refs.Containing(t.Context(), r, id, "refs/heads/", "refs/tags/")
		g.Expect(err).NotTo(HaveOccurred())
		var got []string
		for _, ref := range found {
			got = append(got, ref.Name)
		}
		g.Expect(got).To(Equal(strings.Fields(c.Git(t, "for-each-ref", "--contains="+id, "--format=%(refname)", "refs/heads/", "refs/tags/"))))
	}
	_, err := refs.Containing(t.Context(), r, "--all", "refs/heads/")
	g.Expect(err).To(HaveOccurred())
}

func TestEntry_agreesWithGit(t *testing.T) {
	g := NewWithT(t)
	c := winding(t, "sha1")
	r := gittest.Bare(t, c)
	id := c.Git(t, "rev-parse", "main")
	for line := range strings.SplitSeq(strings.TrimSuffix(c.Git(t, "ls-tree", "-r", "-t", "-z", "main"), "\x00"), "\x00") {
		meta, path, _ := strings.Cut(line, "\t")
		want := object.TreeEntry{Path: path}
		_, err := fmt.Sscan(meta, &want.Mode, &want.Type, &want.ID)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(snapshot.Entry(t.Context(), r, id, path)).To(Equal(want))
	}
	for _, path := range []string{"", "/", "gone", "file/x", "gone/file", "..", "dir/../file", "dir//a b", "File", "a\x00b"} {
		_, err := snapshot.Entry(t.Context(), r, id, path)
		g.Expect(err).To(MatchError(git.ErrObjectNotFound), path)
	}
}

func TestResults_startNoProcessAgain(t *testing.T) {
	g := NewWithT(t)
	c := winding(t, "sha1")
	started := filepath.Join(t.TempDir(), "started")
	e := gittest.EngineWith(t, `echo "$1" >> `+started)
	t.Cleanup(e.Close)
	r := gittest.Repository(t, e, t.TempDir(), "a.git")
	g.Expect(r.Init(t.Context(), git.InitOptions{})).To(Succeed())
	c.Git(t, "push", "--quiet", "--mirror", r.Dir())
	var before []byte
	for i := range 3 {
		l, err := history.Range(t.Context(), r, "main")
		g.Expect(err).NotTo(HaveOccurred())
		l.Limit, l.Path = 20, "dir"
		all, _, err := history.List(t.Context(), r, l)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = history.CountLines(t.Context(), r, ids(all)...)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = history.LastCommit(t.Context(), r, all[0].ID, "file")
		g.Expect(err).NotTo(HaveOccurred())
		is, err := os.ReadFile(started)
		g.Expect(err).NotTo(HaveOccurred())
		if i == 0 {
			g.Expect(strings.Fields(string(is))).To(ContainElements("log", "rev-list", "cat-file"))
			before = is
		}
		g.Expect(string(is)).To(Equal(string(before)))
	}
}
