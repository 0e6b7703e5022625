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
	"github.com/forgeplane/forgeplane/apiserver/namespace"
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
	return f.Serve(New(f.Catalog, f.Guard, f.Writer, f.Clock, familytest.WebURL, "home").Table())
}

func TestListsOfGroups(t *testing.T) {
	tests := map[string]struct{ who, request, paths string }{
		"nobody sees what is public":    {"", "GET /groups", "acme acme/web"},
		"an administrator sees all":     {"root", "GET /groups", "acme hidden acme/web"},
		"by id, downwards":              {"root", "GET /groups?order_by=id&sort=desc", "hidden acme/web acme"},
		"by part of a name":             {"root", "GET /groups?search=ID", "hidden"},
		"of one visibility":             {"root", "GET /groups?visibility=private", "hidden"},
		"those that the caller owns":    {"mary", "GET /groups?owned=true", "acme acme/web"},
		"those that somebody else owns": {"dora", "GET /groups?owned=true", ""},
		"those with at least a role":    {"dora", "GET /groups?min_access_level=40", "acme acme/web"},
		"roots":                         {"root", "GET /groups?top_level_only=true", "acme hidden"},
		"those of a member":             {"dora", "GET /groups", "acme acme/web"},
		"those of no member":            {"otto", "GET /groups", ""},
		"those that anyone may see":     {"otto", "GET /groups?all_available=true", "acme acme/web"},
		"those below, of no member":     {"otto", "GET /groups/acme/subgroups", ""},
		"those below, for anyone":       {"otto", "GET /groups/acme/subgroups?all_available=true", "acme/web"},
		"those of an administrator":     {"root", "GET /groups?all_available=false", ""},
		"those that nobody is in":       {"", "GET /groups?all_available=false", "acme acme/web"},
		"all without some":              {"root", "GET /groups?skip_groups=10,11", "hidden"},
		"those below without some":      {"root", "GET /groups/acme/subgroups?skip_groups[]=11", ""},
		"those below a group":           {"mary", "GET /groups/acme/subgroups", "acme/web"},
		"the second page":               {"root", "GET /groups?per_page=2&page=2", "acme/web"},
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

func TestListsOfNamespaces(t *testing.T) {
	tests := map[string]struct{ who, request, paths string }{
		"of a member":                  {"dora", "GET /namespaces", "acme acme/web"},
		"of an administrator":          {"root", "GET /namespaces", "acme acme/web hidden"},
		"at the top":                   {"dora", "GET /namespaces?top_level_only=true", "acme"},
		"of an owner":                  {"mary", "GET /namespaces?owned_only=true", "acme acme/web"},
		"of an owner, at the top":      {"mary", "GET /namespaces?owned_only=true&top_level_only=true", "acme"},
		"that somebody else owns":      {"dora", "GET /namespaces?owned_only=true", ""},
		"that no administrator owns":   {"root", "GET /namespaces?owned_only=true", ""},
		"owned, by part of their path": {"mary", "GET /namespaces?owned_only=true&search=WEB", "acme/web"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var paths []string
			for _, n := range familytest.Decode[[]namespace.Namespace](t, newForge(t).As(tt.who, tt.request, "")) {
				paths = append(paths, n.FullPath)
			}
			if got := strings.Join(paths, " "); got != tt.paths {
				t.Errorf("got %q, want %q", got, tt.paths)
			}
		})
	}
}

func TestADescriptionIsClearedByNull(t *testing.T) {
	f := newForge(t)
	for _, tt := range []struct{ body, want string }{
		{`{"description":"old"}`, "old"}, {`{"name":"Acme"}`, "old"}, {`{"description":null}`, ""},
	} {
		if got := familytest.Decode[Group](t, f.As("mary", "PUT /groups/10", tt.body)); got.Description != tt.want {
			t.Errorf("%s: got %q, want %q", tt.body, got.Description, tt.want)
		}
	}
}

func TestAGroupThatIsMadeBelongsToItsMaker(t *testing.T) {
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
	spaces := familytest.Decode[[]namespace.Namespace](t, f.As("otto", "GET /namespaces", ""))
	if len(spaces) != 2 || spaces[0].Kind != "group" || spaces[0].FullPath != "ottos" {
		t.Errorf("got %+v", spaces)
	}
}

func TestAPathIsFreeWhenItsGroupHasAnotherOne(t *testing.T) {
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
		// Somebody else is faster, and writes it in another way.
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

func TestAGroupGoesWithAllThatIsBelow(t *testing.T) {
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

// TestAGroupGoesWithWhatIsMadeMeanwhile makes things when everything below is gone, and the group itself is about to go.
func TestAGroupGoesWithWhatIsMadeMeanwhile(t *testing.T) {
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

func TestNothingIsMadeInAGroupThatIsRemovedMeanwhile(t *testing.T) {
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

// applied shows projects as somebody applies them from elsewhere.
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

func TestAGroupStaysWhenAProjectBelowIsNotForRESTCallersToRemove(t *testing.T) {
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
			f.Serve(New(f.Catalog, f.Guard, f.WriterReading(applied{f.Client}), f.Clock, familytest.WebURL, "home").Table())
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

func TestAGroupIsMadeAgainWhileTheOldOnesMembershipsAreThere(t *testing.T) {
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
	// The old one goes with the old group.
	slices.SortFunc(all.Items, func(a, b v1alpha1.Membership) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	if err := f.Client.Delete(t.Context(), &all.Items[0]); err != nil {
		t.Fatal(err)
	}
	if got := f.As("otto", "PUT /groups/new", `{"description":"mine"}`); got.Code != http.StatusOK {
		t.Errorf("the maker does not own it: %s", got)
	}
}

func TestNoGroupStaysWithoutAnOwner(t *testing.T) {
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

func TestAGroupThatHasNoIDYet_isNotShown(t *testing.T) {
	f := familytest.New(t, familytest.User("root", 1, familytest.Admin), familytest.Group("acme", "fresh", 0, "", v1alpha1.VisibilityPublic))
	f.Serve(New(f.Catalog, f.Guard, f.Writer, f.Clock, familytest.WebURL, "home").Table())
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

// A group names its owner until the membership exists, so that the controller can make it when the server was killed before it did.
func TestAGroup_saysWhoIsToOwnItUntilTheyDo(t *testing.T) {
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
