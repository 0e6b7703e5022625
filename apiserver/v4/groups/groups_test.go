package groups_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	. "github.com/forgeplane/forgeplane/apiserver/v4/groups"
	"github.com/forgeplane/forgeplane/internal/owner"
)

// newForge returns a forge with the groups acme, acme/web and hidden. Mary owns acme.
func newForge(t *testing.T, more ...client.Object) *familytest.Forge {
	t.Helper()
	f := familytest.New(t, append([]client.Object{
		familytest.User("root", 1, familytest.Admin), familytest.User("mary", 2), familytest.User("dora", 3), familytest.User("otto", 4),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic),
		familytest.Group("acme", "web", 11, "acme", v1alpha1.VisibilityPublic),
		familytest.Group("hidden", "hidden", 12, "", v1alpha1.VisibilityPrivate),
		familytest.Project("acme", "site", 20, "web", v1alpha1.VisibilityPublic),
		familytest.InGroup("acme", "acme", "mary", v1alpha1.RoleOwner),
		familytest.InGroup("acme", "acme", "dora", v1alpha1.RoleMaintainer),
	}, more...)...)
	return f.Serve(New(f.Kit).Table())
}

func TestListGroups_filtersSortsAndPages(t *testing.T) {
	tests := map[string]struct{ who, request, paths string }{
		"anonymous callers see public groups": {"", "GET /groups", "acme acme/web"},
		"administrators see all groups":       {"root", "GET /groups", "acme hidden acme/web"},
		"by id, descending":                   {"root", "GET /groups?order_by=id&sort=desc", "hidden acme/web acme"},
		"by part of a name":                   {"root", "GET /groups?search=ID", "hidden"},
		"by visibility":                       {"root", "GET /groups?visibility=private", "hidden"},
		"owned by the caller":                 {"mary", "GET /groups?owned=true", "acme acme/web"},
		"owned by others only":                {"dora", "GET /groups?owned=true", ""},
		"with at least a role":                {"dora", "GET /groups?min_access_level=40", "acme acme/web"},
		"at the top level":                    {"root", "GET /groups?top_level_only=true", "acme hidden"},
		"of a member":                         {"dora", "GET /groups", "acme acme/web"},
		"of a user without a role":            {"otto", "GET /groups", ""},
		"all available groups":                {"otto", "GET /groups?all_available=true", "acme acme/web"},
		"subgroups, of a user without a role": {"otto", "GET /groups/acme/subgroups", ""},
		"all available subgroups":             {"otto", "GET /groups/acme/subgroups?all_available=true", "acme/web"},
		"of an administrator without a role":  {"root", "GET /groups?all_available=false", ""},
		"of an anonymous caller":              {"", "GET /groups?all_available=false", "acme acme/web"},
		"without skipped groups":              {"root", "GET /groups?skip_groups=10,11", "hidden"},
		"subgroups without skipped groups":    {"root", "GET /groups/acme/subgroups?skip_groups[]=11", ""},
		"subgroups":                           {"mary", "GET /groups/acme/subgroups", "acme/web"},
		"the second page":                     {"root", "GET /groups?per_page=2&page=2", "acme/web"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var paths []string
			for _, g := range familytest.Decode[[]Group](t, newForge(t).As(tt.who, tt.request, "")) {
				paths = append(paths, g.FullPath)
			}
			if got := strings.Join(paths, " "); got != tt.paths {
				t.Errorf("got %q, want %q", got, tt.paths)
			}
		})
	}
}

func TestDescendantGroups_areOfAllLevels(t *testing.T) {
	f := newForge(t, familytest.Group("acme", "deep", 13, "web", v1alpha1.VisibilityPublic),
		familytest.Group("acme", "secret", 14, "web", v1alpha1.VisibilityPrivate))
	for _, tt := range []struct{ who, request, paths string }{
		{"mary", "GET /groups/acme/descendant_groups", "acme/web/deep acme/web/secret acme/web"},
		{"mary", "GET /groups/acme/descendant_groups?order_by=id&sort=desc&skip_groups[]=14", "acme/web/deep acme/web"},
		{"mary", "GET /groups/acme%2Fweb/descendant_groups?visibility=private", "acme/web/secret"},
		{"mary", "GET /groups/acme%2Fweb%2Fdeep/descendant_groups", ""},
		{"otto", "GET /groups/acme/descendant_groups", ""},
		{"otto", "GET /groups/acme/descendant_groups?all_available=true&search=DEE", "acme/web/deep"},
		{"", "GET /groups/10/descendant_groups?per_page=1", "acme/web/deep"},
	} {
		var paths []string
		for _, g := range familytest.Decode[[]Group](t, f.As(tt.who, tt.request, "")) {
			paths = append(paths, g.FullPath)
		}
		if got := strings.Join(paths, " "); got != tt.paths {
			t.Errorf("%s for %q: got %q, want %q", tt.request, tt.who, got, tt.paths)
		}
	}
}

func TestGroupsOfProject_areThoseThatTheCallerSees(t *testing.T) {
	f := newForge(t, familytest.Group("acme", "inner", 13, "web", v1alpha1.VisibilityPrivate),
		familytest.Project("acme", "core", 21, "inner", v1alpha1.VisibilityPrivate),
		familytest.InProject("acme", "core", "otto", v1alpha1.RoleGuest))
	for _, tt := range []struct{ who, request, paths string }{
		{"mary", "GET /projects/21/groups", "acme/web/inner acme/web acme"},
		{"mary", "GET /projects/21/groups?search=CM", "acme"},
		{"mary", "GET /projects/21/groups?skip_groups=10,13", "acme/web"},
		{"mary", "GET /projects/21/groups?per_page=1&page=2", "acme/web"},
		{"otto", "GET /projects/21/groups", "acme/web acme"},
		{"", "GET /projects/20/groups", "acme/web acme"},
	} {
		var paths []string
		for _, g := range familytest.Decode[[]entity.GroupPlace](t, f.As(tt.who, tt.request, "")) {
			paths = append(paths, g.FullPath)
		}
		if got := strings.Join(paths, " "); got != tt.paths {
			t.Errorf("%s for %q: got %q, want %q", tt.request, tt.who, got, tt.paths)
		}
	}
	want := `200 [{"id":10,"name":"acme","avatar_url":null,"web_url":"https://forge.example/groups/acme","full_name":"acme","full_path":"acme"}]`
	if got := f.As("", "GET /projects/20/groups?search=acme", ""); got.String() != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestNamespaceExists_suggestsAFreePath(t *testing.T) {
	const free = `200 {"exists":false,"suggests":[]}`
	suggests := func(path string) string { return `200 {"exists":true,"suggests":["` + path + `"]}` }
	external := familytest.User("eve", 5)
	external.Spec.External = true
	f := newForge(t, external, familytest.Group("acme", "web1", 13, "acme", v1alpha1.VisibilityPrivate))
	for _, tt := range []struct{ who, path, want string }{
		{"eve", "acme", suggests("acme1")},
		{"eve", "mary", suggests("mary1")},
		{"eve", "hidden", free}, // she cannot create root groups
		{"otto", "acme", suggests("acme1")},
		{"otto", "ACME", suggests("ACME1")},
		{"otto", "hidden", suggests("hidden1")},
		{"otto", "mary", suggests("mary1")},
		{"otto", "new", free},
		{"otto", "web", free},
		{"otto", "acme%2Fweb", free},
		{"otto", "web?parent_id=10", suggests("web1")},
		{"dora", "web?parent_id=10", suggests("web2")},
		{"dora", "site?parent_id=11", free},
		{"otto", "web1?parent_id=10", free},
		{"mary", "hidden?parent_id=12", free},
		{"mary", "hidden?parent_id=99", free},
	} {
		path, query, _ := strings.Cut(tt.path, "?")
		if got := f.As(tt.who, "GET /namespaces/"+path+"/exists?"+query, "").String(); got != tt.want {
			t.Errorf("%s for %s: got %s, want %s", tt.path, tt.who, got, tt.want)
		}
	}
}

func TestListNamespaces_filtersByOwnerAndPath(t *testing.T) {
	tests := map[string]struct{ who, request, paths string }{
		"of a member":                      {"dora", "GET /namespaces", "acme acme/web"},
		"of an administrator":              {"root", "GET /namespaces", "acme acme/web hidden"},
		"of a member, at the top level":    {"dora", "GET /namespaces?top_level_only=true", "acme"},
		"of an owner":                      {"mary", "GET /namespaces?owned_only=true", "acme acme/web"},
		"of an owner, at the top level":    {"mary", "GET /namespaces?owned_only=true&top_level_only=true", "acme"},
		"owned by a maintainer":            {"dora", "GET /namespaces?owned_only=true", ""},
		"owned by an administrator":        {"root", "GET /namespaces?owned_only=true", ""},
		"of an owner, by part of the path": {"mary", "GET /namespaces?owned_only=true&search=WEB", "acme/web"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var paths []string
			for _, n := range familytest.Decode[[]entity.Namespace](t, newForge(t).As(tt.who, tt.request, "")) {
				paths = append(paths, n.FullPath)
			}
			if got := strings.Join(paths, " "); got != tt.paths {
				t.Errorf("got %q, want %q", got, tt.paths)
			}
		})
	}
}

func TestUpdateGroup_clearsTheDescriptionWithNull(t *testing.T) {
	f := newForge(t)
	for _, tt := range []struct{ body, want string }{
		{`{"description":"old"}`, "old"}, {`{"name":"Acme"}`, "old"}, {`{"description":null}`, ""},
	} {
		if got := familytest.Decode[Group](t, f.As("mary", "PUT /groups/10", tt.body)); got.Description != tt.want {
			t.Errorf("%s: got %q, want %q", tt.body, got.Description, tt.want)
		}
	}
}

func TestUpdateGroup_changesTheCaseOfItsPath(t *testing.T) {
	f := newForge(t)
	for id, path := range map[string]string{"10": "ACME", "11": "Web"} {
		if got := f.As("mary", "PUT /groups/"+id, `{"path":"`+path+`"}`); got.Code != http.StatusOK {
			t.Errorf("%s: got %s", path, got)
		}
	}
	if got := familytest.Decode[Group](t, f.As("mary", "GET /groups/acme%2Fweb", "")); got.FullPath != "ACME/Web" {
		t.Errorf("got %+v", got)
	}
	if got := f.As("mary", "PUT /groups/10", `{"path":"HIDDEN"}`).String(); got != `400 {"message":{"path":["has already been taken"]}}` {
		t.Errorf("the path of another group: got %s", got)
	}
}

func TestCreateGroup_makesTheCallerOwner(t *testing.T) {
	f := newForge(t)
	made := familytest.Decode[Group](t, f.As("otto", "POST /groups", `{"name":"Otto's","path":"ottos","visibility":"public"}`))
	if made.FullPath != "ottos" || made.Name != "Otto's" || made.Visibility != "public" || made.ParentID != nil || made.ID == 0 {
		t.Errorf("got %+v", made)
	}
	below := familytest.Decode[Group](t, f.As("otto", "POST /groups", `{"name":"Below","path":"below","parent_id":`+strconv.FormatInt(made.ID, 10)+`}`))
	if below.FullPath != "ottos/below" || below.FullName != "Otto's / Below" || *below.ParentID != made.ID {
		t.Errorf("got %+v", below)
	}
	if got := f.As("otto", "GET /groups?owned=true", ""); !strings.Contains(got.Body, `"ottos/below"`) {
		t.Errorf("the maker does not own it: %s", got)
	}
	if got := f.As("mary", "POST /groups", `{"name":"Other","path":"OTTOS"}`); got.String() != `400 {"message":{"path":["has already been taken"]}}` {
		t.Errorf("got %s", got)
	}
	if got := f.As("otto", "PUT /groups/ottos%2Fbelow", `{"path":"renamed"}`); !strings.Contains(got.Body, `"ottos/renamed"`) {
		t.Errorf("got %s", got)
	}
	spaces := familytest.Decode[[]entity.Namespace](t, f.As("otto", "GET /namespaces", ""))
	if len(spaces) != 2 || spaces[0].Kind != "group" || spaces[0].FullPath != "ottos" {
		t.Errorf("got %+v", spaces)
	}
}

func TestCreateGroup_reusesThePathOfARenamedGroup(t *testing.T) {
	for _, parent := range []string{"", `,"parent_id":10`} {
		f := newForge(t)
		const taken = `400 {"message":{"path":["has already been taken"]}}`
		post := func(path string) familytest.Answer {
			return f.As("mary", "POST /groups", `{"name":"New","path":"`+path+`"`+parent+`}`)
		}
		for i := range 3 {
			got := post("again")
			if got.Code != http.StatusCreated {
				t.Fatalf("got %s", got)
			}
			if got := post("Again"); got.String() != taken {
				t.Errorf("got %s", got)
			}
			rename := "PUT /groups/" + strconv.FormatInt(familytest.Decode[Group](t, got).ID, 10)
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
}

func TestDeleteGroup_deletesEverythingBelow(t *testing.T) {
	f := newForge(t)
	if got := f.As("mary", "DELETE /groups/10", ""); got.String() != `202 {"message":"202 Accepted"}` {
		t.Fatalf("got %s", got)
	}
	for _, path := range []string{"acme", "acme%2Fweb"} {
		if got := f.As("root", "GET /groups/"+path, ""); got.Code != http.StatusNotFound {
			t.Errorf("%s is left: %s", path, got)
		}
	}
	var projects v1alpha1.ProjectList
	if err := f.Client.List(t.Context(), &projects); err != nil || len(projects.Items) != 0 {
		t.Errorf("%d projects are left, %v", len(projects.Items), err)
	}
}

// TestDeleteGroup_deletesObjectsCreatedMeanwhile creates objects after everything below the group is
// deleted, and before the group itself is.
func TestDeleteGroup_deletesObjectsCreatedMeanwhile(t *testing.T) {
	f := newForge(t)
	acme := f.Named(&v1alpha1.Group{}, "acme/acme")
	add := func(o client.Object) {
		if err := f.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	project := func(name string, in v1alpha1.Reference, writes v1alpha1.RESTWrites) *v1alpha1.Project {
		p := familytest.Project("acme", name, 0, "", v1alpha1.VisibilityPrivate)
		p.Spec.GroupRef, p.Spec.RESTWrites = in, writes
		return p
	}
	f.Before = func(verb string, o client.Object) error {
		if g, ok := o.(*v1alpha1.Group); !ok || verb != "delete" || g.Name != "acme" {
			return nil
		}
		f.Before = nil
		below := familytest.Group("acme", "below", 50, "", v1alpha1.VisibilityPrivate)
		below.Spec.ParentRef = &acme
		add(below)
		add(project("late", acme, v1alpha1.RESTWritesAllow))
		add(project("deep", f.Named(&v1alpha1.Group{}, "acme/below"), v1alpha1.RESTWritesAllow))
		add(project("refused", acme, v1alpha1.RESTWritesRefuse))
		add(project("of-another", v1alpha1.Reference{Name: "acme", UID: "another"}, v1alpha1.RESTWritesAllow))
		add(project("declared", v1alpha1.Reference{Name: "acme"}, v1alpha1.RESTWritesAllow))
		return nil
	}
	if got := f.As("mary", "DELETE /groups/10", ""); got.Code != http.StatusAccepted {
		t.Fatalf("got %s", got)
	}
	var projects v1alpha1.ProjectList
	var groups v1alpha1.GroupList
	if err := errors.Join(f.Client.List(t.Context(), &projects), f.Client.List(t.Context(), &groups)); err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, p := range projects.Items {
		left = append(left, p.Name)
	}
	for _, g := range groups.Items {
		left = append(left, g.Name)
	}
	if want := []string{"declared", "of-another", "refused", "hidden"}; !slices.Equal(left, want) {
		t.Errorf("%v are left, want %v", left, want)
	}
}

func TestCreateGroup_failsWhenTheParentIsDeletedMeanwhile(t *testing.T) {
	f := newForge(t)
	f.Before = func(verb string, o client.Object) error {
		if _, ok := o.(*v1alpha1.Group); !ok || verb != "create" {
			return nil
		}
		f.Before = nil
		return f.Client.Delete(t.Context(), &v1alpha1.Group{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "acme"}})
	}
	if got := f.As("mary", "POST /groups", `{"name":"New","path":"new","parent_id":10}`); got.String() != `404 {"message":"404 Group Not Found"}` {
		t.Errorf("got %s", got)
	}
	var groups v1alpha1.GroupList
	if err := f.Client.List(t.Context(), &groups, client.InNamespace("acme")); err != nil || len(groups.Items) != 1 || groups.Items[0].Name != "web" {
		t.Errorf("%v, %v, want only the group that was there", groups.Items, err)
	}
}

func TestDeleteGroup_respectsRESTWritesOfGroupsBelow(t *testing.T) {
	for policy, want := range map[v1alpha1.RESTWrites]string{
		v1alpha1.RESTWritesAllow:          `202 {"message":"202 Accepted"}`,
		v1alpha1.RESTWritesRefuse:         `403 {"message":"403 Forbidden - acme/web/kept: the group acme/web/kept does not accept changes over REST: they are declared elsewhere"}`,
		v1alpha1.RESTWritesRefuseDeclared: `202 {"message":"202 Accepted"}`,
	} {
		kept := familytest.Group("acme", "kept", 21, "web", v1alpha1.VisibilityPrivate)
		kept.Spec.RESTWrites = policy
		f := newForge(t, kept)
		removed := 0
		f.Before = func(string, client.Object) error {
			removed++
			return nil
		}
		if got := f.As("mary", "DELETE /groups/10", ""); got.String() != want {
			t.Errorf("%s: got %s, want %s", policy, got, want)
		}
		if (removed != 0) != (policy != v1alpha1.RESTWritesRefuse) {
			t.Errorf("%s: %d objects were removed", policy, removed)
		}
	}
}

// applied shows projects as if a GitOps controller had applied them.
type applied struct{ client.Reader }

func (a applied) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	err := a.Reader.Get(ctx, key, o, opts...)
	if _, ok := o.(*v1alpha1.Project); ok {
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{
			Manager: "gitops", Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:path":{}}}`),
		}})
	}
	return err
}

func TestDeleteGroup_respectsRESTWritesOfProjects(t *testing.T) {
	for policy, want := range map[v1alpha1.RESTWrites]string{
		v1alpha1.RESTWritesAllow:  `202 {"message":"202 Accepted"}`,
		v1alpha1.RESTWritesRefuse: `403 {"message":"403 Forbidden - acme/web/kept: the project does not accept changes over REST: they are declared elsewhere"}`,
		v1alpha1.RESTWritesRefuseDeclared: `403 {"message":"403 Forbidden - acme/web/kept: ` +
			`this is managed by gitops, so a change over REST would be undone: change it there"}`,
	} {
		t.Run(string(policy), func(t *testing.T) {
			kept := familytest.Project("acme", "kept", 21, "web", v1alpha1.VisibilityPrivate)
			kept.Spec.RESTWrites = policy
			f := newForge(t, kept)
			f.Writer = f.WriterReading(applied{f.Client})
			f.Serve(New(f.Kit).Table())
			removed := 0
			f.Before = func(string, client.Object) error {
				removed++
				return nil
			}
			if got := f.As("mary", "DELETE /groups/10", ""); got.String() != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if policy != v1alpha1.RESTWritesAllow && removed != 0 {
				t.Errorf("%d objects were removed all the same", removed)
			}
		})
	}
}

func TestCreateGroup_ignoresMembershipsOfAFormerGroup(t *testing.T) {
	f := newForge(t)
	const body = `{"name":"New","path":"new"}`
	for _, request := range []string{"POST /groups", "DELETE /groups/new", "POST /groups"} {
		if got := f.As("otto", request, body); got.Code >= 400 {
			t.Fatalf("%s: got %s", request, got)
		}
	}
	var all v1alpha1.MembershipList
	if err := f.Client.List(t.Context(), &all, client.InNamespace("home")); err != nil || len(all.Items) != 2 {
		t.Fatalf("%d memberships, %v, want the old one beside the new one", len(all.Items), err)
	}
	// The garbage collector deletes the old membership with the old group.
	slices.SortFunc(all.Items, func(a, b v1alpha1.Membership) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	if err := f.Client.Delete(t.Context(), &all.Items[0]); err != nil {
		t.Fatal(err)
	}
	if got := f.As("otto", "PUT /groups/new", `{"description":"mine"}`); got.Code != http.StatusOK {
		t.Errorf("the maker does not own it: %s", got)
	}
}

func TestCreateGroup_leavesNoGroupWithoutOwner(t *testing.T) {
	f := newForge(t)
	f.Before = func(verb string, o client.Object) error {
		if _, ok := o.(*v1alpha1.Membership); ok && verb == "create" {
			return errors.New("the API server is overloaded")
		}
		return nil
	}
	if got := f.As("otto", "POST /groups", `{"name":"New","path":"new"}`); got.Code != http.StatusInternalServerError {
		t.Errorf("got %s", got)
	}
	if got := f.As("root", "GET /groups/new", ""); got.Code != http.StatusNotFound {
		t.Errorf("the group is there: %s", got)
	}
}

func TestGroupWithoutID_isNotShown(t *testing.T) {
	f := familytest.New(t, familytest.User("root", 1, familytest.Admin), familytest.Group("acme", "fresh", 0, "", v1alpha1.VisibilityPublic))
	f.Serve(New(f.Kit).Table())
	for _, path := range []string{"/groups", "/namespaces"} {
		if got := f.As("root", "GET "+path, ""); got.String() != "200 []" {
			t.Errorf("got %s", got)
		}
	}
	for _, path := range []string{"/groups/fresh", "/namespaces/fresh"} {
		if got := f.As("root", "GET "+path, ""); got.Code != http.StatusNotFound {
			t.Errorf("got %s", got)
		}
	}
}

// A group names its owner until the membership exists, so that the controller can create the membership if the server is killed.
func TestCreateGroup_recordsTheExpectedOwner(t *testing.T) {
	f := newForge(t)
	otto := f.Refer(&v1alpha1.User{}, "otto")
	killed := false
	f.Before = func(_ string, o client.Object) error {
		if _, ok := o.(*v1alpha1.Membership); ok {
			killed = true
		}
		if killed {
			return errors.New("the server is killed")
		}
		return nil
	}
	f.As("otto", "POST /groups", `{"name":"Cut","path":"cut"}`)
	left, err := f.Catalog.ByPath(t.Context(), "cut")
	if err != nil {
		t.Fatal(err)
	}
	if got, is := owner.Expected(left.(*v1alpha1.Group)); got != otto || !is {
		t.Errorf("got %+v, want %+v", got, otto)
	}

	f.Before = nil
	if got := f.As("otto", "POST /groups", `{"name":"New","path":"new"}`); got.Code != http.StatusCreated {
		t.Fatal(got)
	}
	whole, err := f.Catalog.ByPath(t.Context(), "new")
	if err != nil {
		t.Fatal(err)
	}
	if got, is := owner.Expected(whole.(*v1alpha1.Group)); is {
		t.Errorf("it still says that %+v is to own it", got)
	}
}
