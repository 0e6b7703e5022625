package namespace_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/namespace"
	. "github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/groups"
	"github.com/forgeplane/forgeplane/apiserver/v4/projects"
	"github.com/forgeplane/forgeplane/apiserver/v4/users"
	"github.com/forgeplane/forgeplane/internal/claim"
)

// newForge returns a forge with the users root, who is an administrator, bob and max. It serves groups, projects and users.
func newForge(t *testing.T) *Forge {
	t.Helper()
	f := New(t, User("root", 1, Admin), User("bob", 2), User("max", 3))
	f.Keep(Repositories(t, f.Catalog))
	return f.Serve(
		groups.New(f.Kit).Table(),
		projects.New(f.Kit).Table(),
		users.New(f.Kit).Table(),
	)
}

const notAvailable = `400 {"message":{"namespace":["is not available: another group holds the path"]}}`

func TestUser_inheritsNothingWithUsername(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	g.Expect(f.As("bob", "POST /projects", `{"name":"secret"}`).Code).To(Equal(201))
	g.Expect(f.As("bob", "POST /groups", `{"name":"Bob's","path":"bobs"}`).Code).To(Equal(201))
	reads := []string{"GET /projects/bob%2Fsecret", "GET /groups/bobs"}
	for _, request := range reads {
		g.Expect(f.As("bob", request, "").Code).To(Equal(200))
	}

	old, err := f.Catalog.User(t.Context(), v1alpha1.Reference{Name: "bob"})
	g.Expect(err).NotTo(HaveOccurred())
	hold(t, f, namespace.PersonalKey(old, "home"))
	g.Expect(f.Client.Delete(t.Context(), old.DeepCopy())).To(Succeed())
	bob := User("bob", 50)
	g.Expect(f.Client.Create(t.Context(), bob)).To(Succeed())
	bob.Status.ID = 50
	g.Expect(f.Client.Status().Update(t.Context(), bob)).To(Succeed())

	for _, request := range reads {
		g.Expect(f.As("bob", request, "").Code).To(Equal(404), request)
	}
	g.Expect(f.As("bob", "POST /projects", `{"name":"mine"}`).String()).To(Equal(notAvailable))
}

func TestUser_doesNotInheritPersonalNamespaceWithID(t *testing.T) {
	for name, was := range map[string]func(*v1alpha1.Group){
		"as it is created":  func(*v1alpha1.Group) {},
		"as it is restored": func(g *v1alpha1.Group) { g.Annotations = nil },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := newForge(t)
			g.Expect(f.As("bob", "POST /projects", `{"name":"secret"}`).Code).To(Equal(201))
			bob, err := f.Catalog.User(t.Context(), v1alpha1.Reference{Name: "bob"})
			g.Expect(err).NotTo(HaveOccurred())
			group := &v1alpha1.Group{}
			g.Expect(f.Client.Get(t.Context(), namespace.PersonalKey(bob, "home"), group)).To(Succeed())
			was(group)
			g.Expect(f.Client.Update(t.Context(), group)).To(Succeed())
			g.Expect(f.As("bob", "POST /projects", `{"name":"more"}`).Code).To(Equal(201), "it is his")

			g.Expect(f.Client.Delete(t.Context(), bob.DeepCopy())).To(Succeed())
			anew := User("bob", 2)
			anew.UID = "anew"
			g.Expect(f.Client.Create(t.Context(), anew)).To(Succeed())
			anew.Status.ID = 2
			g.Expect(f.Client.Status().Update(t.Context(), anew)).To(Succeed())

			g.Expect(f.As("bob", "GET /projects/bob%2Fsecret", "").Code).To(Equal(404))
			g.Expect(f.As("bob", "POST /projects", `{"name":"mine"}`).String()).To(Equal(notAvailable))
			g.Expect(f.As("root", "PUT /users/2", `{"username":"robert"}`).Code).To(Equal(200))
			g.Expect(f.Client.Get(t.Context(), namespace.PersonalKey(anew, "home"), group)).To(Succeed())
			g.Expect(group.Spec.Path).To(Equal("bob"), "it is not renamed with somebody else")
			g.Expect(f.As("root", "PUT /users/2", `{"username":"bob"}`).String()).To(ContainSubstring("has already been taken"))
		})
	}
}

func TestGroupsAndProjects_areNotServedWithoutTheirPath(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	public := v1alpha1.VisibilityPublic
	rival, below := Group("bolt", "acme", 11, "", public), Group("bolt", "below", 12, "acme", public)
	site := Project("acme", "site", 20, "acme", public)
	taken := Project("acme", "taken", 21, "acme", public)
	taken.Spec.Path = "site"
	for i, o := range []client.Object{Group("acme", "acme", 10, "", public), rival, below, site, taken} {
		o.SetCreationTimestamp(metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC)})
		g.Expect(f.Client.Create(t.Context(), o)).To(Succeed())
	}
	for request, want := range map[string]int{
		"GET /groups/10": 200, "GET /groups/11": 404, "GET /groups/12": 404, "GET /projects/20": 200, "GET /projects/21": 404,
	} {
		g.Expect(f.As("root", request, "").Code).To(Equal(want), request)
	}
}

func TestPersonalProject_leavesNoGroupIfPathIsTaken(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	// A group that held the path before the user was created keeps it.
	group := Group("acme", "max", 10, "", v1alpha1.VisibilityPublic)
	g.Expect(f.Client.Create(t.Context(), group)).To(Succeed())
	hold(t, f, client.ObjectKeyFromObject(group))
	g.Expect(f.As("max", "POST /projects", `{"name":"mine"}`).String()).To(Equal(notAvailable))
	var all v1alpha1.GroupList
	g.Expect(f.Client.List(t.Context(), &all)).To(Succeed())
	g.Expect(all.Items).To(HaveExactElements(HaveField("Name", "max")))
}

func TestPersonalProject_getsPathThatAnotherTenantOnlyDeclared(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	g.Expect(f.Client.Create(t.Context(), Group("acme", "max", 10, "", v1alpha1.VisibilityPublic))).To(Succeed())
	g.Expect(f.As("max", "POST /projects", `{"name":"mine"}`).Code).To(Equal(201))
	g.Expect(f.As("max", "GET /projects/max%2Fmine", "").Code).To(Equal(200))
}

// hold gives a root group its path, as its controller does.
func hold(t *testing.T, f *Forge, key client.ObjectKey) {
	t.Helper()
	g := NewWithT(t)
	var group v1alpha1.Group
	g.Expect(f.Client.Get(t.Context(), key, &group)).To(Succeed())
	group.Status.Claims = []string{claim.Path("", group.Spec.Path).String()}
	g.Expect(f.Client.Status().Update(t.Context(), &group)).To(Succeed())
}

func TestUsernamesAndRootPaths_areUniqueTogether(t *testing.T) {
	const path, username = `400 {"message":{"path":["has already been taken"]}}`, `409 {"message":"Username has already been taken"}`
	g := NewWithT(t)
	f := newForge(t)
	g.Expect(f.As("bob", "POST /groups", `{"name":"Acme","path":"acme"}`).Code).To(Equal(201))
	g.Expect(f.As("max", "POST /projects", `{"name":"mine"}`).Code).To(Equal(201))
	for _, tt := range []struct{ who, request, body, want string }{
		{"bob", "POST /groups", `{"name":"x","path":"MAX"}`, path},
		{"bob", "POST /groups", `{"name":"x","path":"root"}`, path},
		{"bob", "POST /groups", `{"name":"x","path":"bob"}`, path},
		{"bob", "PUT /groups/acme", `{"path":"root"}`, path},
		{"root", "POST /users", `{"email":"x@forge.example","name":"x","username":"Acme"}`, username},
		{"root", "PUT /users/2", `{"username":"acme"}`, username},
	} {
		g.Expect(f.As(tt.who, tt.request, tt.body).String()).To(Equal(tt.want), tt.request+" "+tt.body)
	}
	g.Expect(f.As("root", "PUT /users/3", `{"username":"Max","name":"Max M."}`).Code).To(Equal(200), "his own group is in nobody's way")
	at := f.As("bob", "GET /namespaces/acme", "")
	below := fmt.Sprintf(`{"name":"x","path":"max","parent_id":%d}`, Decode[entity.Namespace](t, at).ID)
	g.Expect(f.As("bob", "POST /groups", below).Code).To(Equal(201), "below a group there are no users")
}

func TestPersonalProjects_moveWithUsername(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	g.Expect(f.As("max", "POST /projects", `{"name":"mine"}`).Code).To(Equal(201))
	g.Expect(f.As("root", "PUT /users/3", `{"username":"moritz"}`).Code).To(Equal(200))
	g.Expect(f.As("max", "GET /projects/moritz%2Fmine", "").Code).To(Equal(200))
	g.Expect(f.As("max", "GET /projects/max%2Fmine", "").Code).To(Equal(404))
	g.Expect(f.As("max", "POST /projects", `{"name":"more"}`).Body).To(ContainSubstring(`"moritz/more"`))
	g.Expect(f.As("root", "POST /users", `{"email":"x@forge.example","name":"x","username":"max"}`).Code).To(Equal(201))
}

func TestPersonalNamespace_isNotServedAsGroup(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	made := Decode[projects.Project](t, f.As("max", "POST /projects", `{"name":"mine","visibility":"public"}`))
	const notFound = `404 {"message":"404 Group Not Found"}`
	at := made.Namespace.ID
	for _, id := range []string{"max", fmt.Sprint(at)} {
		for _, request := range []string{"GET /groups/", "PUT /groups/", "DELETE /groups/"} {
			for _, who := range []string{"root", "max", "bob"} {
				g.Expect(f.As(who, request+id, `{"path":"free"}`).String()).To(Equal(notFound), request+id+" by "+who)
			}
		}
		for _, list := range []string{"/subgroups", "/projects"} {
			g.Expect(f.As("", "GET /groups/"+id+list, "").String()).To(Equal(notFound))
		}
		g.Expect(f.As("max", "GET /namespaces/"+id, "").Code).To(Equal(200))
	}
	g.Expect(f.As("max", "POST /groups", fmt.Sprintf(`{"name":"x","path":"x","parent_id":%d}`, at)).String()).To(Equal(notFound))
	in := fmt.Sprintf(`{"name":"more","namespace_id":%d}`, at)
	g.Expect(f.As("max", "POST /projects", in).Body).To(ContainSubstring(`"max/more"`))
	g.Expect(f.As("bob", "POST /projects", in).Code).To(Equal(403))
}

func TestReservedNames_areRefused(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	acme := Decode[groups.Group](t, f.As("bob", "POST /groups", `{"name":"Acme","path":"acme"}`))
	for _, name := range []string{"api", "API", "v2", "jwt", "-"} {
		for _, tt := range []struct{ request, body, attribute string }{
			{"POST /groups", `{"name":"x","path":%q}`, "path"},
			{"PUT /groups/acme", `{"path":%q}`, "path"},
			{"POST /users", `{"name":"x","email":"x@forge.example","username":%q}`, "username"},
			{"PUT /users/2", `{"username":%q}`, "username"},
		} {
			want := fmt.Sprintf(`400 {"message":{%q:["is a reserved name"]}}`, tt.attribute)
			g.Expect(f.As("root", tt.request, fmt.Sprintf(tt.body, name)).String()).To(Equal(want), tt.request+" "+name)
		}
	}
	for _, name := range []string{"api", "v2", "jwt"} {
		below := fmt.Sprintf(`{"name":"x","path":%q,"parent_id":%d}`, name, acme.ID)
		g.Expect(f.As("bob", "POST /groups", below).Code).To(Equal(201), "below a group it leads nowhere else")
	}
}

func TestPersonalProject_isRefusedForReservedUsername(t *testing.T) {
	g := NewWithT(t)
	f := New(t, User("api", 2))
	f.Keep(Repositories(t, f.Catalog))
	f.Serve(projects.New(f.Kit).Table())
	g.Expect(f.As("api", "POST /projects", `{"name":"v4"}`).String()).To(
		Equal(`400 {"message":{"namespace":["is not available: the username is a reserved name"]}}`))
}
