package repositories_test

import (
	"crypto/sha1" //nolint:gosec // Git does it
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/commit"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	. "github.com/forgeplane/forgeplane/apiserver/v4/repositories"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/test/history"
	"github.com/forgeplane/forgeplane/test/seed"
	"github.com/forgeplane/forgeplane/test/soak"
)

// TestRepositories_agreeWithGit asks for random revisions and paths of a large history with branches, merges and renames, and of one
// with odd names, and compares each answer with the output of git.
func TestRepositories_agreeWithGit(t *testing.T) {
	rounds := soak.Times(1, 50)
	for name, c := range map[string]*gittest.Client{"many commits": generated(t, soak.Times(300, 5000)), "odd names": branched(t)} {
		t.Run(name, func(t *testing.T) {
			q := &questions{
				shop: newShop(t, c), random: rand.New(rand.NewPCG(seed.Value(), 2)), t: t,
				commits: strings.Fields(c.Git(t, "rev-list", "--all")),
				names:   strings.Fields(c.Git(t, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads/", "refs/tags/")),
			}
			for range rounds * 10 {
				q.tree()
				q.blob()
			}
			for range rounds * 4 {
				q.compare()
				q.mergeBase()
				q.changelog()
			}
			for range rounds {
				q.contributors()
				q.archive()
			}
		})
	}
}

// generated returns a client with a number of commits, and a tenth as many branches.
func generated(t *testing.T, commits int) *gittest.Client {
	t.Helper()
	c := gittest.New(t, "sha1")
	c.Import(t, history.Stream(history.Options{Commits: commits, Topics: commits / 10}))
	return c
}

// branched returns a client with several branches, which are merged now and then. Some commits are in another encoding.
func branched(t *testing.T) *gittest.Client {
	t.Helper()
	c := oddTree(t, "sha1")
	random := rand.New(rand.NewPCG(3, 4))
	branches := []string{"main"}
	for i := range 80 {
		c.Env = []string{
			fmt.Sprintf("GIT_COMMITTER_DATE=%d +0100", 1_700_000_000+i*100), fmt.Sprintf("GIT_AUTHOR_NAME=Author %d", random.IntN(5)),
			fmt.Sprintf("GIT_AUTHOR_EMAIL=%d@example.com", random.IntN(4)),
		}
		at := branches[random.IntN(len(branches))]
		c.Git(t, "checkout", "--quiet", at)
		switch random.IntN(6) {
		case 0:
			branches = append(branches, fmt.Sprintf("topic/%d", i))
			c.Git(t, "checkout", "--quiet", "-b", branches[len(branches)-1])
			c.Git(t, "mv", "README", fmt.Sprintf("README-%d", i))
			c.Git(t, "commit", "--quiet", "--message=Rename")
			c.Git(t, "mv", fmt.Sprintf("README-%d", i), "README")
			c.Commit(t, "README", fmt.Sprintf("content of a file\nof %d\n", i))
		case 1:
			c.Git(t, "merge", "--quiet", "--strategy=ours", "--message=Merge\n\nChangelog: changed", branches[random.IntN(len(branches))])
		case 2:
			c.Env = append(c.Env, "GIT_AUTHOR_NAME=J\xf6rg")
			c.Git(t, "-c", "i18n.commitEncoding=ISO-8859-1", "commit", "--quiet", "--allow-empty", "--message=Gr\xfc\xdfe\n\nChangelog: ge\xe4ndert")
		default:
			c.Commit(t, fmt.Sprintf("dir/%d/file %d", random.IntN(5), random.IntN(9)), strings.Repeat(fmt.Sprintf("line %d\n", i), 1+random.IntN(20)))
		}
	}
	return c
}

// questions asks random questions about one repository.
type questions struct {
	*shop

	t              *testing.T
	random         *rand.Rand
	commits, names []string
}

// revision returns a random name of a commit, in one of the forms that clients can use.
func (q *questions) revision() string {
	id := q.commits[q.random.IntN(len(q.commits))]
	switch q.random.IntN(6) {
	case 0:
		return id[:10]
	case 1:
		return q.names[q.random.IntN(len(q.names))]
	case 2:
		name := fmt.Sprintf("%s~%d", q.names[q.random.IntN(len(q.names))], q.random.IntN(4))
		if _, err := q.client.Try("rev-parse", "--verify", "--quiet", name+"^{commit}"); err == nil {
			return name
		}
		return id
	default:
		return id
	}
}

func (q *questions) git(args ...string) string {
	q.t.Helper()
	return q.client.Git(q.t, args...)
}

func (q *questions) ask(path string, parameters url.Values) familytest.Answer {
	q.t.Helper()
	answer := q.As("", "GET /projects/20/repository/"+path+"?"+parameters.Encode(), "")
	if answer.Code != 200 {
		q.t.Fatalf("%s?%s: %.300s", path, parameters.Encode(), answer)
	}
	return answer
}

// paths returns the paths of one type in a commit.
func (q *questions) paths(revision, kind string) (all []string) {
	q.t.Helper()
	for _, e := range q.listed(q.t, revision, "", true) {
		if e.Type == kind && !strings.ContainsRune(e.Path, '\uFFFD') {
			all = append(all, e.Path)
		}
	}
	return all
}

func (q *questions) tree() {
	q.t.Helper()
	revision, directory := q.revision(), ""
	if all := q.paths(revision, "tree"); len(all) > 0 && q.random.IntN(3) > 0 {
		directory = all[q.random.IntN(len(all))]
	}
	recursive := q.random.IntN(2) == 0
	want := q.listed(q.t, revision, directory, recursive)
	parameters := url.Values{"ref": {revision}, "path": {directory}, "recursive": {strconv.FormatBool(recursive)}}
	if recursive {
		parameters.Set("pagination", "none")
	} else {
		parameters.Set("per_page", "100")
	}
	if got := familytest.Decode[[]Entry](q.t, q.ask("tree", parameters)); !slices.Equal(got, want) {
		q.t.Errorf("tree %v:\ngot  %v\nwant %v", parameters, got, want)
	}
}

func (q *questions) blob() {
	q.t.Helper()
	all := q.listed(q.t, q.revision(), "", true)
	all = slices.DeleteFunc(all, func(e Entry) bool { return e.Type != "blob" })
	id := all[q.random.IntN(len(all))].ID
	raw := q.ask("blobs/"+id+"/raw", nil).Body
	blob := familytest.Decode[Blob](q.t, q.ask("blobs/"+id, nil))
	decoded, err := base64.StdEncoding.DecodeString(blob.Content)
	// The id is the checksum of the size and content.
	sum := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", blob.Size, raw)) //nolint:gosec // Git does it
	if err != nil || string(decoded) != raw || hex.EncodeToString(sum[:]) != id {
		q.t.Errorf("blob %s is %.100q and %.100q (%v)", id, raw, decoded, err)
	}
}

// headers matches the lines of a diff before the change itself.
var headers = regexp.MustCompile(`(?s)^.*?\n(?:(--- )|(Binary files ))`)

func (q *questions) compare() {
	q.t.Helper()
	from, to, straight := q.revision(), q.revision(), q.random.IntN(2) == 0
	dots := map[bool]string{true: "..", false: "..."}[straight]
	answer := familytest.Decode[Compare](q.t, q.ask("compare", url.Values{
		"from": {from}, "to": {to}, "straight": {strconv.FormatBool(straight)}, "unidiff": {"true"},
	}))
	if got, want := ids(answer), strings.Fields(q.git("rev-list", "--reverse", from+".."+to)); !slices.Equal(got, want) {
		q.t.Errorf("%s%s%s has the commits %v, want %v", from, dots, to, got, want)
	}
	same := q.git("rev-parse", from+"^{commit}") == q.git("rev-parse", to+"^{commit}")
	if answer.CompareSameRef != same {
		q.t.Errorf("%s%s%s: same is %t", from, dots, to, answer.CompareSameRef)
	}
	var want []string
	whole := q.git("diff", "--find-renames", "--no-color", from+dots+to) + "\n"
	for i, patch := range regexp.MustCompile(`(?m)^diff --git `).Split(whole, -1) {
		if i > 0 {
			want = append(want, headers.ReplaceAllString(patch, "$1$2"))
		}
	}
	if len(answer.Diffs) != len(want) {
		q.t.Fatalf("%s%s%s has %d changes, want %d", from, dots, to, len(answer.Diffs), len(want))
	}
	for i, d := range answer.Diffs {
		if d.Diff != strings.ToValidUTF8(want[i], "\uFFFD") && d.Diff != "" {
			q.t.Errorf("%s%s%s: %s has\n%.600s\nwant\n%.600s", from, dots, to, d.NewPath, d.Diff, want[i])
		}
		if d.Diff == "" && strings.Contains(want[i], "\n@@ ") && !d.TooLarge {
			q.t.Errorf("%s%s%s: %s has no text", from, dots, to, d.NewPath)
		}
	}
	// Compare the modes and names of all changes, too, unless a file has changed its type.
	if raw := q.git("diff", "--raw", "-z", "--find-renames", from+dots+to); !strings.Contains(raw, " T\x00") {
		var got strings.Builder
		for _, d := range answer.Diffs {
			fmt.Fprintf(&got, "%06s %06s %s\x00", d.AMode, d.BMode, d.OldPath)
			if d.RenamedFile {
				got.WriteString(d.NewPath + "\x00")
			}
		}
		meta := regexp.MustCompile(`:(\d{6} \d{6}) [0-9a-f.]+ [0-9a-f.]+ [A-Z]\d*\x00`)
		if want := strings.ToValidUTF8(meta.ReplaceAllString(raw, "$1 "), "\uFFFD"); got.String() != want {
			q.t.Errorf("%s%s%s has the changes\n%q\nwant\n%q", from, dots, to, got.String(), want)
		}
	}
}

func (q *questions) mergeBase() {
	q.t.Helper()
	refs := []string{q.revision(), q.revision(), q.revision()}[:2+q.random.IntN(2)]
	answer := q.As("", "GET /projects/20/repository/merge_base?"+url.Values{"refs[]": refs}.Encode(), "")
	want, err := q.client.Try(append([]string{"merge-base"}, refs...)...)
	if err != nil {
		if answer.Code != 404 {
			q.t.Errorf("the merge base of %v is %s", refs, answer)
		}
		return
	}
	got := familytest.Decode[commit.Commit](q.t, answer)
	created, err := got.CreatedAt.MarshalText()
	if err != nil {
		q.t.Fatal(err)
	}
	said := fmt.Sprintf("%s\n%s\n%s\n%s", got.ID, got.Title, got.AuthorName, strings.Replace(string(created), ".000", "", 1))
	if shown := q.git("show", "--no-patch", "--format=%H%n%s%n%an%n%cI", strings.TrimSpace(want)); said != strings.Replace(shown, "Z", "+00:00", 1) {
		q.t.Errorf("the merge base of %v is\n%s\nwant\n%s", refs, said, shown)
	}
}

func (q *questions) contributors() {
	q.t.Helper()
	revision := q.revision()
	want := map[string]int{}
	for email := range strings.Lines(q.git("log", "--format=%ae", revision) + "\n") {
		want[strings.TrimSpace(email)]++
	}
	got := map[string]int{}
	for _, c := range familytest.Decode[[]Contributor](q.t, q.ask("contributors", url.Values{"ref": {revision}, "per_page": {"100"}})) {
		got[c.Email] = c.Commits
	}
	if !maps.Equal(got, want) {
		q.t.Errorf("the contributors of %s are %v, want %v", revision, got, want)
	}
}

func (q *questions) archive() {
	q.t.Helper()
	revision := q.revision()
	var want []string
	for _, e := range q.listed(q.t, revision, "", true) {
		if e.Type == "blob" && e.Mode != "120000" {
			want = append(want, e.Path)
		}
	}
	var got []string
	for _, name := range packed(q.t, "x.tar.gz", q.ask("archive", url.Values{"sha": {revision}}).Body) {
		_, path, _ := strings.Cut(name, "/")
		got = append(got, strings.ToValidUTF8(path, "\uFFFD"))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		q.t.Errorf("the archive of %s has\n%q\nwant\n%q", revision, got, want)
	}
}

// entries matches the titles and ids of the commits in notes.
var entries = regexp.MustCompile(`\[(.*)\]\(acme/web@([0-9a-f]+)\)`)

func (q *questions) changelog() {
	q.t.Helper()
	from, to := q.revision(), q.revision()
	answer := familytest.Decode[Notes](q.t, q.ask("changelog", url.Values{"version": {"1.0.0"}, "from": {from}, "to": {to}}))
	var got, want, values []string
	for _, found := range entries.FindAllStringSubmatch(answer.Notes, -1) {
		got = append(got, found[2]+" "+found[1])
	}
	of := map[string][]string{}
	for line := range strings.Lines(q.git("log", "--format=%H %s%x00%(trailers:key=Changelog,valueonly,separator=%x20)", from+".."+to)) {
		entry, value, _ := strings.Cut(strings.TrimSpace(line), "\x00")
		if value == "" {
			continue
		}
		if of[value] == nil {
			values = append(values, value)
		}
		of[value] = append(of[value], entry)
	}
	for _, value := range values {
		want = append(want, of[value]...)
	}
	if !slices.Equal(got, want) {
		q.t.Errorf("the changelog of %s..%s has %v, want %v", from, to, got, want)
	}
}
