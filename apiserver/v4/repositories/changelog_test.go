package repositories_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	. "github.com/forgeplane/forgeplane/apiserver/v4/repositories"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/feature"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

// press is a forge with the public project web in the group acme. Web protects main. In acme, mary is a Maintainer, dora a Developer, rita a
// Reporter and sam a Guest. Rita is also a Guest of the public group "friends", and sam of the private group "secret". Otto and cleo have no
// role.
type press struct {
	*familytest.Forge

	client  *gittest.Client
	git     *git.Repository
	brought brought
	pushed  int
}

// brought finds the merge requests that a test sets.
type brought struct {
	merged []mergerequest.Commits
	err    error
	// meanwhile, unless nil, is called while the notes are being made.
	meanwhile func()
}

func (b *brought) MergedWith(_ context.Context, _ types.UID, commits []string) (found []mergerequest.Commits, err error) {
	if b.meanwhile != nil {
		b.meanwhile()
	}
	for _, m := range b.merged {
		if slices.ContainsFunc([]string{m.Head, m.Merge, m.Squash}, func(id string) bool { return slices.Contains(commits, id) }) {
			found = append(found, m)
		}
	}
	return found, b.err
}

func newPress(t *testing.T, c *gittest.Client) *press {
	t.Helper()
	project := func(name string, id int64) *v1alpha1.Project {
		return familytest.Project("acme", name, id, "acme", v1alpha1.VisibilityPublic)
	}
	web, empty, archived := project("web", 20), project("empty", 21), project("archived", 23)
	archived.Spec.Archived = true
	f := familytest.New(t,
		familytest.User("mary", 2), familytest.User("dora", 3), familytest.User("rita", 4),
		familytest.User("otto", 5), familytest.User("sam", 6), familytest.User("cleo", 7),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic),
		familytest.Group("friends", "friends", 11, "", v1alpha1.VisibilityPublic),
		familytest.Group("secret", "secret", 12, "", v1alpha1.VisibilityPrivate),
		familytest.InGroup("acme", "acme", "mary", v1alpha1.RoleMaintainer), familytest.InGroup("acme", "acme", "dora", v1alpha1.RoleDeveloper),
		familytest.InGroup("acme", "acme", "rita", v1alpha1.RoleReporter), familytest.InGroup("friends", "friends", "rita", v1alpha1.RoleGuest),
		familytest.InGroup("acme", "acme", "sam", v1alpha1.RoleGuest), familytest.InGroup("secret", "secret", "sam", v1alpha1.RoleGuest),
		familytest.Shard(t, web, empty, archived), web, empty, archived, project("new", 22),
		&v1alpha1.ProtectedBranch{
			ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "main"},
			Spec: v1alpha1.ProtectedBranchSpec{
				ID: 30, ProjectRef: &v1alpha1.Reference{Name: "web"}, Branch: "main", CodeOwnerApprovalRequired: true,
				Push: []v1alpha1.AccessLevel{{Role: v1alpha1.AccessMaintainer}}, Merge: []v1alpha1.AccessLevel{{Role: v1alpha1.AccessMaintainer}},
			},
		},
	)
	repos := familytest.Repositories(t, f.Catalog)
	p := &press{Forge: f, client: c, git: familytest.Push(t, repos, web, c)}
	familytest.Push(t, repos, archived, c)
	nothing, err := repos.Of(t.Context(), empty)
	if err == nil {
		err = nothing.Init(t.Context(), git.InitOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	w := ref.NewUpdater(f.Guard, repos, func(change.Event) { p.pushed++ })
	f.Repositories, f.Refs = repos, w
	f.Serve(New(f.Kit).With(&p.brought).Table())
	return p
}

// released returns a client with the tags v1.0.0, v1.1.0-rc.1 and v2.0.0 on main, and with changes of all kinds around them.
func released(t *testing.T, format string) *gittest.Client {
	t.Helper()
	c := gittest.New(t, format)
	c.Commit(t, "CODEOWNERS", "/owned/ @mary\n")
	changed(t, c, "ann@example.com", "Before", "Changelog: added")
	c.Git(t, "tag", "v1.0.0")
	changed(t, c, "Otto@Forge.Example", "First", "Changelog: added\nIssue: 7")
	c.Git(t, "tag", "--annotate", "--message=A candidate", "v1.1.0-rc.1")
	changed(t, c, "dora@forge.example", "Second", "Changelog: fixed")
	changed(t, c, "dora@forge.example", "Third", "")
	changed(t, c, "dora@forge.example", "Taken back", "Changelog: added")
	changed(t, c, "dora@forge.example", "Take back", "This reverts commit "+c.Git(t, "rev-parse", "HEAD")+".")
	changed(t, c, "rita@forge.example", "Fourth", "Changelog: added")
	c.Git(t, "branch", "topic")
	changed(t, c, "sam@forge.example", "Fifth", "changelog: added\nKind: odd")
	c.Git(t, "tag", "--annotate", "--message=Two", "v2.0.0")
	return c
}

// changed creates an empty commit with a title and trailers.
func changed(t *testing.T, c *gittest.Client, email, title, trailers string) {
	t.Helper()
	c.Env = []string{"GIT_AUTHOR_EMAIL=" + email}
	c.Git(t, "commit", "--quiet", "--allow-empty", "--message="+title+"\n\n"+trailers)
	c.Env = nil
}

// configured commits a configuration to the branch that is checked out.
func configured(t *testing.T, c *gittest.Client, path, content string) *gittest.Client {
	t.Helper()
	c.Commit(t, path, content)
	return c
}

// notes returns the notes that a user gets, or the whole answer if it is an error.
func (p *press) notes(t *testing.T, who, query string) string {
	t.Helper()
	answer := p.As(who, "GET /projects/20/repository/changelog?"+query, "")
	if answer.Code != 200 {
		return answer.String()
	}
	return familytest.Decode[Notes](t, answer).Notes
}

// line returns the entry for the commit with a title.
func (p *press) line(t *testing.T, title, more string) string {
	t.Helper()
	return fmt.Sprintf("- [%s](acme/web@%s)%s\n", title, p.client.Git(t, "rev-parse", ":/^"+title), more)
}

func TestNotes_listCommitsSinceThePreviousVersion(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			c := released(t, format)
			p := newPress(t, c)
			p.brought.merged = []mergerequest.Commits{{IID: 12, Head: c.Git(t, "rev-parse", ":/^Second"), Base: c.Git(t, "rev-parse", "v1.1.0-rc.1^{commit}")}}
			added, fixed := p.line(t, "Fourth", "")+p.line(t, "First", " by @otto"), p.line(t, "Second", " ([merge request](acme/web!12))")
			whole := "### added (2 changes)\n\n" + added + "\n### fixed (1 change)\n\n" + fixed
			for query, want := range map[string]string{
				"version=1.1.0":                                         "## 1.1.0 (2026-06-15)\n\n" + whole,
				"version=v1.1.0&date=2021-01-05":                        "## v1.1.0 (2021-01-05)\n\n" + whole,
				"version=1.1.0&date=2021-01-05T23:00:00-05:00":          "## 1.1.0 (2021-01-05)\n\n" + whole,
				"version=2.0.0-rc.1&trailer=&from=&to=&date=":           "## 2.0.0-rc.1 (2026-06-15)\n\n" + whole,
				"version=2.0.1":                                         "## 2.0.1 (2026-06-15)\n\nNo changes.\n",
				"version=1.1.0&to=v1.1.0-rc.1":                          "## 1.1.0 (2026-06-15)\n\n### added (1 change)\n\n" + p.line(t, "First", " by @otto"),
				"version=1.1.0&from=v1.1.0-rc.1&to=topic~3":             "## 1.1.0 (2026-06-15)\n\n### fixed (1 change)\n\n" + fixed,
				"version=0.0.1&from=" + c.Git(t, "rev-parse", "main~1"): "## 0.0.1 (2026-06-15)\n\nNo changes.\n",
				"version=1.1.0&trailer=changelog":                       "## 1.1.0 (2026-06-15)\n\n### added (1 change)\n\n" + p.line(t, "Fifth", ""),
				"version=1.1.0&trailer=Issue":                           "## 1.1.0 (2026-06-15)\n\n### 7 (1 change)\n\n" + p.line(t, "First", " by @otto"),
				"version=1.1.0&config_file=nowhere.yml":                 "## 1.1.0 (2026-06-15)\n\n" + whole,
				"version=1.1.0&config_file=../../etc/passwd":            "## 1.1.0 (2026-06-15)\n\n" + whole,
			} {
				if got := p.notes(t, "", query); got != want {
					t.Errorf("%s\ngot\n%s\nwant\n%s", query, got, want)
				}
			}
		})
	}
}

func TestNotes_nameTheFirstMergeRequestOfEachCommit(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "1")
	c.Git(t, "tag", "v1.0.0")
	c.Git(t, "checkout", "--quiet", "-b", "topic")
	changed(t, c, "ann@example.com", "First", "Changelog: a")
	changed(t, c, "ann@example.com", "Second", "Changelog: a")
	c.Git(t, "checkout", "--quiet", "main")
	changed(t, c, "ann@example.com", "Direct", "Changelog: b")
	c.Git(t, "merge", "--quiet", "--no-ff", "--message=Merge\n\nChangelog: c", "topic")
	changed(t, c, "ann@example.com", "Squashed", "Changelog: d")
	id := func(revision string) string { return c.Git(t, "rev-parse", revision) }
	p := newPress(t, c)
	p.brought.merged = []mergerequest.Commits{
		{IID: 7, Head: id("topic"), Base: id("v1.0.0"), Merge: id("main~1")},
		{IID: 9, Head: id("topic"), Base: id("topic~1")},
		{IID: 8, Head: strings.Repeat("1", 40), Base: id("v1.0.0"), Merge: id("main"), Squash: id("main")},
	}
	const first = " ([merge request](acme/web!7))"
	want := "## 1.1.0 (2026-06-15)\n\n### d (1 change)\n\n" + p.line(t, "Squashed", " ([merge request](acme/web!8))") +
		"\n### c (1 change)\n\n" + p.line(t, "Merge", first) + "\n### b (1 change)\n\n" + p.line(t, "Direct", "") +
		"\n### a (2 changes)\n\n" + p.line(t, "Second", first) + p.line(t, "First", first)
	if got := p.notes(t, "", "version=1.1.0"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestNotes_keepTheirCopyDuringAMove(t *testing.T) {
	c := released(t, "sha1")
	p := newPress(t, c)
	still := errors.New("somebody still reads it")
	p.brought.meanwhile = func() {
		if err := p.git.Retire("a-move"); err != nil {
			t.Error(err)
		}
		ctx, stop := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, still)
		defer stop()
		if err := p.git.RemoveRetired(ctx, "a-move"); !errors.Is(err, still) {
			t.Errorf("removing the copy that is being read: got %v, want %v", err, still)
		}
	}
	if got := p.notes(t, "", "version=1.1.0"); !strings.HasPrefix(got, "## 1.1.0 (2026-06-15)") {
		t.Errorf("got %s", got)
	}
	if err := p.git.RemoveRetired(t.Context(), "a-move"); err != nil {
		t.Errorf("removing it afterwards: %v", err)
	}
}

func TestNotes_failWithAReason(t *testing.T) {
	c := released(t, "sha1")
	c.Git(t, "tag", "v0.5.0", "HEAD^{tree}")
	configured(t, c, "bad/template.yml", "template: |\n  a\n  {% if a %}\n")
	configured(t, c, "bad/categories.yml", "categories: [a]")
	configured(t, c, "bad/regex.yml", "tag_regex: '('")
	configured(t, c, "bad/large.yml", strings.Repeat("#", 70_000))
	p := newPress(t, c)
	failed := func(text string) string {
		body, err := json.Marshal(map[string]string{"message": "Failed to generate the changelog: " + text})
		if err != nil {
			t.Fatal(err)
		}
		return "422 " + string(body)
	}
	const noStart = "The commit start range is unspecified, and no previous tag could be found to use instead"
	for target, want := range map[string]string{
		"20?":                          `400 {"error":"version is missing"}`,
		"20?version=":                  `400 {"error":"version is empty"}`,
		"20?version=1.0":               `400 {"error":"version is invalid"}`,
		"20?version=1.0.0&date=x":      `400 {"error":"date is invalid"}`,
		"20?version=0.9.0":             failed(noStart),
		"20?version=1.0.0":             failed(noStart),
		"21?version=1.0.0":             failed(noStart),
		"21?version=1.0.0&from=main":   failed(`There is no commit "main"`),
		"22?version=1.0.0":             failed("There is no such commit, or no repository yet"),
		"20?version=1.1.0&from=--all":  failed(`There is no commit "--all"`),
		"20?version=1.1.0&from=v0.5.0": failed(`There is no commit "v0.5.0"`),
		"20?version=1.1.0&to=x..y":     failed(`There is no commit "x..y"`),
		"20?version=1.1.0&config_file=bad/template.yml":   failed("Invalid template, line 2, column 1: {% if %} has no {% end %}"),
		"20?version=1.1.0&config_file=bad/categories.yml": failed(`The "categories" configuration key must be a Hash`),
		"20?version=1.1.0&config_file=bad/regex.yml": failed("The regular expression to use for finding the previous tag for a version is invalid: " +
			"error parsing regexp: missing closing ): `(`"),
		"20?version=1.1.0&config_file=bad/large.yml": failed("The configuration is larger than 65536 bytes"),
		"20?version=1.1.0&config_file_ref=nowhere":   failed(`There is no commit "nowhere"`),
	} {
		id, query, _ := strings.Cut(target, "?")
		if got := p.As("", "GET /projects/"+id+"/repository/changelog?"+query, "").String(); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", target, got, want)
		}
	}
	p.brought.err = errors.New("they are away")
	if got := p.notes(t, "", "version=1.1.0"); !strings.HasPrefix(got, "500 ") {
		t.Errorf("without merge requests: %s", got)
	}
}

func TestConfiguration_isReadFromTheRepository(t *testing.T) {
	const own = ".service/changelog_config.yml"
	c := configured(t, released(t, "sha1"), own, "categories: {fixed: Repairs}\n")
	configured(t, c, ".gitlab/changelog_config.yml", "categories: {fixed: Not looked at}\n")
	c.Git(t, "branch", "topic-2")
	c.Git(t, "rm", "--quiet", own)
	c.Git(t, "commit", "--quiet", "--message=Remove it")
	configured(t, c, "other.yml", "tag_regex: '^v(?<major>2).(?<minor>0).(?<patch>0)$'\ncategories: {odd: Oddities}\n")
	p := newPress(t, c)
	for query, title := range map[string]string{
		"version=1.1.0": "### Not looked at (1 change)", "version=1.1.0&config_file_ref=topic-2": "### Repairs (1 change)",
		"version=1.1.0&to=topic-2": "### Not looked at (1 change)", "version=1.1.0&config_file_ref=topic-2&config_file=other.yml": "### fixed (1 change)",
		"version=1.1.0&config_file=other.yml":                          "no previous tag could be found",
		"version=1.1.0&trailer=Kind&config_file=other.yml&from=v1.0.0": "### Oddities (1 change)",
		"version=1.1.0&config_file=" + url.QueryEscape("/"+own):        "### fixed (1 change)",
	} {
		if got := p.notes(t, "", query); !strings.Contains(got, title) {
			t.Errorf("%s is without %q:\n%s", query, title, got)
		}
	}
}

func TestIncludedGroups_areCreditedWhenTheCallerSeesThem(t *testing.T) {
	c := released(t, "sha1")
	changed(t, c, "sam@forge.example", "Sixth", "Changelog: added")
	configured(t, c, ".gitlab/changelog_config.yml", "include_groups: [friends, secret, nowhere]\n")
	p := newPress(t, c)
	for who, want := range map[string]string{"dora": "", "": "", "sam": " by @sam"} {
		got := p.notes(t, who, "version=1.1.0")
		for _, line := range []string{p.line(t, "Sixth", want), p.line(t, "Fourth", " by @rita"), p.line(t, "First", " by @otto")} {
			if !strings.Contains(got, line) {
				t.Errorf("for %q it has no %q:\n%s", who, line, got)
			}
		}
	}
}

// add sends a request to commit a changelog, and returns the answer.
func (p *press) add(who, project string, parameters map[string]string) string {
	body, err := json.Marshal(parameters)
	if err != nil {
		panic(err)
	}
	return p.As(who, "POST /projects/"+project+"/repository/changelog", string(body)).String()
}

func (p *press) file(t *testing.T, at string) string {
	t.Helper()
	return (&gittest.Client{Dir: p.git.Dir()}).Git(t, "show", at)
}

func TestAddChangelog_commitsTheNotes(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			p := newPress(t, released(t, format))
			tip := p.client.Git(t, "rev-parse", "main")
			notes := p.notes(t, "", "version=1.1.0")
			if got := p.add("mary", "20", map[string]string{"version": "1.1.0"}); got != "200 200" {
				t.Fatal(got)
			}
			if got := p.file(t, "main:CHANGELOG.md"); got+"\n" != notes {
				t.Errorf("the file is\n%s\nwant\n%s", got, notes)
			}
			if got, want := p.file(t, "main:")+p.file(t, "main^:"), "tree main:\n\nCHANGELOG.md\nCODEOWNERStree main^:\n\nCODEOWNERS"; got != want {
				t.Errorf("the trees are %q", got)
			}
			about := func(what string) string {
				return (&gittest.Client{Dir: p.git.Dir()}).Git(t, "log", "--max-count=1", "--format="+what, "main")
			}
			if got, want := about("%P %an %ae %cn %aI %s"), tip+" mary mary@forge.example mary 2026-06-15T12:00:00+00:00 Add changelog for version 1.1.0"; got != want {
				t.Errorf("the commit is %s", got)
			}
			// The changelog already has the version.
			if got := p.add("mary", "20", map[string]string{"version": "v1.1.0", "branch": "main"}); got != "200 200" || p.pushed != 1 {
				t.Errorf("the second time: %s, after %d pushes", got, p.pushed)
			}
			// An older version goes below. The range must end at tip, because the branch has one more commit now.
			if got := p.add("mary", "20", map[string]string{"version": "1.0.1", "to": tip, "message": "Tell\n\nmore"}); got != "200 200" || p.pushed != 2 {
				t.Errorf("another version: %s, after %d pushes", got, p.pushed)
			}
			if got, want := p.file(t, "main:CHANGELOG.md"), notes+"\n"+strings.Replace(notes, "1.1.0", "1.0.1", 1); got+"\n" != want {
				t.Errorf("the file is\n%s\nwant\n%s", got, want)
			}
			if got := about("%B"); got != "Tell\n\nmore" {
				t.Errorf("the message is %q", got)
			}
			p.client.Dir = p.git.Dir()
			if said := p.client.Git(t, "fsck", "--strict"); said != "" {
				t.Error(said)
			}
		})
	}
}

func TestAddChangelog_writesToAGivenBranchAndFile(t *testing.T) {
	c := released(t, "sha1")
	c.Git(t, "checkout", "--quiet", "topic")
	c.Commit(t, "docs/NEWS.md", "# News\n\n## 1.0.0\n\n- All\n")
	p := newPress(t, c)
	if got := p.add("dora", "20", map[string]string{"version": "1.1.0", "branch": "topic", "file": "docs/NEWS.md", "date": "2020-01-02"}); got != "200 200" {
		t.Fatal(got)
	}
	notes := p.notes(t, "", "version=1.1.0&date=2020-01-02&to=topic~1")
	if got := p.file(t, "topic:docs/NEWS.md") + "\n"; got != "# News\n\n"+notes+"\n## 1.0.0\n\n- All\n" {
		t.Errorf("the file is\n%s", got)
	}
	if got := p.file(t, "main:"); strings.Contains(got, "docs") {
		t.Errorf("main has %s", got)
	}
}

func TestAddChangelog_keepsConcurrentCommits(t *testing.T) {
	c := released(t, "sha1")
	c.Git(t, "checkout", "--quiet", "topic")
	p := newPress(t, c)
	p.brought.meanwhile = func() {
		c.Commit(t, "CHANGELOG.md", "# Log\n\n## 1.0.0\n")
		c.Git(t, "push", "--quiet", p.git.Dir(), "topic")
	}
	if got := p.add("dora", "20", map[string]string{"version": "1.1.0", "branch": "topic"}); got != "200 200" {
		t.Fatal(got)
	}
	if got := p.file(t, "topic:CHANGELOG.md"); !strings.HasPrefix(got, "# Log\n\n## 1.1.0 (") || !strings.HasSuffix(got, "\n\n## 1.0.0") {
		t.Errorf("the file is\n%s", got)
	}
	if got, want := p.file(t, "topic~1:CHANGELOG.md"), "# Log\n\n## 1.0.0"; got != want {
		t.Errorf("the file was\n%s", got)
	}
}

func TestAddChangelog_isRefusedWithAReason(t *testing.T) {
	c := released(t, "sha1")
	p := newPress(t, c)
	const (
		not     = `403 {"message":"403 Forbidden - You are not allowed to commit a changelog on this branch"}`
		noStart = `422 {"message":"Failed to generate the changelog: The commit start range is unspecified, and no previous tag could be found to use instead"}`
	)
	failed := func(text string) string { return `422 {"message":"Failed to generate the changelog: ` + text + `"}` }
	for _, tt := range []struct {
		who, project string
		parameters   map[string]string
		want         string
	}{
		{"", "20", map[string]string{"version": "1.1.0", "branch": "topic"}, not},
		{"otto", "20", map[string]string{"version": "1.1.0", "branch": "topic"}, not},
		{"rita", "20", map[string]string{"version": "1.1.0", "branch": "topic"}, not},
		{"dora", "20", map[string]string{"version": "1.1.0"}, not},
		{"dora", "20", map[string]string{"version": "1.1.0", "branch": "main"}, not},
		{"rita", "20", map[string]string{"version": "x"}, not},
		{"dora", "20", map[string]string{"version": "x"}, `400 {"error":"version is invalid"}`},
		{"dora", "20", nil, `400 {"error":"version is missing"}`},
		{"mary", "20", map[string]string{"version": "1.0.0"}, noStart},
		{"mary", "20", map[string]string{"version": "1.1.0", "branch": "new"}, failed(`There is no branch \"new\"`)},
		{"mary", "20", map[string]string{"version": "1.1.0", "branch": "v2.0.0", "to": "main"}, failed(`There is no branch \"v2.0.0\"`)},
		{"mary", "20", map[string]string{"version": "1.1.0", "branch": "topic~1"}, failed(`There is no branch \"topic~1\"`)},
		{"mary", "21", map[string]string{"version": "1.1.0"}, failed(`There is no branch \"main\"`)},
		{"mary", "22", map[string]string{"version": "1.1.0"}, failed("There is no such commit, or no repository yet")},
		{"mary", "20", map[string]string{"version": "1.1.0", "file": ".git/config"}, failed("The changelog could not be committed: invalid path: '.git/config'")},
		{"mary", "20", map[string]string{"version": "1.1.0", "file": "../x"}, failed("The changelog could not be committed: invalid path: '../x'")},
		{"mary", "20", map[string]string{"version": "1.1.0", "file": "CODEOWNERS/x"}, failed("The changelog could not be committed: A file is in the place of a directory: CODEOWNERS/x")},
		{"mary", "23", map[string]string{"version": "1.1.0"}, `403 {"message":"403 Forbidden - The project is archived"}`},
	} {
		if got := p.add(tt.who, tt.project, tt.parameters); got != tt.want {
			t.Errorf("%s, %s, %v\ngot  %s\nwant %s", tt.who, tt.project, tt.parameters, got, tt.want)
		}
	}
	if got := p.add("mary", "20", map[string]string{"version": "1.1.0", "file": "owned/NEWS"}); !strings.HasPrefix(got, "403 ") || !strings.Contains(got, "owned/NEWS") {
		t.Errorf("what has an owner: %s", got)
	}
	if p.pushed != 0 {
		t.Errorf("%d of them were committed", p.pushed)
	}
}

func TestAddChangelog_refusesSymbolicLinks(t *testing.T) {
	c := released(t, "sha1")
	c.Git(t, "checkout", "--quiet", "topic")
	if err := os.Symlink("CODEOWNERS", filepath.Join(c.Dir, "CHANGELOG.md")); err != nil {
		t.Fatal(err)
	}
	c.Git(t, "add", "CHANGELOG.md")
	c.Git(t, "commit", "--quiet", "--message=Link")
	p := newPress(t, c)
	if got, want := p.add("dora", "20", map[string]string{"version": "1.1.0", "branch": "topic"}), `422 {"message":"Failed to generate the changelog: \"CHANGELOG.md\" is a symbolic link"}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestNotes_haveALimitOfCommits uses a history with 15,001 commits after the tag, all of which belong in the notes.
func TestNotes_haveALimitOfCommits(t *testing.T) {
	var stream bytes.Buffer
	for i := range 15_002 {
		message := fmt.Sprintf("Change %d\n\nChangelog: changed\n", i)
		fmt.Fprintf(&stream, "commit refs/heads/main\nmark :%d\ncommitter Ann <ann@example.com> %d +0000\ndata %d\n%s", i+1, 1_700_000_000+i, len(message), message)
	}
	stream.WriteString("reset refs/tags/v1.0.0\nfrom :1\n\n")
	c := gittest.New(t, "sha1")
	c.Import(t, &stream)
	p := newPress(t, c)
	const want = `422 {"message":"Failed to generate the changelog: There are more than 15000 commits since the start of the range"}`
	if got := p.notes(t, "", "version=1.1.0"); got != want {
		t.Errorf("got  %.300s\nwant %s", got, want)
	}
	begun := time.Now()
	if got := p.notes(t, "", "version=1.1.0&to=main~1"); strings.Count(got, "\n- [Change ") != 15_000 {
		t.Errorf("of 15,000 commits it has\n%.300s", got)
	}
	t.Logf("15,000 commits took %s", time.Since(begun))
	p.Feature(feature.ChangelogCommitsLimitation, false)
	if got := p.notes(t, "", "version=1.1.0"); strings.Count(got, "\n- [Change ") != 15_001 {
		t.Errorf("of 15,001 commits it has without the limit\n%.300s", got)
	}
	p.Feature(feature.ChangelogCommitsLimitation, true)
	if got := p.notes(t, "", "version=1.1.0"); got != want {
		t.Errorf("got with the limit again %.300s\nwant %s", got, want)
	}
}
