package commits_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	. "github.com/forgeplane/forgeplane/apiserver/v4/commits"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/test/seed"
)

// desk is a forge with the project web, which protects main. Dora is a Developer and rita a Reporter. The project "empty" has an empty
// repository, "new" has none, and "archived" has the same as web.
type desk struct {
	*familytest.Forge

	// store is the repository of the project web, and empty is the repository of the project "empty".
	store, empty *gittest.Client
	pushed       int
}

func newDesk(t *testing.T, c *gittest.Client) *desk { return newLimitedDesk(t, c, git.Limits{}) }

func newLimitedDesk(t *testing.T, c *gittest.Client, l git.Limits) *desk {
	t.Helper()
	project := func(name string, id int64) *v1alpha1.Project {
		return familytest.Project("acme", name, id, "acme", v1alpha1.VisibilityPublic)
	}
	web, empty, archived := project("web", 20), project("empty", 21), project("archived", 23)
	archived.Spec.Archived = true
	f := familytest.New(t,
		familytest.User("dora", 3), familytest.User("rita", 4), familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic),
		familytest.InGroup("acme", "acme", "dora", v1alpha1.RoleDeveloper), familytest.InGroup("acme", "acme", "rita", v1alpha1.RoleReporter),
		familytest.Shard(t, web, empty, archived), web, empty, project("new", 22), archived,
		familytest.Project("acme", "secret", 24, "secret", v1alpha1.VisibilityPrivate), familytest.Group("acme", "secret", 11, "", v1alpha1.VisibilityPrivate),
		&v1alpha1.ProtectedBranch{
			ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "main"},
			Spec: v1alpha1.ProtectedBranchSpec{
				ID: 30, ProjectRef: &v1alpha1.Reference{Name: "web"}, Branch: "main", Push: []v1alpha1.AccessLevel{{Role: v1alpha1.AccessMaintainer}},
			},
		},
	)
	repos := familytest.Limited(t, f.Catalog, git.Options{Limits: l})
	d := &desk{Forge: f, store: &gittest.Client{Dir: familytest.Push(t, repos, web, c).Dir()}}
	familytest.Push(t, repos, archived, c)
	nothing, err := repos.Of(t.Context(), empty)
	if err == nil {
		err = nothing.Init(t.Context(), git.InitOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	d.empty = &gittest.Client{Dir: nothing.Dir()}
	w := ref.NewUpdater(f.Guard, repos, func(change.Event) { d.pushed++ })
	f.Repositories, f.Refs = repos, w
	f.Activity = familytest.Activity(t, f.Clock)
	f.Serve(New(f.Kit).Table())
	return d
}

func TestCreateCommit_appliesItsActions(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		d := newDesk(t, history(t, format))
		before := d.store.Git(t, "rev-parse", "topic/one")
		answer := d.As("dora", "POST "+at, `{"branch":"topic/one","commit_message":"Change much\n\nCc: One","actions":[
			{"action":"create","file_path":"new/\"ü\"\n","content":"one\ntwo\n"},
			{"action":"create","file_path":"run","content":"AP8K","encoding":"base64","execute_filemode":true},
			{"action":"move","file_path":"c","previous_path":"b"},
			{"action":"update","file_path":"a","content":"1\nnew\n","last_commit_id":"`+d.store.Git(t, "rev-list", "-1", "topic/one", "--", "a")+`"},
			{"action":"chmod","file_path":"a","execute_filemode":true},
			{"action":"create","file_path":"gone","content":"x"},
			{"action":"delete","file_path":"gone"}]}`)
		id := d.store.Git(t, "rev-parse", "topic/one")
		want := `201 {"id":"` + id + `","short_id":"` + id[:8] + `","created_at":"2026-06-15T12:00:00.000+00:00","parent_ids":["` + before +
			`"],"title":"Change much","message":"Change much\n\nCc: One","author_name":"dora","author_email":"dora@forge.example",` +
			`"authored_date":"2026-06-15T12:00:00.000+00:00","committer_name":"dora","committer_email":"dora@forge.example",` +
			`"committed_date":"2026-06-15T12:00:00.000+00:00","trailers":{"Cc":"One"},"web_url":"https://forge.example/acme/web/-/commit/` + id +
			`","stats":{"additions":3,"deletions":1,"total":4},"status":null,"last_pipeline":null,"project_id":20}`
		if answer.String() != want {
			t.Errorf("got  %s\nwant %s", answer, want)
		}
		files := d.store.Git(t, "-c", "core.quotePath=false", "ls-tree", "-r", "--format=%(objectmode) %(path)", "topic/one")
		if files != "100755 a\n100644 c\n100644 \"new/\\\"ü\\\"\\n\"\n100755 run" || d.store.Git(t, "cat-file", "blob", "topic/one:run") != "\x00\xff" ||
			d.store.Git(t, "cat-file", "blob", "topic/one:c") != "1" || d.store.Git(t, "cat-file", "blob", "topic/one:a") != "1\nnew" || d.pushed != 1 {
			t.Errorf("there is\n%s", files)
		}
		d.store.Git(t, "fsck", "--strict")
	}
}

func TestCreateCommit_beginsInAnotherProjectOfTheNetwork(t *testing.T) {
	c := history(t, "sha1")
	d := newDesk(t, c)
	var fork, web v1alpha1.Project
	for name, p := range map[string]*v1alpha1.Project{"web": &web, "empty": &fork} {
		if err := d.Client.Get(t.Context(), client.ObjectKey{Namespace: "acme", Name: name}, p); err != nil {
			t.Fatal(err)
		}
	}
	fork.Spec.ForkOf = &v1alpha1.ForkOf{ProjectRef: catalog.Refer(&web)}
	if err := d.Client.Update(t.Context(), &fork); err != nil {
		t.Fatal(err)
	}
	commit := func(branch, start string) familytest.Answer {
		return d.As("dora", "POST /projects/21/repository/commits", `{"branch":"`+branch+`","commit_message":"x",
			"actions":[{"action":"create","file_path":"`+branch+`","content":"x"}]`+start+`}`)
	}
	main, topic := d.store.Git(t, "rev-parse", "main"), d.store.Git(t, "rev-parse", "topic/one")
	for _, is := range []struct{ branch, start, parent string }{
		{"main", `,"start_project":20`, main},
		{"two", `,"start_project":"acme/web","start_branch":"topic/one"`, topic},
		{"three", `,"start_project":20,"start_sha":"` + topic + `"`, topic},
		{"two", `,"start_project":20,"start_branch":"main","force":true`, main},
	} {
		if answer := commit(is.branch, is.start); answer.Code != http.StatusCreated || d.empty.Git(t, "rev-parse", is.branch+"^") != is.parent {
			t.Errorf("%s%s: got %s", is.branch, is.start, answer)
		}
	}
	before := d.empty.Git(t, "show-ref")
	for start, want := range map[string]string{
		`,"start_project":20,"start_branch":"main"`:                                  `400 {"message":"A branch called 'two' already exists. Switch to that branch in order to make changes"}`,
		`,"start_project":20,"start_branch":"gone"`:                                  `400 {"message":"You can only create or edit files when you are on a branch"}`,
		`,"start_project":23`:                                                        `403 {"message":"403 Forbidden - Project is not included in the fork network for acme/archived"}`,
		`,"start_project":20,"start_sha":"1234567890123456789012345678901234567890"`: `400 {"message":"Cannot find start_sha '1234567890123456789012345678901234567890'"}`,
	} {
		if got := commit("two", start).String(); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", start, got, want)
		}
	}
	if after := d.empty.Git(t, "show-ref"); after != before {
		t.Errorf("after refusals there are\n%s", after)
	}
	if err := os.RemoveAll(d.store.Dir); err != nil {
		t.Fatal(err)
	}
	d.empty.Git(t, "fsck", "--full", "--strict")
}

func TestCreateCommit_isRefusedWhenTheRepositoryIsFull(t *testing.T) {
	c := history(t, "sha1")
	noise, random := make([]byte, 1<<20), rand.New(rand.NewPCG(seed.Value(), 0))
	for i := range noise {
		noise[i] = byte(random.Uint32()) // random bytes cannot be compressed
	}
	c.Commit(t, "noise", string(noise))
	d := newLimitedDesk(t, c, git.Limits{Repository: 1 << 20})
	before := d.store.Git(t, "for-each-ref")
	answer := d.As("dora", "POST "+at, `{"branch":"topic/one","commit_message":"More","actions":[{"action":"create","file_path":"more","content":"x"}]}`)
	want := `413 {"message":"The repository would have more than the 1 MiB that the server allows a repository on disk. Nothing can be added to it."}`
	if answer.String() != want {
		t.Errorf("got  %s\nwant %s", answer, want)
	}
	if after := d.store.Git(t, "for-each-ref"); after != before || d.pushed != 0 {
		t.Errorf("the refs were\n%s\nand are\n%s", before, after)
	}
	elsewhere := d.As("dora", "POST /projects/21/repository/commits",
		`{"branch":"main","commit_message":"First","actions":[{"action":"create","file_path":"more","content":"x"}]}`)
	if elsewhere.Code != http.StatusCreated {
		t.Errorf("another repository: %s", elsewhere)
	}
}

func TestCreateCommit_acceptsAForm(t *testing.T) {
	d := newDesk(t, history(t, "sha1"))
	form := "branch=form&start_branch=topic/one&commit_message=Form&stats=false&author_name=Ann&author_email=ann@example.com" +
		"&actions[][action]=create&actions[][file_path]=x&actions[][content]=1&actions[][action]=delete&actions[][file_path]=a"
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, at, strings.NewReader(form))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("PRIVATE-TOKEN", familytest.Value("dora"))
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	if w.Code != 201 || strings.Contains(w.Body.String(), `"stats"`) || !strings.Contains(w.Body.String(), `"author_name":"Ann"`) {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if files := d.store.Git(t, "ls-tree", "-r", "--name-only", "form"); files != "b\nx" {
		t.Errorf("there is %q", files)
	}
}

func TestCreateCommit_startsABranchElsewhere(t *testing.T) {
	d := newDesk(t, history(t, "sha1"))
	body := func(branch, more string) string {
		return fmt.Sprintf(`{"branch":%q,"commit_message":"x","actions":[]%s}`, branch, more)
	}
	at2 := d.store.Git(t, "rev-parse", "main~2")
	for _, is := range []struct{ branch, more, parent string }{
		{"one", `,"start_branch":"main"`, "main"},
		{"two", `,"start_sha":"` + at2 + `","start_project":"acme/web"`, at2},
		{"one", `,"start_branch":"topic/one","force":true,"start_project":20`, "topic/one"},
		{"topic/one", `,"start_branch":"topic/one"`, "topic/one"},
	} {
		parent := d.store.Git(t, "rev-parse", is.parent)
		answer := d.As("dora", "POST "+at, body(is.branch, is.more))
		if made := familytest.Decode[Detail](t, answer); answer.Code != 201 || made.ParentIDs[0] != parent || made.ID != d.store.Git(t, "rev-parse", is.branch) {
			t.Errorf("%+v: %s", is, answer)
		}
	}
	answer := d.As("dora", "POST /projects/21/repository/commits",
		`{"branch":"main","commit_message":"First","actions":[{"action":"create","file_path":"README","content":"Hello\n"}]}`)
	if answer.Code != 201 || !strings.Contains(answer.Body, `"parent_ids":[]`) || d.empty.Git(t, "show", "HEAD:README") != "Hello" {
		t.Errorf("first: %s", answer)
	}
}

func TestCreateCommit_isRefusedWithAReason(t *testing.T) {
	d := newDesk(t, history(t, "sha1"))
	before := d.store.Git(t, "show-ref")
	body := func(branch, actions, more string) string {
		return fmt.Sprintf(`{"branch":%q,"commit_message":"x","actions":[%s]%s}`, branch, actions, more)
	}
	const file, valid = `"file_path":"a"`, `{"action":"delete","file_path":"a"}`
	topic := func(actions, more string) string { return body("topic/one", actions, more) }
	for _, is := range []struct{ who, project, body, want string }{
		{"", "20", topic(valid, ""), `403 {"message":"403 Forbidden"}`},
		{"rita", "20", topic(valid, ""), `403 {"message":"403 Forbidden"}`},
		{"dora", "20", body("main", valid, ""), `403 {"message":"403 Forbidden - You are not allowed to push into this branch"}`},
		{"dora", "22", body("main", valid, ""), `404 {"message":"404 Repository Not Found"}`},
		{"dora", "23", body("main", valid, ""), `403 {"message":"403 Forbidden - The project is archived"}`},
		{"dora", "20", `{}`, `400 {"error":"branch is missing, commit_message is missing, actions is missing"}`},
		{"dora", "20", `{"branch":" ","commit_message":"","actions":1}`, `400 {"error":"branch is empty, commit_message is empty, actions is invalid"}`},
		{"dora", "20", topic(`{}`, ""), `400 {"error":"actions[0][action] is missing, actions[0][file_path] is missing"}`},
		{"dora", "20", topic(`{"action":"copy",`+file+`}`, ""), `400 {"error":"actions[0][action] does not have a valid value"}`},
		{"dora", "20", topic(valid+`,{"action":"move",`+file+`},{"action":"update",`+file+`},{"action":"chmod",`+file+`}`, ""),
			`400 {"error":"actions[1][previous_path] is missing, actions[2][content] is missing, actions[3][execute_filemode] is missing"}`},
		{"dora", "20", topic(`{"action":"create",`+file+`,"encoding":"base64","content":"*"}`, ""), `400 {"error":"actions[0][content] is invalid"}`},
		{"dora", "20", topic(`{"action":"create",`+file+`,"encoding":"hex"}`, ""), `400 {"error":"actions[0][encoding] does not have a valid value"}`},
		{"dora", "20", topic(valid, `,"start_branch":"main","start_sha":"x"`), `400 {"error":"start_branch, start_sha are mutually exclusive"}`},
		{"dora", "20", topic(valid, `,"start_project":21`), `403 {"message":"403 Forbidden - Project is not included in the fork network for acme/empty"}`},
		{"dora", "20", topic(valid, `,"start_project":99`), `404 {"message":"404 Project Not Found"}`},
		{"dora", "20", topic(valid, `,"start_project":24`), `404 {"message":"404 Project Not Found"}`},
		{"dora", "20", topic(valid+","+valid, ""), `400 {"message":"A file with this name doesn't exist"}`},
		{"dora", "20", topic(`{"action":"update",`+file+`,"content":"","last_commit_id":"x"}`, ""),
			`400 {"message":"The file has changed since you started editing it: a"}`},
		{"dora", "20", body("gone", valid, ""), `400 {"message":"You can only create or edit files when you are on a branch"}`},
		{"dora", "20", `{"branch":"` + strings.Repeat("x", 20<<20) + `"}`, `413 {"message":"413 Request Entity Too Large"}`},
	} {
		if got := d.As(is.who, "POST /projects/"+is.project+"/repository/commits", is.body).String(); got != is.want {
			t.Errorf("%s: %.300s\ngot  %.500s\nwant %s", is.who, is.body, got, is.want)
		}
	}
	if after := d.store.Git(t, "show-ref"); after != before || d.pushed > 0 {
		t.Errorf("after refusals there are\n%s", after)
	}
}
