package projects_test

import (
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	. "github.com/forgeplane/forgeplane/apiserver/v4/projects"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/refs"
)

// newForge returns a forge with the projects acme/site, acme/sub/api and hidden/secret. Mary is an Owner of acme, and dora a Developer of
// acme/site.
func newForge(t *testing.T) *familytest.Forge {
	t.Helper()
	f := familytest.New(t,
		familytest.User("root", 1, familytest.Admin), familytest.User("mary", 2), familytest.User("dora", 3), familytest.User("otto", 4),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic),
		familytest.Group("acme", "sub", 11, "acme", v1alpha1.VisibilityPublic),
		familytest.Group("hidden", "hidden", 12, "", v1alpha1.VisibilityPrivate),
		withRepository(familytest.Project("acme", "site", 20, "acme", v1alpha1.VisibilityPublic)),
		withRepository(familytest.Project("acme", "api", 21, "sub", v1alpha1.VisibilityPrivate)),
		familytest.Project("hidden", "secret", 22, "hidden", v1alpha1.VisibilityPublic),
		familytest.InGroup("acme", "acme", "mary", v1alpha1.RoleOwner),
		familytest.InProject("acme", "site", "dora", v1alpha1.RoleDeveloper),
	)
	f.Keep(familytest.Repositories(t, f.Catalog))
	return f.Serve(New(f.Kit).Table())
}

// withRepository returns a project as it is after its repository was created.
func withRepository(p *v1alpha1.Project) *v1alpha1.Project {
	p.Status.RefsChecksum = "checksum"
	return p
}

func TestCreateProject_reusesThePathOfARenamedProject(t *testing.T) {
	f := newForge(t)
	const taken = `400 {"message":{"name":["has already been taken"],"path":["has already been taken"]}}`
	post := func(path string) familytest.Answer {
		return f.As("mary", "POST /projects", `{"namespace_id":10,"path":"`+path+`"}`)
	}
	for i := range 3 {
		got := post("again")
		if got.Code != http.StatusCreated {
			t.Fatalf("got %s", got)
		}
		if got := post("Again"); got.String() != taken {
			t.Errorf("got %s", got)
		}
		rename := "PUT /projects/" + strconv.FormatInt(familytest.Decode[Project](t, got).ID, 10)
		if got := f.As("mary", rename, `{"path":"former-`+strconv.Itoa(i)+`"}`); got.Code != http.StatusOK {
			t.Fatalf("got %s", got)
		}
	}
	// Another request is faster, and has the path in upper case.
	f.Before = func(string, client.Object) error {
		f.Before = nil
		if got := post("AGAIN"); got.Code != http.StatusCreated {
			t.Errorf("got %s", got)
		}
		return nil
	}
	if got := post("again"); got.String() != taken {
		t.Errorf("got %s", got)
	}
}

func TestListProjects_filtersSortsAndPages(t *testing.T) {
	tests := map[string]struct{ who, request, paths string }{
		"anonymous callers see public projects": {"", "GET /projects", "acme/site"},
		"newest first":                          {"root", "GET /projects", "hidden/secret acme/sub/api acme/site"},
		"by name":                               {"root", "GET /projects?order_by=name&sort=asc", "acme/sub/api hidden/secret acme/site"},
		"by part of a name":                     {"root", "GET /projects?search=SEC", "hidden/secret"},
		"by part of the full path":              {"root", "GET /projects?search=sub/a&search_namespaces=true", "acme/sub/api"},
		"by effective visibility":               {"root", "GET /projects?visibility=private", "hidden/secret acme/sub/api"},
		"of a member":                           {"dora", "GET /projects?membership=true", "acme/site"},
		"of an owner":                           {"mary", "GET /projects?owned=true", "acme/sub/api acme/site"},
		"with at least a role":                  {"dora", "GET /projects?min_access_level=40", ""},
		"with ids in a range":                   {"root", "GET /projects?id_after=20&id_before=22", "acme/sub/api"},
		"directly in a group":                   {"root", "GET /groups/acme/projects", "acme/site"},
		"in a group and its subgroups":          {"root", "GET /groups/acme/projects?include_subgroups=true", "acme/sub/api acme/site"},
		"archived projects":                     {"root", "GET /projects?archived=true", ""},
		"by keyset, first page":                 {"root", "GET /projects?pagination=keyset&order_by=id&sort=asc&per_page=2", "acme/site acme/sub/api"},
		"by keyset, second page":                {"root", "GET /projects?pagination=keyset&order_by=id&sort=asc&per_page=2&cursor=21", "hidden/secret"},
		"by keyset, after a deleted project":    {"root", "GET /projects?pagination=keyset&order_by=id&sort=asc&cursor=19", "acme/site acme/sub/api hidden/secret"},
		"by keyset, descending":                 {"root", "GET /projects?pagination=keyset&order_by=id&sort=desc&cursor=22", "acme/sub/api acme/site"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var paths []string
			for _, p := range familytest.Decode[[]Project](t, newForge(t).As(tt.who, tt.request, "")) {
				paths = append(paths, p.PathWithNamespace)
			}
			if got := strings.Join(paths, " "); got != tt.paths {
				t.Errorf("got %q, want %q", got, tt.paths)
			}
		})
	}
}

func TestPermissions_separateProjectAndGroupAccess(t *testing.T) {
	const none, guest, developer, owner = `null`, `{"access_level":10,"notification_level":3}`,
		`{"access_level":30,"notification_level":3}`, `{"access_level":50,"notification_level":3}`
	f := newForge(t)
	f.As("otto", "POST /projects", `{"name":"own"}`)
	for project, user := range map[string]string{"site": "mary", "api": "root"} {
		if err := f.Client.Create(t.Context(), familytest.InProject("acme", project, user, v1alpha1.RoleGuest)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ who, project, own, inherited string }{
		{"dora", "acme/site", developer, none},
		{"mary", "acme/site", guest, owner},
		{"mary", "acme/sub/api", none, owner},
		{"otto", "acme/site", none, none},
		{"otto", "otto/own", owner, none},
		{"root", "acme/site", none, none},
		{"root", "acme/sub/api", guest, none},
	} {
		want := `"permissions":{"project_access":` + tt.own + `,"group_access":` + tt.inherited + `}`
		for _, request := range []string{"GET /projects/" + url.PathEscape(tt.project), "GET /projects?search_namespaces=true&search=" + tt.project} {
			if got := f.As(tt.who, request, ""); !strings.Contains(got.Body, want) {
				t.Errorf("%s, %s: got %s, want %s", tt.who, request, got, want)
			}
		}
	}
	if got := f.As("", "GET /projects/20", ""); strings.Contains(got.Body, "permissions") {
		t.Errorf("nobody has permissions: %s", got)
	}
}

func TestImportURL_isShownToMaintainersOnly(t *testing.T) {
	imported := familytest.Project("acme", "site", 20, "acme", v1alpha1.VisibilityPublic)
	imported.Spec.ImportURL = "https://inner.example/site.git"
	imported.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonImportFailed, Message: "no route to inner.example",
	}}
	f := familytest.New(t,
		familytest.User("root", 1, familytest.Admin), familytest.User("mary", 2), familytest.User("dora", 3), familytest.User("otto", 4),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic), imported,
		familytest.InGroup("acme", "acme", "mary", v1alpha1.RoleMaintainer), familytest.InProject("acme", "site", "dora", v1alpha1.RoleDeveloper),
	)
	f.Keep(familytest.Repositories(t, f.Catalog))
	f.Serve(New(f.Kit).Table())
	const shown = `"import_url":"https://inner.example/site.git","import_status":"failed","import_error":"no route to inner.example"`
	const hidden = `"import_url":null,"import_status":"failed","import_error":null`
	for who, want := range map[string]string{"": hidden, "otto": hidden, "dora": hidden, "mary": shown, "root": shown} {
		for _, request := range []string{"GET /projects/20", "GET /projects", "GET /groups/10/projects"} {
			if got := f.As(who, request, ""); !strings.Contains(got.Body, want) {
				t.Errorf("%q, %s: got %s, want %s", who, request, got, want)
			}
		}
	}
	if got := f.As("mary", "POST /projects", `{"name":"new","namespace_id":10,"import_url":"https://a.example/b.git"}`); !strings.Contains(got.Body, `"import_url":"https://a.example/b.git"`) {
		t.Errorf("its maker does not see it: %s", got)
	}
}

func TestImportStatus_followsCondition(t *testing.T) {
	tests := []struct {
		ready        metav1.ConditionStatus
		reason, want string
	}{
		{metav1.ConditionFalse, v1alpha1.ReasonImporting, "started"},
		{metav1.ConditionFalse, v1alpha1.ReasonImportFailed, "failed"},
		{metav1.ConditionTrue, v1alpha1.ReasonSuspended, "started"},
		{metav1.ConditionTrue, v1alpha1.ReasonReady, "finished"},
	}
	world := []client.Object{familytest.User("root", 1, familytest.Admin), familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic)}
	for i, tt := range tests {
		p := familytest.Project("acme", strings.ToLower(tt.reason), int64(20+i), "acme", v1alpha1.VisibilityPublic)
		p.Spec.ImportURL = "https://inner.example/site.git"
		p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: tt.ready, Reason: tt.reason}}
		world = append(world, p)
	}
	f := familytest.New(t, world...)
	f.Keep(familytest.Repositories(t, f.Catalog))
	f.Serve(New(f.Kit).Table())
	for i, tt := range tests {
		if got := f.As("root", "GET /projects/"+strconv.Itoa(20+i), ""); !strings.Contains(got.Body, `"import_status":"`+tt.want+`"`) {
			t.Errorf("%s: got %s, want %s", tt.reason, got, tt.want)
		}
	}
}

func TestVisibility_isChangedByOwnersOnly(t *testing.T) {
	const refused = `403 {"message":"403 Forbidden"}`
	f := newForge(t)
	if err := f.Client.Create(t.Context(), familytest.InProject("acme", "site", "otto", v1alpha1.RoleMaintainer)); err != nil {
		t.Fatal(err)
	}
	if got := f.As("otto", "PUT /projects/20", `{"visibility":"private","description":"new"}`); got.String() != refused {
		t.Errorf("a maintainer changes it: %s", got)
	}
	got := f.As("otto", "PUT /projects/20", `{"visibility":"public"}`)
	if got.Code != http.StatusOK || !strings.Contains(got.Body, `"description":""`) || !strings.Contains(got.Body, `"visibility":"public"`) {
		t.Errorf("a maintainer may not leave it as it is: %s", got)
	}
	for _, who := range []string{"mary", "root"} {
		for _, v := range []string{"private", "public"} {
			if got := f.As(who, "PUT /projects/20", `{"visibility":"`+v+`"}`); !strings.Contains(got.Body, `"visibility":"`+v+`"`) {
				t.Errorf("%s may not make it %s: %s", who, v, got)
			}
		}
	}
}

func TestUpdateProject_clearsTheDescriptionWithNull(t *testing.T) {
	f := newForge(t)
	for _, tt := range []struct{ body, want string }{
		{`{"description":"old"}`, "old"}, {`{"name":"Site"}`, "old"}, {`{"description":null}`, ""},
	} {
		if got := familytest.Decode[Project](t, f.As("mary", "PUT /projects/20", tt.body)); got.Description != tt.want {
			t.Errorf("%s: got %q, want %q", tt.body, got.Description, tt.want)
		}
	}
}

func TestUpdateProject_changesTheCaseOfItsPath(t *testing.T) {
	f := newForge(t)
	if got := f.As("mary", "PUT /projects/20", `{"path":"Site"}`); familytest.Decode[Project](t, got).PathWithNamespace != "acme/Site" {
		t.Errorf("got %s", got)
	}
	const taken = `400 {"message":{"name":["has already been taken"],"path":["has already been taken"]}}`
	if got := f.As("mary", "PUT /projects/20", `{"path":"SUB"}`).String(); got != taken {
		t.Errorf("the path of a group: got %s", got)
	}
}

func TestListProjects_showsFewerFieldsWhenSimple(t *testing.T) {
	f := newForge(t)
	whole := familytest.Decode[[]map[string]any](t, f.As("mary", "GET /projects?id_before=21", ""))[0]
	for _, request := range []string{
		"GET /projects?id_before=21&simple=true", "GET /groups/acme/projects?simple=true", "GET /projects?id_before=21&simple=true&pagination=keyset&order_by=id",
	} {
		simple := familytest.Decode[[]map[string]any](t, f.As("mary", request, ""))[0]
		names := slices.Sorted(maps.Keys(simple))
		if got := strings.Join(names, " "); got != "avatar_url created_at default_branch description forks_count http_url_to_repo id last_activity_at name "+
			"name_with_namespace namespace path path_with_namespace ssh_url_to_repo star_count tag_list topics web_url" {
			t.Errorf("%s: got %s", request, got)
		}
		for _, name := range names {
			if !reflect.DeepEqual(simple[name], whole[name]) {
				t.Errorf("%s: %s is %v, in the whole %v", request, name, simple[name], whole[name])
			}
		}
	}
}

func TestKeysetPages_linkOnlyToTheNextPage(t *testing.T) {
	got := newForge(t).As("root", "GET /projects?pagination=keyset&order_by=id&per_page=2", "")
	link := got.Header.Get("Link")
	if !strings.Contains(link, "cursor=21") || !strings.HasSuffix(link, `rel="next"`) || strings.Contains(link, "first") || got.Header.Get("X-Total") != "" {
		t.Errorf("Link is %q, X-Total %q", link, got.Header.Get("X-Total"))
	}
	last := newForge(t).As("root", "GET /projects?pagination=keyset&order_by=id&per_page=3", "")
	if last.Header.Get("Link") != "" {
		t.Errorf("the last page links to %q", last.Header.Get("Link"))
	}
}

func TestCreateProject_isPersonalWithoutANamespace(t *testing.T) {
	f := newForge(t)
	for i, name := range []string{"first", "second"} {
		made := familytest.Decode[Project](t, f.As("otto", "POST /projects", `{"name":"`+name+`"}`))
		if made.PathWithNamespace != "otto/"+name || made.Namespace.Kind != "user" || made.Visibility != "private" || made.DefaultBranch != "main" {
			t.Errorf("project %d: got %+v", i, made)
		}
	}
	if got := f.As("otto", "POST /projects", `{"name":"first"}`); got.Code != http.StatusBadRequest || !strings.Contains(got.Body, `"path":["has already been taken"]`) {
		t.Errorf("got %s", got)
	}
	if got := f.As("mary", "GET /projects/otto%2Ffirst", ""); got.Code != http.StatusNotFound {
		t.Errorf("somebody else sees it: %s", got)
	}
}

func TestCreateProject_derivesThePathFromTheName(t *testing.T) {
	for name, path := range map[string]string{"My App": "my-app", "  c++ & more!": "c-more", "A.B_c": "a.b_c"} {
		made := familytest.Decode[Project](t, newForge(t).As("mary", "POST /projects", `{"name":`+strconv.Quote(name)+`,"namespace_id":10}`))
		if made.Path != path || made.Name != name {
			t.Errorf("%q became %q at %q", name, made.Name, made.Path)
		}
	}
}

func TestImportURL_mustNotHideCredentials(t *testing.T) {
	for url, good := range map[string]bool{
		"https://example.com/%40team/x.git": true, "file:///srv/a@b/x.git": true,
		"https://ann:secret@example.com/x.git": false, "https://ann:1/secret@example.com/x.git": false, "https://ann:1#secret": false,
		"https://example.com/x.git?private_token=secret": false, "file://ann:secret@host/x.git": false,
	} {
		want := `400 {"message":{"import_url":["cannot hold credentials, a query or a fragment"]}}`
		got := newForge(t).As("mary", "POST /projects", `{"name":"New","namespace_id":10,"import_url":"`+url+`"}`)
		if good && got.Code != http.StatusCreated || !good && got.String() != want {
			t.Errorf("%s: got %s, want it taken: %t", url, got, good)
		}
	}
}

func TestSquashOption_isASettingOfTheProject(t *testing.T) {
	f := newForge(t)
	show := func(a familytest.Answer) string { return familytest.Decode[Project](t, a).SquashOption }
	for _, tt := range []struct{ as, request, body, want string }{
		{"mary", "GET /projects/20", "", "default_off"},
		{"mary", "PUT /projects/20", `{"squash_option":"always"}`, "always"},
		{"mary", "PUT /projects/20", `{"description":"x"}`, "always"},
		{"mary", "PUT /projects/20", `{"squash_option":"never"}`, "never"},
		{"mary", "POST /projects", `{"name":"One","namespace_id":10}`, "default_off"},
		{"mary", "POST /projects", `{"name":"Two","namespace_id":10,"squash_option":"default_on"}`, "default_on"},
	} {
		if got := show(f.As(tt.as, tt.request, tt.body)); got != tt.want {
			t.Errorf("%s %s: got %s, want %s", tt.request, tt.body, got, tt.want)
		}
	}
}

func TestUpdateProject_changesAndShowsSettings(t *testing.T) {
	f := newForge(t)
	got := familytest.Decode[Project](t, f.As("mary", "PUT /projects/20",
		`{"path":"web","name":"Web","description":"new","visibility":"internal","container_registry_access_level":"private"}`))
	if got.PathWithNamespace != "acme/web" || got.NameWithNamespace != "acme / Web" || got.Description != "new" ||
		got.Visibility != "internal" || got.ContainerRegistryAccessLevel != "private" || !got.ContainerRegistryEnabled || got.ID != 20 {
		t.Errorf("got %+v", got)
	}
	if again := f.As("mary", "GET /projects/acme%2Fweb", ""); again.Code != http.StatusOK {
		t.Errorf("the next read does not show it: %s", again)
	}
	if old := f.As("mary", "GET /projects/acme%2Fsite", ""); old.Code != http.StatusNotFound {
		t.Errorf("the old path still leads somewhere: %s", old)
	}
	if archived := familytest.Decode[Project](t, f.As("mary", "POST /projects/20/archive", "")); !archived.Archived {
		t.Error("the project is not archived")
	}
	if bad := f.As("mary", "PUT /projects/20", `{"container_registry_access_level":"maybe"}`); bad.String() != `400 {"error":"container_registry_access_level does not have a valid value"}` {
		t.Errorf("got %s", bad)
	}
	if none := f.As("mary", "POST /projects", `{}`); none.String() != `400 {"error":"name, path are missing, at least one parameter must be provided"}` {
		t.Errorf("got %s", none)
	}
}

func TestProjectWithoutID_isNotShown(t *testing.T) {
	f := familytest.New(t, familytest.User("root", 1, familytest.Admin), familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic),
		familytest.Project("acme", "fresh", 0, "acme", v1alpha1.VisibilityPublic))
	f.Keep(familytest.Repositories(t, f.Catalog))
	f.Serve(New(f.Kit).Table())
	for path, want := range map[string]string{
		"/projects": "200 []", "/groups/acme/projects": "200 []", "/projects/acme%2Ffresh": `404 {"message":"404 Project Not Found"}`,
	} {
		if got := f.As("root", "GET "+path, "").String(); got != want {
			t.Errorf("GET %s: got %s", path, got)
		}
	}
}

func TestProjectWithoutPlace_isNotFound(t *testing.T) {
	loop := familytest.Group("acme", "loop", 30, "loop", v1alpha1.VisibilityPublic)
	foreign := familytest.Group("other", "foreign", 31, "", v1alpha1.VisibilityPublic)
	foreign.Spec.ParentRef = &v1alpha1.Reference{Path: "acme"} // which admits no other namespace
	f := familytest.New(t,
		familytest.User("root", 1, familytest.Admin), familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic), loop, foreign,
		familytest.Project("acme", "turning", 40, "loop", v1alpha1.VisibilityPublic),
		familytest.Project("other", "refused", 41, "foreign", v1alpha1.VisibilityPublic),
		familytest.Project("other", "lost", 42, "nowhere", v1alpha1.VisibilityPublic),
	)
	f.Keep(familytest.Repositories(t, f.Catalog))
	f.Serve(New(f.Kit).Table())
	for _, id := range []string{"40", "41", "42", "loop%2Fturning", "acme%2Fforeign%2Frefused"} {
		for _, request := range []string{"GET /projects/" + id, "PUT /projects/" + id, "DELETE /projects/" + id} {
			if got := f.As("root", request, `{"description":"x"}`).String(); got != `404 {"message":"404 Project Not Found"}` {
				t.Errorf("%s: got %s", request, got)
			}
		}
	}
	for _, id := range []string{"30", "31"} {
		if got := f.As("root", "GET /groups/"+id+"/projects", "").String(); got != `404 {"message":"404 Group Not Found"}` {
			t.Errorf("%s: got %s", id, got)
		}
	}
}

// The place of web depends on the labels of its namespace. The place of site depends on the names of the users.
func TestProject_isFoundWhateverItsPlaceDependsOn(t *testing.T) {
	open := familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic)
	open.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{
		From:     v1alpha1.NamespacesFromSelector,
		Selector: &v1alpha1.NamespaceSelector{MatchLabels: map[string]v1alpha1.LabelValue{"team": "guest"}},
	}
	guests := familytest.Group("guests", "guests", 11, "", v1alpha1.VisibilityPublic)
	guests.Spec.ParentRef = &v1alpha1.Reference{Path: "acme"}
	f := familytest.New(t,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "guests", Labels: map[string]string{"team": "guest"}}},
		open, guests, familytest.Project("guests", "web", 20, "guests", v1alpha1.VisibilityPublic),
		familytest.User("ada", 1), familytest.Group("people", "bob", 12, "", v1alpha1.VisibilityPublic),
		familytest.Project("people", "site", 21, "bob", v1alpha1.VisibilityPublic),
	)
	f.Keep(familytest.Repositories(t, f.Catalog))
	f.Serve(New(f.Kit).Table())
	for _, request := range []string{
		"GET /projects/20", "GET /projects/acme%2Fguests%2Fweb", "GET /projects/21", "GET /projects/bob%2Fsite", "GET /projects",
	} {
		if a := f.As("ada", request, ""); a.Code != http.StatusOK {
			t.Errorf("%s: %s", request, a)
		}
	}
}

func TestKeysetPagination_requiresOrderByID(t *testing.T) {
	const want = `405 {"error":"Keyset pagination is not yet available for this type of request"}`
	for _, path := range []string{"/projects", "/groups/acme/projects"} {
		if got := newForge(t).As("mary", "GET "+path+"?pagination=keyset&order_by=name", ""); got.String() != want {
			t.Errorf("got %s", got)
		}
	}
}

func TestProject_showsItsRepositoryDespiteStaleStatus(t *testing.T) {
	g := NewWithT(t)
	site := familytest.Project("acme", "site", 20, "acme", v1alpha1.VisibilityPublic)
	shard := familytest.Shard(t, site)
	f := familytest.New(t, familytest.User("root", 1, familytest.Admin), site, shard,
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic))
	repos, pushed := familytest.Repositories(t, f.Catalog), 0
	updater := ref.NewUpdater(f.Guard, repos, func(change.Event) { pushed++ })
	f.Refs = updater
	f.Serve(New(f.Kit).Table())
	shown := func(text string) {
		t.Helper()
		for _, request := range []string{"GET /projects/20", "GET /projects", "GET /projects?pagination=keyset&order_by=id", "GET /groups/10/projects"} {
			g.Expect(f.As("root", request, "").String()).To(ContainSubstring(text), request)
		}
	}
	shown(`"empty_repo":true`)
	repo := familytest.Init(t, repos, site, "sha1")
	shown(`"empty_repo":true`)
	c := gittest.New(t, "sha1")
	c.Commit(t, "README.md", "Hello.\n")
	c.Git(t, "branch", "topic")
	familytest.Push(t, repos, site, c)
	shown(`"empty_repo":false`)

	g.Expect(f.As("root", "PUT /projects/20", `{"default_branch":"topic"}`).String()).To(HavePrefix("200"))
	head, err := refs.ReadHead(t.Context(), repo)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(head.Branch).To(Equal("topic"), "who clones now begins there")
	g.Expect(pushed).To(Equal(1))
	g.Expect(f.As("root", "PUT /projects/20", `{"description":"x"}`).String()).To(HavePrefix("200"))
	g.Expect(pushed).To(Equal(1), "nothing else moves it")

	// While the repository is closed, the request leaves HEAD to the controller.
	open, err := repo.Close(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.As("root", "PUT /projects/20", `{"default_branch":"main"}`).String()).To(HavePrefix("200"))
	head, err = refs.ReadHead(t.Context(), repo)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(head.Branch).To(Equal("topic"))
	open()

	// So it does if the repository is damaged.
	g.Expect(os.RemoveAll(filepath.Join(repo.Dir(), "objects"))).To(Succeed())
	g.Expect(f.As("root", "PUT /projects/20", `{"default_branch":"topic"}`).String()).To(HavePrefix("200"))
}

func TestCachedProject_showsTheResultOfAPush(t *testing.T) {
	f := newForge(t)
	f.During(math.MaxInt, nil)
	requests := []string{"GET /projects/20", "GET /projects/acme%2Fsite", "GET /projects?search=site", "GET /projects?simple=true&search=site", "GET /groups/10/projects"}
	shown := func(branch string) {
		t.Helper()
		for _, request := range requests {
			if got := f.As("root", request, "").String(); !strings.Contains(got, `"default_branch":"`+branch+`"`) {
				t.Errorf("%s: got %s, want the branch %s", request, got, branch)
			}
		}
	}
	shown("main")
	p := &v1alpha1.Project{}
	if err := f.Client.Get(t.Context(), client.ObjectKey{Namespace: "acme", Name: "site"}, p); err != nil {
		t.Fatal(err)
	}
	p.Status.DefaultBranch, p.Status.HeadCommit, p.Status.RefsChecksum = "trunk", "01", "23"
	if err := f.Client.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	shown("trunk")
	scope, err := f.Guard.Project(t.Context(), "20")
	if err != nil || scope.Project.Status.RefsChecksum != "23" {
		t.Errorf("the guard returns %+v, %v", scope.Project, err)
	}
}

func TestCreateProject_adoptsNothingAndDeletesItsRepository(t *testing.T) {
	f := newForge(t)
	made := familytest.Decode[Project](t, f.As("mary", "POST /projects", `{"name":"New","namespace_id":10}`))
	p, err := catalog.ByID[*v1alpha1.Project](t.Context(), f.Catalog, made.ID)
	if err != nil {
		t.Fatal(err)
	}
	if p.Spec.DeletionPolicy != v1alpha1.DeletionPolicyDelete || p.Spec.AdoptRepository != v1alpha1.AdoptNone {
		t.Errorf("got deletionPolicy %q and adoptRepository %q", p.Spec.DeletionPolicy, p.Spec.AdoptRepository)
	}
}

func TestCreateProject_failsWhenTheGroupIsDeletedMeanwhile(t *testing.T) {
	f := newForge(t)
	f.Before = func(verb string, o client.Object) error {
		if _, ok := o.(*v1alpha1.Project); !ok || verb != "create" {
			return nil
		}
		f.Before = nil
		return f.Client.Delete(t.Context(), &v1alpha1.Group{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "acme"}})
	}
	if got := f.As("mary", "POST /projects", `{"name":"New","path":"new","namespace_id":10}`); got.String() != `404 {"message":"404 Group Not Found"}` {
		t.Errorf("got %s", got)
	}
	var projects v1alpha1.ProjectList
	if err := f.Client.List(t.Context(), &projects, client.InNamespace("acme")); err != nil || len(projects.Items) != 2 {
		t.Errorf("%d projects, %v, want the two that were there", len(projects.Items), err)
	}
}

func TestProjectsOfUser_areTheirPersonalOnes(t *testing.T) {
	f := newForge(t)
	post := func(body string) {
		if got := f.As("dora", "POST /projects", body); got.Code != http.StatusCreated {
			t.Fatalf("got %s", got)
		}
	}
	for _, who := range []string{"", "otto"} {
		want := map[string]string{"": `404 {"message":"404 User Not Found"}`, "otto": "200 []"}[who]
		if got := f.As(who, "GET /users/3/projects", "").String(); got != want {
			t.Errorf("%q: got %s, want %s", who, got, want)
		}
	}
	post(`{"name":"diary"}`)
	for _, request := range []string{"GET /users/dora/projects", "GET /users/dora/projects?search=dia"} {
		if got := f.As("", request, "").Code; got != http.StatusNotFound {
			t.Errorf("%s: got %d for a user whose projects are all private", request, got)
		}
	}
	post(`{"name":"notes","visibility":"public"}`)
	for _, tt := range []struct{ who, request, paths string }{
		{"dora", "GET /users/3/projects", "dora/notes dora/diary"},
		{"root", "GET /users/DORA/projects?order_by=name&sort=asc", "dora/diary dora/notes"},
		{"otto", "GET /users/dora/projects", "dora/notes"},
		{"", "GET /users/3/projects", "dora/notes"},
		{"", "GET /users/3/projects?search=not", "dora/notes"},
		{"", "GET /users/3/projects?search=dia", ""},
		{"", "GET /users/3/projects?visibility=private", ""},
		{"", "GET /users/3/projects?archived=true&order_by=id&pagination=keyset", ""},
		{"dora", "GET /users/3/projects?search=dia&simple=true", "dora/diary"},
		{"dora", "GET /users/3/projects?starred=true", ""},
		{"dora", "GET /users/mary/projects", ""},
	} {
		var paths []string
		for _, p := range familytest.Decode[[]Project](t, f.As(tt.who, tt.request, "")) {
			paths = append(paths, p.PathWithNamespace)
		}
		if got := strings.Join(paths, " "); got != tt.paths {
			t.Errorf("%s for %q: got %q, want %q", tt.request, tt.who, got, tt.paths)
		}
	}
	for _, request := range []string{"GET /users/99/projects", "GET /users/nobody/projects"} {
		if got := f.As("dora", request, "").String(); got != `404 {"message":"404 User Not Found"}` {
			t.Errorf("%s: got %s", request, got)
		}
	}
}
