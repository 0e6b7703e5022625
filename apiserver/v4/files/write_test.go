package files_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	. "github.com/forgeplane/forgeplane/apiserver/v4/files"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

// desk is a forge with the project web, which protects main. Dora is a Developer and rita a Reporter. The project "empty" has an empty
// repository.
type desk struct {
	*familytest.Forge

	// store is the repository of web.
	store  *gittest.Client
	pushed int
}

func newDesk(t *testing.T, c *gittest.Client) *desk {
	t.Helper()
	web := familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPublic)
	empty := familytest.Project("acme", "empty", 21, "acme", v1alpha1.VisibilityPublic)
	f := familytest.New(t,
		familytest.User("dora", 3), familytest.User("rita", 4), familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic),
		familytest.InGroup("acme", "acme", "dora", v1alpha1.RoleDeveloper), familytest.InGroup("acme", "acme", "rita", v1alpha1.RoleReporter),
		familytest.Shard(t, web, empty), web, empty, familytest.Project("acme", "new", 22, "acme", v1alpha1.VisibilityPublic),
		&v1alpha1.ProtectedBranch{
			ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "main"},
			Spec: v1alpha1.ProtectedBranchSpec{
				ID: 30, ProjectRef: &v1alpha1.Reference{Name: "web"}, Branch: "main", Push: []v1alpha1.AccessLevel{{Role: v1alpha1.AccessMaintainer}},
			},
		},
	)
	repos := familytest.Repositories(t, f.Catalog)
	d := &desk{Forge: f, store: &gittest.Client{Dir: familytest.Push(t, repos, web, c).Dir()}}
	nothing, err := repos.Of(t.Context(), empty)
	if err == nil {
		err = nothing.Init(t.Context(), git.InitOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	w := ref.NewUpdater(f.Guard, repos, func(change.Event) { d.pushed++ })
	f.Repositories, f.Refs = repos, w
	f.Serve(New(f.Kit).Table())
	return d
}

// written returns a client with the branches main and free. Free is one commit behind main.
func written(t *testing.T) *gittest.Client {
	t.Helper()
	c := gittest.New(t, "sha1")
	c.Commit(t, "dir/a", "1\n")
	c.Commit(t, "b", "1\n")
	c.Git(t, "branch", "free")
	c.Commit(t, "b", "2\n")
	return c
}

func TestFiles_areCreatedUpdatedAndDeleted(t *testing.T) {
	d := newDesk(t, written(t))
	const odd = "dir%2F%C3%BCml%20%22%0A"
	last := d.store.Git(t, "rev-parse", "free~1")
	for _, is := range []struct{ request, body, want, branch, path, content string }{
		{"POST " + at + odd, `{"branch":"free","commit_message":"Add","content":"one\n"}`,
			`201 {"file_path":"dir/üml \"\n","branch":"free"}`, "free", "dir/üml \"\n", "100644 one"},
		{"POST " + at + "bin", `{"branch":"new","start_branch":"free","commit_message":"Add","content":"AP\nAB","encoding":"base64","execute_filemode":true}`,
			`201 {"file_path":"bin","branch":"new"}`, "new", "bin", "100755 \x00\xf0\x01"},
		{"PUT " + at + "dir%2Fa", `{"branch":"free","commit_message":"Change","content":"two\n","last_commit_id":"` + last + `"}`,
			`200 {"file_path":"dir/a","branch":"free"}`, "free", "dir/a", "100644 two"},
		{"PUT " + at + "dir%2Fa", `{"branch":"free","commit_message":"Change","content":"","execute_filemode":true,"author_name":"Ann","author_email":"a@b.c"}`,
			`200 {"file_path":"dir/a","branch":"free"}`, "free", "dir/a", "100755 "},
	} {
		if got := d.As("dora", is.request, is.body).String(); got != is.want {
			t.Errorf("%s: got  %s\nwant %s", is.request, got, is.want)
		}
		mode, _, _ := strings.Cut(d.store.Git(t, "ls-tree", is.branch, "--", is.path), " ")
		if got := mode + " " + d.store.Git(t, "cat-file", "blob", is.branch+":"+is.path); got != is.content {
			t.Errorf("%s: there is %q", is.request, got)
		}
	}
	if got := d.store.Git(t, "log", "-1", "--format=%an %ae %cn %s", "free"); got != "Ann a@b.c dora Change" {
		t.Errorf("the commit is %s", got)
	}
	if got := d.As("dora", "DELETE "+at+"dir%2Fa?branch=free&commit_message=Remove", "").String(); got != "204" {
		t.Errorf("deleting: %s", got)
	}
	if got := d.As("dora", "DELETE "+at+odd, `{"branch":"free","commit_message":"Remove"}`).String(); got != "204" {
		t.Errorf("deleting: %s", got)
	}
	if files := d.store.Git(t, "ls-tree", "-r", "--name-only", "free"); files != "b" || d.pushed != 6 {
		t.Errorf("left is %q, told %d times", files, d.pushed)
	}
	if got := d.As("dora", "POST /projects/21/repository/files/a", `{"branch":"main","commit_message":"First","content":"1"}`).String(); got != `201 {"file_path":"a","branch":"main"}` {
		t.Errorf("first: %s", got)
	}
	d.store.Git(t, "fsck", "--strict")
}

func TestChangeFile_isRefusedWithAReason(t *testing.T) {
	d := newDesk(t, written(t))
	before := d.store.Git(t, "show-ref")
	stale := d.store.Git(t, "rev-parse", "free~1")
	const free = `{"branch":"free","commit_message":"x","content":"x"}`
	onto := func(last string) string { return strings.Replace(free, "{", `{"last_commit_id":"`+last+`",`, 1) }
	for _, is := range []struct{ who, request, body, want string }{
		{"", "POST " + at + "new", free, `403 {"message":"403 Forbidden"}`},
		{"rita", "POST " + at + "new", free, `403 {"message":"403 Forbidden"}`},
		{"rita", "PUT " + at + "b", free, `403 {"message":"403 Forbidden"}`},
		{"rita", "DELETE " + at + "b", free, `403 {"message":"403 Forbidden"}`},
		{"dora", "POST " + at + "new", `{}`, `400 {"error":"branch is missing, commit_message is missing, content is missing"}`},
		{"dora", "PUT " + at + "b", `{"branch":"","commit_message":" "}`, `400 {"error":"branch is empty, commit_message is empty, content is missing"}`},
		{"dora", "DELETE " + at + "b", `{}`, `400 {"error":"branch is missing, commit_message is missing"}`},
		{"dora", "POST " + at + "b", free, `400 {"message":"A file with this name already exists"}`},
		{"dora", "POST " + at + "dir", free, `400 {"message":"A directory with this name already exists"}`},
		{"dora", "PUT " + at + "new", free, `400 {"message":"A file with this name doesn't exist"}`},
		{"dora", "PUT " + at + "dir", free, `400 {"message":"A file with this name doesn't exist"}`},
		{"dora", "DELETE " + at + "new", free, `400 {"message":"A file with this name doesn't exist"}`},
		{"dora", "PUT " + at + "b", onto(stale), `400 {"message":"You are attempting to update a file that has changed since you started editing it."}`},
		{"dora", "DELETE " + at + "b", onto(stale), `400 {"message":"You are attempting to delete a file that has been previously updated."}`},
		{"dora", "POST " + at + "..%2Fb", free, `400 {"error":"file_path should be a valid file path"}`},
		{"dora", "POST " + at + "%2Fb", free, `400 {"error":"file_path should be a valid file path"}`},
		{"dora", "POST " + at + "%FF", free, `400 {"error":"file_path should be a valid file path"}`},
		{"dora", "POST " + at + ".git%2Fhooks%2Fx", free, `400 {"message":"invalid path: '.git/hooks/x'"}`},
		{"dora", "POST " + at + "new", strings.Replace(free, "{", `{"encoding":"base64",`, 1), `400 {"error":"content is invalid"}`},
		{"dora", "POST " + at + "new", strings.Replace(free, "free", "gone", 1), `400 {"message":"You can only create or edit files when you are on a branch"}`},
		{"dora", "POST " + at + "new", strings.Replace(free, "free", "main", 1), `400 {"message":"You are not allowed to push into this branch"}`},
		{"dora", "PUT " + at + "b", strings.Replace(free, "free", "main", 1), `400 {"message":"You are not allowed to push into this branch"}`},
		{"dora", "DELETE " + at + "b", strings.Replace(free, "free", "main", 1), `400 {"message":"You are not allowed to push into this branch"}`},
		{"dora", "POST /projects/22/repository/files/b", free, `404 {"message":"404 Repository Not Found"}`},
	} {
		if got := d.As(is.who, is.request, is.body).String(); got != is.want {
			t.Errorf("%s: %s %s\ngot  %s\nwant %s", is.who, is.request, is.body, got, is.want)
		}
	}
	if after := d.store.Git(t, "show-ref"); after != before || d.pushed > 0 {
		t.Errorf("after refusals there are\n%s", after)
	}
}
