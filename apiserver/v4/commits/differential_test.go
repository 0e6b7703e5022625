package commits_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/diff"
	. "github.com/forgeplane/forgeplane/apiserver/v4/commits"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	generator "github.com/forgeplane/forgeplane/test/history"
	"github.com/forgeplane/forgeplane/test/seed"
	"github.com/forgeplane/forgeplane/test/soak"
)

// TestCommits_agreeWithGit asks for random commits and paths of a large history with branches, merges and renames, and of one with odd
// names, and compares each answer with the output of git.
func TestCommits_agreeWithGit(t *testing.T) {
	for name, c := range map[string]*gittest.Client{"many commits": generated(t), "odd names": odd(t)} {
		t.Run(name, func(t *testing.T) {
			commits := strings.Fields(c.Git(t, "rev-list", "--all"))
			random := rand.New(rand.NewPCG(seed.Value(), 10))
			for i := range 9 {
				c.Git(t, "branch", fmt.Sprint("b", i), commits[random.IntN(len(commits))])
				c.Git(t, "tag", fmt.Sprint("t", i), commits[random.IntN(len(commits))])
			}
			q := &questions{
				shop: newShop(t, c), t: t, random: random, commits: commits,
				paths: names(c.Git(t, "log", "--max-count=300", "--format=", "--name-only", "--no-renames", "-z")),
			}
			for range soak.Times(12, 600) {
				q.list()
			}
			for range soak.Times(6, 300) {
				q.one()
				q.refs()
			}
		})
	}
}

// generated returns a client with many commits, and a branch for every ten.
func generated(t *testing.T) *gittest.Client {
	t.Helper()
	c := gittest.New(t, "sha1")
	size := soak.Times(300, 5000)
	c.Import(t, generator.Stream(generator.Options{Commits: size, Topics: size / 10}))
	return c
}

// odd returns a client with file names that are hard to parse, and with commits in another encoding.
func odd(t *testing.T) *gittest.Client {
	t.Helper()
	c := gittest.New(t, "sha1")
	for i := range 5 {
		for _, path := range []string{
			"a b", "dir/tab\tbed", "dir/new\nline", `quo"ted`, `back\slash`, "-dash", ":colon", "*", "[a]", "ünï/cödé", "dir/HEAD", "..dots",
		} {
			c.Env = []string{fmt.Sprintf("GIT_COMMITTER_DATE=%d +0100", 1_700_000_000+i*1000)}
			c.Commit(t, path, strings.Repeat(fmt.Sprintf("%q, time %d\n", path, i), 1+i))
		}
		c.Env = append(c.Env, "GIT_AUTHOR_NAME=J\xf6rg")
		c.Git(t, "-c", "i18n.commitEncoding=ISO-8859-1", "commit", "--quiet", "--allow-empty", "--message=Gr\xfc\xdfe\n\nausf\xfchrlich")
	}
	return c
}

// names splits output in which git separates names by NUL.
func names(text string) (all []string) {
	for name := range strings.SplitSeq(text, "\x00") {
		if name = strings.TrimPrefix(name, "\n"); name != "" {
			all = append(all, name)
		}
	}
	return all
}

// questions asks random questions about one repository.
type questions struct {
	*shop

	t              *testing.T
	random         *rand.Rand
	commits, paths []string
}

func (q *questions) git(args ...string) string {
	q.t.Helper()
	return q.client.Git(q.t, append([]string{"--literal-pathspecs"}, args...)...)
}

func (q *questions) pick(all ...string) string { return all[q.random.IntN(len(all))] }

func (q *questions) revision() string {
	id := q.pick(q.commits...)
	return q.pick(id, id[:12], "main", "HEAD", fmt.Sprint("b", q.random.IntN(9)), fmt.Sprint("t", q.random.IntN(9)))
}

func (q *questions) ask(path string, parameters url.Values) familytest.Answer {
	q.t.Helper()
	answer := q.As("", "GET "+at+path+"?"+parameters.Encode(), "")
	if answer.Code != 200 {
		q.t.Fatalf("%s?%s: %.300s", path, parameters.Encode(), answer)
	}
	return answer
}

// fields is the format of the fields of a commit that both git and the API show.
const fields = "--format=%H|%P|%cI|%aI|%an|%s"

func said(c Listed) string {
	moment := func(m interface{ MarshalText() ([]byte, error) }) string {
		text, _ := m.MarshalText()
		return strings.Replace(strings.Replace(string(text), ".000", "", 1), "+00:00", "Z", 1)
	}
	return strings.Join([]string{c.ID, strings.Join(c.ParentIDs, " "), moment(c.CreatedAt), moment(c.AuthoredDate), c.AuthorName, c.Title}, "|")
}

func (q *questions) list() {
	q.t.Helper()
	p, args := url.Values{}, []string{"log", fields}
	name := q.revision()
	if q.random.IntN(3) == 0 {
		name += q.pick("..", "...") + q.revision()
	}
	if p.Set("ref_name", name); q.random.IntN(8) == 0 {
		p.Set("all", "true")
		name = "--all"
	}
	if q.random.IntN(3) == 0 {
		since := q.git("show", "--no-patch", "--format=%cI", q.pick(q.commits...))
		p.Set("since", since)
		args = append(args, "--since="+since)
	}
	if q.random.IntN(3) == 0 {
		until := q.git("show", "--no-patch", "--format=%cI", q.pick(q.commits...))
		p.Set("until", until)
		args = append(args, "--until="+until)
	}
	if q.random.IntN(4) == 0 {
		p.Set("order", "topo")
		args = append(args, "--topo-order")
	}
	if q.random.IntN(4) == 0 {
		p.Set("first_parent", "true")
		args = append(args, "--first-parent")
	}
	args = append(args, name, "--")
	if q.random.IntN(2) == 0 {
		path := q.pick(q.paths...)
		if q.random.IntN(2) == 0 {
			path = filepath.Dir(path)
		}
		if path != "." {
			p.Set("path", path)
			args = append(slices.Insert(args, 1, "--follow"), path)
		}
	}
	page, size := 1+q.random.IntN(3), 1+q.random.IntN(30)
	p.Set("page", fmt.Sprint(page))
	p.Set("per_page", fmt.Sprint(size))
	all := strings.FieldsFunc(q.git(args...), func(r rune) bool { return r == '\n' })
	from := min((page-1)*size, len(all))
	want := all[from:min(from+size, len(all))]
	answer := q.ask("", p)
	var got []string
	for _, c := range familytest.Decode[[]Listed](q.t, answer) {
		got = append(got, said(c))
	}
	for i := range want {
		want[i] = strings.ReplaceAll(want[i], "+00:00", "Z")
	}
	if !slices.Equal(got, want) {
		q.t.Errorf("%v has\n%v\nwant\n%v", p, got, want)
	}
	if more := answer.Header.Get("X-Next-Page") != ""; more != (from+size < len(all)) {
		q.t.Errorf("%v: the next page is %t", p, more)
	}
}

func (q *questions) one() {
	q.t.Helper()
	revision := q.revision()
	c := familytest.Decode[Detail](q.t, q.ask("/"+revision, nil))
	var want Stats
	var paths []string
	for line := range strings.Lines(q.git("show", "--diff-merges=first-parent", "--numstat", "--format=", revision)) {
		var added, removed int
		if n, _ := fmt.Sscan(line, &added, &removed); n == 2 {
			want.Additions, want.Deletions = want.Additions+added, want.Deletions+removed
		}
	}
	want.Total = want.Additions + want.Deletions
	if *c.Stats != want {
		q.t.Errorf("%s has changed %v, want %v", revision, *c.Stats, want)
	}
	got := []string{c.Title, strings.TrimRight(c.Message, "\n"), c.AuthorName, c.CommitterEmail}
	shown := make([]string, 4)
	for i, format := range []string{"%s", "%B", "%an", "%ce"} {
		shown[i] = strings.TrimRight(q.git("show", "--no-patch", "--format="+format, revision), "\n")
	}
	if !slices.Equal(got, shown) {
		q.t.Errorf("%s is\n%q\nwant\n%q", revision, got, shown)
	}

	patches := regexp.MustCompile(`(?m)^diff --git `).Split(q.git("show", "--diff-merges=first-parent", "--format=", "--no-color", revision)+"\n", -1)
	diffs := familytest.Decode[[]diff.Diff](q.t, q.ask("/"+revision+"/diff", url.Values{"per_page": {"100"}, "unidiff": {"true"}}))
	if want := min(len(patches)-1, 100); len(diffs) != want {
		q.t.Fatalf("%s has %d changes, want %d", revision, len(diffs), want)
	}
	for i, d := range diffs {
		paths = append(paths, d.NewPath)
		if _, hunks, _ := strings.Cut(patches[i+1], "\n--- "); d.Diff != "" && d.Diff != "--- "+hunks {
			q.t.Errorf("%s: %s has\n%.600s\nwant\n%.600s", revision, d.NewPath, d.Diff, hunks)
		}
	}
	if want := names(q.git("show", "--diff-merges=first-parent", "--format=", "--name-only", "-z", revision)); !slices.Equal(paths, want[:len(paths)]) {
		q.t.Errorf("%s has changed %v, want %v", revision, paths, want)
	}
}

func (q *questions) refs() {
	q.t.Helper()
	revision := q.revision()
	var got []string
	for _, r := range familytest.Decode[[]Ref](q.t, q.ask("/"+revision+"/refs", url.Values{"per_page": {"100"}})) {
		got = append(got, map[string]string{"branch": "refs/heads/", "tag": "refs/tags/"}[r.Type]+r.Name)
	}
	if want := strings.Fields(q.git("for-each-ref", "--contains="+revision, "--format=%(refname)", "refs/heads/", "refs/tags/")); !slices.Equal(got, want[:min(len(want), 100)]) {
		q.t.Errorf("%s is in %v, want %v", revision, got, want)
	}
}
