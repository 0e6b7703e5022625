package ref_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	. "github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/edit"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// desk is a forge with an endpoint that commits drafts. It has the public projects web, which has protected branches, and empty. Mary is a
// Maintainer, dora a Developer.
type desk struct {
	*familytest.Forge

	repos  *repository.Repositories
	web    *git.Repository
	client *gittest.Client // in the repository of web
	writer *Updater

	mu     sync.Mutex
	pushed []types.NamespacedName
}

type draftRequest struct {
	Branch      string `param:"branch"`
	StartBranch string `param:"start_branch"`
	StartCommit string `param:"start_sha"`
	Force       bool   `param:"force"`
	Action      string `param:"action" default:"update"`
	Path        string `param:"path" default:"a"`
	Content     string `param:"content"`
	AuthorName  string `param:"author_name"`
}

type made struct {
	ID string `json:"id"`
}

func newDesk(t *testing.T, c *gittest.Client) *desk {
	t.Helper()
	web := familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPublic)
	empty := familytest.Project("acme", "empty", 21, "acme", v1alpha1.VisibilityPublic)
	protect := func(branch string, id int64, push v1alpha1.AccessRole, owners bool) *v1alpha1.ProtectedBranch {
		return &v1alpha1.ProtectedBranch{
			ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: fmt.Sprintf("protection-%d", id)},
			Spec: v1alpha1.ProtectedBranchSpec{
				ID: id, ProjectRef: &v1alpha1.Reference{Name: "web"}, Branch: branch, CodeOwnerApprovalRequired: owners,
				Push: []v1alpha1.AccessLevel{{Role: push}}, Merge: []v1alpha1.AccessLevel{{Role: push}},
			},
		}
	}
	f := familytest.New(t,
		familytest.User("mary", 2), familytest.User("dora", 3, func(s *v1alpha1.UserSpec) { s.Name = "Dora <D>" }),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic),
		familytest.InGroup("acme", "acme", "mary", v1alpha1.RoleMaintainer),
		familytest.InGroup("acme", "acme", "dora", v1alpha1.RoleDeveloper),
		familytest.Shard(t, web, empty), web, empty,
		protect("main", 30, v1alpha1.AccessMaintainer, false), protect("owned", 31, v1alpha1.AccessDeveloper, true),
	)
	d := &desk{Forge: f, repos: familytest.Repositories(t, f.Catalog)}
	d.web = familytest.Push(t, d.repos, web, c)
	d.client = &gittest.Client{Dir: d.web.Dir()}
	d.writer = NewUpdater(f.Guard, d.repos, func(e change.Event) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.pushed = append(d.pushed, e.Project)
	})
	nothing, err := d.repos.Of(t.Context(), empty)
	if err == nil {
		err = nothing.Init(t.Context(), git.InitOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	f.Serve(endpoint.Table{endpoint.Post("/projects/{id}/drafts", d.take).Needs(auth.PushCode).Anonymous(endpoint.Hidden)})
	return d
}

func (d *desk) take(ctx context.Context, s auth.Project, r *draftRequest) (none made, err error) {
	repo, err := d.repos.Of(ctx, s.Scope.Project)
	if err != nil {
		return none, err
	}
	id, err := d.writer.Commit(ctx, s, repo, Draft{
		Branch: r.Branch, StartBranch: r.StartBranch, StartCommit: r.StartCommit, Force: r.Force,
		AuthorName: r.AuthorName, Message: "Say more", When: d.Clock.Now(),
		Actions: []edit.Action{{Kind: edit.ActionKind(r.Action), Path: r.Path, Content: []byte(r.Content)}},
	})
	if err != nil {
		return none, Uncommitted(err)
	}
	return made{id}, nil
}

// draft sends a draft, and returns the id of the commit or, if it is refused, the answer.
func (d *desk) draft(t *testing.T, who, project, body string) string {
	t.Helper()
	answer := d.As(who, "POST /projects/"+project+"/drafts", body)
	if answer.Code == 201 {
		return familytest.Decode[made](t, answer).ID
	}
	return answer.String()
}

// history creates a repository with three commits: owned is at the first, free at the second and main at the third.
func history(t *testing.T) *gittest.Client {
	t.Helper()
	c := gittest.New(t, "sha1")
	c.Commit(t, "CODEOWNERS", "/owned/ @mary\n")
	c.Git(t, "branch", "owned")
	c.Commit(t, "a", "1")
	c.Git(t, "branch", "free")
	c.Commit(t, "a", "2")
	return c
}

func TestCommit_hasItsCallerAsAuthor(t *testing.T) {
	d := newDesk(t, history(t))
	main, free := d.client.Git(t, "rev-parse", "main"), d.client.Git(t, "rev-parse", "free")
	id := d.draft(t, "dora", "20", `{"branch":"free","content":"3"}`)
	when := fmt.Sprint(d.Clock.Now().Unix()) + " +0000"
	want := "tree " + d.client.Git(t, "rev-parse", id+"^{tree}") + "\nparent " + free + "\nauthor Dora D <dora@forge.example> " + when +
		"\ncommitter Dora D <dora@forge.example> " + when + "\n\nSay more"
	if got := d.client.Git(t, "cat-file", "commit", "free"); got != want || d.client.Git(t, "show", "free:a") != "3" {
		t.Errorf("free is\n%s\nwant\n%s", got, want)
	}
	id = d.draft(t, "dora", "20", `{"branch":"new/branch","start_branch":"main","content":"4","author_name":"Ann"}`)
	if got := d.client.Git(t, "log", "-1", "--format=%H %P %an %ae %cn", "new/branch"); got != id+" "+main+" Ann dora@forge.example Dora D" {
		t.Errorf("new/branch is %s", got)
	}
	id = d.draft(t, "dora", "20", `{"branch":"old","start_sha":"`+free+`"}`)
	if got := d.client.Git(t, "log", "-1", "--format=%H %P", "old"); got != id+" "+free {
		t.Errorf("old is %s", got)
	}
	id = d.draft(t, "dora", "20", `{"branch":"old","start_branch":"main","force":true}`)
	if got := d.client.Git(t, "log", "-1", "--format=%H %P", "old"); got != id+" "+main {
		t.Errorf("old is %s", got)
	}
	id = d.draft(t, "mary", "20", `{"branch":"main"}`)
	if got := d.client.Git(t, "log", "-1", "--format=%H %P", "main"); got != id+" "+main {
		t.Errorf("main is %s", got)
	}
	if len(d.pushed) != 5 || d.pushed[0] != (types.NamespacedName{Namespace: "acme", Name: "web"}) {
		t.Errorf("told of %v", d.pushed)
	}
	d.client.Git(t, "fsck", "--strict")
}

func TestCommit_isAuthorizedLikePush(t *testing.T) {
	d := newDesk(t, history(t))
	before := d.client.Git(t, "show-ref")
	owned := `{"action":"create","path":"owned/x","branch":"owned"`
	for body, want := range map[string]string{
		`{"branch":"main"}`:                        `403 {"message":"403 Forbidden - You are not allowed to push into this branch"}`,
		`{"branch":"main","path":"gone"}`:          `403 {"message":"403 Forbidden - You are not allowed to push into this branch"}`,
		`{"branch":"main","start_branch":"owned"}`: `403 {"message":"403 Forbidden - You are not allowed to push into this branch"}`,
		owned + "}": `403 {"message":"403 Forbidden - Branch \"owned\" is protected by \"owned\" (acme/protection-31), and these files have ` +
			`code owners: \"owned/x\". Change them in a merge request that the owners approve."}`,
		owned + `,"start_branch":"main","force":true}`: `403 {"message":"403 Forbidden - Branch \"owned\" is protected by \"owned\" ` +
			`(acme/protection-31), and these files have code owners: \"owned/x\". Change them in a merge request that the owners approve."}`,
		`{"action":"create","path":"b","branch":"owned","start_sha":"` + d.client.Git(t, "commit-tree", "-m", "x", "main^{tree}") + `","force":true}`: `403 {"message":"403 Forbidden - ` +
			`Branch \"owned\" is protected by \"owned\" (acme/protection-31), and nobody may rewrite its history. Fetch it, rebase or merge, and push without force."}`,
	} {
		if got := d.draft(t, "dora", "20", body); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", body, got, want)
		}
	}
	open, err := d.web.Close(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := d.draft(t, "dora", "20", `{"branch":"free"}`); got != `403 {"message":"403 Forbidden - The repository is temporarily read-only. Please try again later."}` {
		t.Errorf("while the repository is closed: %s", got)
	}
	open()
	if after := d.client.Git(t, "show-ref"); after != before || len(d.pushed) > 0 {
		t.Errorf("after refusals there are\n%s; told of %v", after, d.pushed)
	}
	if got := d.draft(t, "dora", "20", `{"action":"create","path":"b","branch":"owned"}`); got != d.client.Git(t, "rev-parse", "owned") {
		t.Errorf("what nobody owns: %s", got)
	}
}

func TestCommit_refusesInvalidDrafts(t *testing.T) {
	d := newDesk(t, history(t))
	before := d.client.Git(t, "show-ref")
	const onBranch = `400 {"message":"You can only create or edit files when you are on a branch"}`
	gone := strings.Repeat("1", 40)
	for body, want := range map[string]string{
		`{"branch":"gone"}`:                                                   onBranch,
		`{"branch":"gone","force":true}`:                                      onBranch,
		`{"branch":"new","start_branch":"gone"}`:                              onBranch,
		`{"branch":"new","start_branch":"v1..v2"}`:                            onBranch,
		`{"branch":"-new","start_branch":"free"}`:                             `400 {"message":"Branch name is invalid"}`,
		`{"branch":"HEAD","start_branch":"free"}`:                             `400 {"message":"Branch name is invalid"}`,
		`{"branch":"` + strings.Repeat("0a", 20) + `","start_branch":"free"}`: `400 {"message":"Branch name is invalid"}`,
		`{"branch":"free/x","start_branch":"free"}`:                           `400 {"message":"Another branch is in the way"}`,
		`{"branch":"free","start_branch":"main"}`:                             `400 {"message":"A branch called 'free' already exists. Switch to that branch in order to make changes"}`,
		`{"branch":"new","start_sha":"main"}`:                                 `400 {"message":"Invalid start_sha 'main'"}`,
		`{"branch":"new","start_sha":"` + gone + `"}`:                         `400 {"message":"Cannot find start_sha '` + gone + `'"}`,
		`{"branch":"free","action":"create"}`:                                 `400 {"message":"A file with this name already exists"}`,
		`{"branch":"free","path":"b"}`:                                        `400 {"message":"A file with this name doesn't exist"}`,
		`{"branch":"free","action":"create","path":"a/b"}`:                    `400 {"message":"A file is in the place of a directory: a/b"}`,
		`{"branch":"free","action":"create","path":"../b"}`:                   `400 {"message":"invalid path: '../b'"}`,
		`{"branch":"free","action":"create","path":"git~1/config"}`:           `400 {"message":"Git does not accept the content: hasDotgit: contains '.git'"}`,
		`{"branch":"free","action":"create","path":"x/.Git/y"}`:               `400 {"message":"invalid path: 'x/.Git/y'"}`,
		`{"branch":"free","action":"delete","path":"a/nothing/more"}`:         `400 {"message":"A file with this name doesn't exist"}`,
	} {
		if got := d.draft(t, "dora", "20", body); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", body, got, want)
		}
	}
	if after := d.client.Git(t, "show-ref"); after != before || len(d.pushed) > 0 {
		t.Errorf("after refusals there are\n%s; told of %v", after, d.pushed)
	}
}

func TestCommit_hasNoParentInEmptyRepository(t *testing.T) {
	d := newDesk(t, history(t))
	if got := d.draft(t, "dora", "21", `{"branch":"dev","action":"create","start_sha":"`+strings.Repeat("1", 40)+`"}`); !strings.HasPrefix(got, "400 ") {
		t.Errorf("from nowhere: %s", got)
	}
	id := d.draft(t, "dora", "21", `{"branch":"dev","start_branch":"main","action":"create","content":"1"}`)
	project, err := catalog.ByID[*v1alpha1.Project](t.Context(), d.Catalog, 21)
	if err != nil {
		t.Fatal(err)
	}
	repo, err := d.repos.Of(t.Context(), project)
	if err != nil {
		t.Fatal(err)
	}
	c := &gittest.Client{Dir: repo.Dir()}
	if got := c.Git(t, "log", "--format=%H %P", "dev"); got != id+" " || c.Git(t, "show", "dev:a") != "1" {
		t.Errorf("dev is %s, want %s", got, id)
	}
	if got := d.draft(t, "dora", "21", `{"branch":"other","action":"create"}`); !strings.Contains(got, "when you are on a branch") {
		t.Errorf("a second one without a start: %s", got)
	}
}

func TestCommit_losesNoConcurrentDrafts(t *testing.T) {
	d := newDesk(t, history(t))
	var wait sync.WaitGroup
	answers := make([]string, 16)
	for i := range answers {
		wait.Go(func() {
			answers[i] = d.As("dora", "POST /projects/20/drafts", fmt.Sprintf(`{"branch":"free","action":"create","path":"by-%d"}`, i)).String()
		})
	}
	wait.Wait()
	there, won := strings.Fields(d.client.Git(t, "ls-tree", "--name-only", "free")), 0
	for i, a := range answers {
		name := fmt.Sprintf("by-%d", i)
		switch {
		case strings.HasPrefix(a, "201 "):
			if won++; !slices.Contains(there, name) {
				t.Errorf("%s is lost", name)
			}
		case a != `400 {"message":"The branch has changed in the meantime. Please refresh and try again."}` || slices.Contains(there, name):
			t.Errorf("%s: %s", name, a)
		}
	}
	if commits := d.client.Git(t, "rev-list", "--count", "free"); won == 0 || commits != fmt.Sprint(2+won) || len(d.pushed) != won {
		t.Errorf("%d were made, and there are %s commits", won, commits)
	}
}
