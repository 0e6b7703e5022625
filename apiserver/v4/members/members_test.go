package members_test

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	. "github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/members"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// newForge returns a forge with the groups acme (10, public) and acme/core (11) and the projects acme/core/web (20) and
// acme/core/secret (21, private). Olga is an Owner of acme, mary a Maintainer of core, dora a Developer of web and gus a Guest of acme.
// Otto has no role.
func newForge(t *testing.T, more ...client.Object) *Forge {
	t.Helper()
	f := New(t, append([]client.Object{
		User("root", 1, Admin), User("mary", 2), User("dora", 3), User("otto", 4), User("olga", 5), User("gus", 6),
		Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic), Group("acme", "core", 11, "acme", v1alpha1.VisibilityPublic),
		Project("acme", "web", 20, "core", v1alpha1.VisibilityPublic), Project("acme", "secret", 21, "core", v1alpha1.VisibilityPrivate),
		InGroup("acme", "acme", "olga", v1alpha1.RoleOwner), InGroup("acme", "acme", "gus", v1alpha1.RoleGuest),
		InGroup("acme", "core", "mary", v1alpha1.RoleMaintainer), InProject("acme", "web", "dora", v1alpha1.RoleDeveloper),
	}, more...)...)
	return f.Serve(members.New(f.Kit).Table())
}

func TestAddMembers_addsSeveralAtOnce(t *testing.T) {
	const success = `201 {"status":"success"}`
	many := strings.TrimSuffix(strings.Repeat("4,", 101), ",")
	tests := []struct{ body, want, members string }{
		{`{"user_id":"4,6","access_level":30}`, success, "dora 30, otto 30, gus 30"},
		{`{"user_id":[4,6],"access_level":30}`, success, "dora 30, otto 30, gus 30"},
		{`{"username":"otto, gus","access_level":30}`, success, "dora 30, otto 30, gus 30"},
		{`{"user_id":"4,3,99","access_level":30}`, `201 {"status":"error","message":{"99":"404 User Not Found","dora":"Member already exists"}}`, "dora 30, otto 30"},
		{`{"user_id":"3,99","access_level":30}`, `409 {"message":"Member already exists"}`, "dora 30"},
		{`{"user_id":"4,6","access_level":50}`, `403 {"message":"403 Forbidden"}`, "dora 30"},
		{`{"user_id":"4,x","access_level":30}`, `400 {"error":"user_id is invalid"}`, "dora 30"},
		{`{"user_id":"4,6","username":"otto","access_level":30}`, `400 {"error":"user_id, username are mutually exclusive"}`, "dora 30"},
		{`{"user_id":[],"access_level":30}`, `404 {"message":"404 User Not Found"}`, "dora 30"},
		{`{"user_id":"` + many + `","access_level":30}`, `400 {"message":"400 Bad request - Too many users specified (limit is 100)"}`, "dora 30"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%.60s", tt.body), func(t *testing.T) {
			f := newForge(t)
			if got := f.As("mary", "POST /projects/20/members", tt.body); got.String() != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if got := names(t, f.As("mary", "GET /projects/20/members", "")); got != tt.members {
				t.Errorf("then the members are %s, want %s", got, tt.members)
			}
		})
	}
}

func TestAllMembers_includeThoseOfVisibleSharedGroups(t *testing.T) {
	pool := Project("acme", "pool", 22, "core", v1alpha1.VisibilityPublic)
	pool.Spec.SharedWith = []v1alpha1.Share{
		{GroupRef: v1alpha1.Reference{Path: "bolt"}, Role: v1alpha1.RoleReporter}, {GroupRef: v1alpha1.Reference{Path: "dark"}, Role: v1alpha1.RoleOwner},
	}
	f := newForge(t, pool, InProject("acme", "pool", "dora", v1alpha1.RoleDeveloper), Group("bolt", "bolt", 30, "", v1alpha1.VisibilityPublic), Group("bolt", "dark", 31, "", v1alpha1.VisibilityPrivate),
		InGroup("bolt", "bolt", "otto", v1alpha1.RoleMaintainer), InGroup("bolt", "bolt", "dora", v1alpha1.RoleMaintainer),
		InGroup("bolt", "bolt", "gus", v1alpha1.RoleOwner), InGroup("bolt", "dark", "dora", v1alpha1.RoleMaintainer))
	const seen, hidden = "mary 40, dora 30, otto 20, olga 50, gus 20", "mary 40, dora 40, otto 20, olga 50, gus 20"
	for who, want := range map[string]string{"": seen, "olga": seen, "dora": hidden, "root": hidden} {
		if got := names(t, f.As(who, "GET /projects/22/members/all", "")); got != want {
			t.Errorf("%q: got %s, want %s", who, got, want)
		}
	}
	if got := names(t, f.As("root", "GET /projects/22/members", "")); got != "dora 30" {
		t.Errorf("the direct members are %s", got)
	}
	if got := Decode[row](t, f.As("olga", "GET /projects/22/members/all/4", "")); got.AccessLevel != 20 {
		t.Errorf("got %+v", got)
	}
	if got := f.As("olga", "PUT /projects/22/members/4", `{"access_level":30}`); got.Code != http.StatusNotFound {
		t.Errorf("a member of a group is changed as a member of the project: %s", got)
	}
}

// row has the fields of an answer that the tests check.
type row struct {
	ID          int64   `json:"id"`
	Username    string  `json:"username"`
	AccessLevel int     `json:"access_level"`
	ExpiresAt   *string `json:"expires_at"`
}

func names(t *testing.T, a Answer) string {
	t.Helper()
	var all []string
	for _, r := range Decode[[]row](t, a) {
		all = append(all, fmt.Sprintf("%s %d", r.Username, r.AccessLevel))
	}
	return strings.Join(all, ", ")
}

func TestListMembers_showsDirectAndInheritedMembers(t *testing.T) {
	ended := InProject("acme", "web", "otto", v1alpha1.RoleOwner)
	ended.Spec.ExpiresAt = &metav1.Time{Time: time.Date(2026, 6, 15, 0, 0, 0, 0, time.UTC)}
	more := InProject("acme", "web", "olga", v1alpha1.RoleGuest)
	gone := InProject("acme", "web", "nobody", v1alpha1.RoleOwner)
	foreign := InProject("elsewhere", "web", "otto", v1alpha1.RoleOwner)
	foreign.Spec.ProjectRef = &v1alpha1.Reference{Path: "acme/core/web"}
	second := InProject("acme", "web", "dora", v1alpha1.RoleOwner)
	second.Name = "younger"
	f := newForge(t, ended, more, gone, foreign, second)
	tests := map[string]string{
		"GET /projects/20/members":                            "dora 30, olga 10",
		"GET /projects/20/members/all":                        "mary 40, dora 30, olga 50, gus 10",
		"GET /projects/20/members/all?query=OL":               "olga 50",
		"GET /projects/20/members/all?user_ids[]=2":           "mary 40",
		"GET /projects/20/members/all?user_ids=2,6":           "mary 40, gus 10",
		"GET /projects/20/members/all?per_page=1&page=2":      "dora 30",
		"GET /groups/11/members":                              "mary 40",
		"GET /groups/11/members/all":                          "mary 40, olga 50, gus 10",
		"GET /groups/acme/members/all":                        "olga 50, gus 10",
		"GET /projects/acme%2Fcore%2Fsecret/members":          "",
		"GET /projects/acme%2Fcore%2Fsecret/members/all?page": "mary 40, olga 50, gus 10",
	}
	for request, want := range tests {
		t.Run(request, func(t *testing.T) {
			if got := names(t, f.As("root", request, "")); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
	NewWithT(t).Expect(f.As("root", "GET /projects/20/members/3", "").Body).To(MatchJSON(`{"id":3,"username":"dora","name":"dora",
		"state":"active","avatar_url":null,"web_url":"https://forge.example/dora","access_level":30,
		"created_at":"2026-01-01T00:00:14.000Z","created_by":null,"expires_at":null,"membership_state":"active"}`))
	for request, want := range map[string]int{
		"GET /projects/20/members/5": 200, "GET /projects/20/members/2": 404, "GET /projects/20/members/all/2": 200,
		"GET /projects/20/members/4": 404, "GET /projects/20/members/all/4": 404, "GET /groups/11/members/all/5": 200,
	} {
		if got := f.As("", request, ""); got.Code != want {
			t.Errorf("%s: got %s, want %d", request, got, want)
		}
	}
}

func TestMember_isStoredAsAnObject(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	made := Decode[row](t, f.As("mary", "POST /projects/20/members", `{"username":"OTTO","access_level":20,"expires_at":"2026-07-01"}`))
	g.Expect(made).To(And(HaveField("ID", int64(4)), HaveField("AccessLevel", 20), HaveField("ExpiresAt", HaveValue(Equal("2026-07-01")))))
	m := stored(t, f, "otto")
	g.Expect(m.Spec).To(Equal(v1alpha1.MembershipSpec{
		UserRef: f.Refer(&v1alpha1.User{}, "otto"), ProjectRef: ptr.To(f.Named(&v1alpha1.Project{}, "acme/web")), Role: v1alpha1.RoleReporter,
		ExpiresAt: m.Spec.ExpiresAt,
	}))
	g.Expect(m.Spec.ExpiresAt.UTC()).To(Equal(time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)))

	g.Expect(f.As("mary", "PUT /projects/20/members/4", `{"access_level":30}`).Code).To(Equal(200))
	g.Expect(stored(t, f, "otto").Spec).To(And(HaveField("Role", v1alpha1.RoleDeveloper), HaveField("ExpiresAt", Not(BeNil()))))
	g.Expect(f.As("mary", "PUT /projects/20/members/4", `{"access_level":30,"expires_at":null}`).Code).To(Equal(200))
	g.Expect(stored(t, f, "otto").Spec.ExpiresAt).To(BeNil())

	g.Expect(f.As("mary", "DELETE /projects/20/members/4", "").String()).To(Equal("204"))
	g.Expect(f.As("mary", "GET /projects/20/members/4", "").Code).To(Equal(404))
}

func TestAddMember_renewsAnExpiredMembership(t *testing.T) {
	g := NewWithT(t)
	ended := InProject("acme", "web", "otto", v1alpha1.RoleOwner)
	ended.Spec.ExpiresAt = &metav1.Time{Time: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)}
	f := newForge(t, ended)
	g.Expect(f.As("olga", "POST /projects/20/members", `{"user_id":4,"access_level":10}`).Code).To(Equal(201))
	g.Expect(stored(t, f, "otto")).To(And(HaveField("Name", ended.Name), HaveField("Spec.Role", v1alpha1.RoleGuest), HaveField("Spec.ExpiresAt", BeNil())))
}

// stored returns the membership of a user in web.
func stored(t *testing.T, f *Forge, username string) *v1alpha1.Membership {
	t.Helper()
	u, err := f.Catalog.UserByUsername(t.Context(), username)
	if err != nil {
		t.Fatal(err)
	}
	p, err := catalog.ByID[*v1alpha1.Project](t.Context(), f.Catalog, 20)
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.Catalog.ProjectScope(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	m, err := f.Catalog.MembershipIn(t.Context(), u, s)
	if err != nil || m == nil {
		t.Fatalf("no membership: %v", err)
	}
	return m
}

func TestInvalidRequests_areRefusedWithAReason(t *testing.T) {
	const add = "POST /projects/20/members"
	owner := InProject("acme", "web", "otto", v1alpha1.RoleOwner)
	tests := []struct{ who, request, body, want string }{
		{"olga", add, `{"user_id":4}`, `400 {"error":"access_level is missing"}`},
		{"olga", add, `{"access_level":10}`, `400 {"error":"user_id, username are missing, at least one parameter must be provided"}`},
		{"olga", add, `{"access_level":10,"user_id":4,"username":"otto"}`, `400 {"error":"user_id, username are mutually exclusive"}`},
		{"olga", add, `{"access_level":10,"user_id":99}`, `404 {"message":"404 User Not Found"}`},
		{"olga", add, `{"access_level":10,"username":"nobody"}`, `404 {"message":"404 User Not Found"}`},
		{"olga", add, `{"access_level":10,"user_id":3}`, `409 {"message":"Member already exists"}`},
		{"olga", add, `{"access_level":99,"user_id":6}`, `400 {"message":{"access_level":["is not included in the list"]}}`},
		{"olga", add, `{"access_level":0,"user_id":6}`, `400 {"message":{"access_level":["is not included in the list"]}}`},
		{"olga", add, `{"access_level":20,"user_id":2}`,
			`400 {"message":{"access_level":["should be greater than or equal to Maintainer inherited membership from group core"]}}`},
		{"olga", add, `{"access_level":20,"user_id":6,"expires_at":"2026-06-15"}`,
			`400 {"message":{"expires_at":["cannot be a date in the past"]}}`},
		{"olga", add, `{"access_level":20,"user_id":6,"expires_at":"soon"}`, `400 {"error":"expires_at is invalid"}`},
		{"olga", "PUT /projects/20/members/3", `{}`, `400 {"error":"access_level is missing"}`},
		{"olga", "PUT /projects/20/members/2", `{"access_level":40}`, `404 {"message":"404 Not found"}`},
		{"olga", "DELETE /projects/20/members/2", ``, `404 {"message":"404 Not found"}`},
		{"olga", "GET /projects/20/members/x", ``, `400 {"error":"user_id is invalid"}`},
		{"mary", "PUT /projects/20/members/4", `{"access_level":10}`, `403 {"message":"403 Forbidden"}`},
		{"mary", "DELETE /projects/20/members/4", ``, `403 {"message":"403 Forbidden"}`},
		{"olga", "PUT /groups/10/members/5", `{"access_level":10}`, `403 {"message":"403 Forbidden"}`},
		{"olga", "GET /groups/99/members", ``, `404 {"message":"404 Group Not Found"}`},
	}
	for _, tt := range tests {
		t.Run(tt.request+" "+tt.body, func(t *testing.T) {
			f := newForge(t, owner.DeepCopy())
			if got := f.As(tt.who, tt.request, tt.body).String(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestLastOwner_cannotLeaveTheGroup(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	g.Expect(f.As("olga", "DELETE /groups/10/members/5", "").Code).To(Equal(403))
	g.Expect(f.As("olga", "POST /groups/10/members", `{"user_id":4,"access_level":50}`).Code).To(Equal(201))
	g.Expect(f.As("olga", "DELETE /groups/10/members/5", "").Code).To(Equal(204), "there is another one")
	g.Expect(f.As("otto", "DELETE /groups/10/members/4", "").Code).To(Equal(403))
	g.Expect(f.As("root", "DELETE /groups/10/members/4", "").Code).To(Equal(204), "an administrator is still there")
}

func TestRemoveMember_removesMembershipsBelow(t *testing.T) {
	fixed := Project("acme", "fixed", 22, "core", v1alpha1.VisibilityPublic)
	fixed.Spec.RESTWrites = v1alpha1.RESTWritesRefuse
	given := []client.Object{
		InGroup("acme", "core", "gus", v1alpha1.RoleReporter), InProject("acme", "web", "gus", v1alpha1.RoleDeveloper),
		Group("aside", "aside", 12, "", v1alpha1.VisibilityPublic), InGroup("aside", "aside", "gus", v1alpha1.RoleGuest),
	}
	refusing := append([]client.Object{fixed, InProject("acme", "fixed", "gus", v1alpha1.RoleOwner)}, given...)
	const gus, long, all = "DELETE /groups/10/members/6", "Mon, 01 Jan 2001 00:00:00 GMT", "acme Guest, aside Guest, core Reporter, web Developer"
	for name, tt := range map[string]struct {
		who, request, since string
		objects             []client.Object
		code                int
		left                string
	}{
		"by an owner":                    {"olga", gus, "", given, 204, "aside Guest"},
		"by the member":                  {"gus", gus, "", given, 204, "aside Guest"},
		"from a subgroup":                {"olga", "DELETE /groups/11/members/6", "", given, 204, "acme Guest, aside Guest"},
		"from a project":                 {"olga", "DELETE /projects/20/members/6", "", given, 204, "acme Guest, aside Guest, core Reporter"},
		"without subresources":           {"olga", gus + "?skip_subresources=true", "", given, 204, "aside Guest, core Reporter, web Developer"},
		"when a project refuses changes": {"olga", gus, "", refusing, 403, "acme Guest, aside Guest, core Reporter, fixed Owner, web Developer"},
		"when the precondition fails":    {"olga", gus, long, given, 412, all},
		"by a maintainer of a subgroup":  {"mary", gus, "", given, 403, all},
	} {
		t.Run(name, func(t *testing.T) {
			f := newForge(t, tt.objects...)
			f.Header = http.Header{}
			if tt.since != "" {
				f.Header.Set("If-Unmodified-Since", tt.since)
			}
			if got := f.As(tt.who, tt.request, ""); got.Code != tt.code {
				t.Errorf("got %s", got)
			}
			if has := membershipsOf(t, f, "gus"); has != tt.left {
				t.Errorf("he is left %s, want %s", has, tt.left)
			}
		})
	}
}

// membershipsOf returns the groups and projects of a user with the roles there, in alphabetical order.
func membershipsOf(t *testing.T, f *Forge, username string) string {
	t.Helper()
	var l v1alpha1.MembershipList
	if err := f.Client.List(t.Context(), &l); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range l.Items {
		if m.Spec.UserRef.Path == username {
			all = append(all, fmt.Sprintf("%s %s", cmp.Or(m.Spec.ProjectRef, m.Spec.GroupRef).Name, m.Spec.Role))
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func TestRESTWrites_canBeRefusedByAProject(t *testing.T) {
	p := Project("acme", "fixed", 22, "core", v1alpha1.VisibilityPublic)
	p.Spec.RESTWrites = v1alpha1.RESTWritesRefuse
	f := newForge(t, p, InProject("acme", "fixed", "dora", v1alpha1.RoleReporter))
	for request, body := range map[string]string{
		"POST /projects/22/members":     `{"user_id":4,"access_level":10}`,
		"PUT /projects/22/members/3":    `{"access_level":10}`,
		"DELETE /projects/22/members/3": ``,
	} {
		if got := f.As("olga", request, body); got.Code != 403 {
			t.Errorf("%s: got %s", request, got)
		}
	}
}

func TestAddMember_conflictsWhenAnotherReplicaWasFaster(t *testing.T) {
	f := newForge(t)
	f.Before = func(verb string, o client.Object) error {
		// The other replica was faster, and the cache does not show its membership yet.
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "memberships"}, o.GetName())
	}
	got := f.As("mary", "POST /projects/20/members", `{"user_id":4,"access_level":10}`).String()
	if got != `409 {"message":"Member already exists"}` {
		t.Errorf("got %s", got)
	}
}

func TestUpdateMember_isRefusedWhenTheMemberBecomesOwner(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	f.Before = func(verb string, o client.Object) error {
		f.Before = nil
		g.Expect(f.As("olga", "PUT /projects/20/members/3", `{"access_level":50}`).Code).To(Equal(200))
		return nil
	}
	g.Expect(f.As("mary", "PUT /projects/20/members/3", `{"access_level":10}`).String()).To(Equal(`403 {"message":"403 Forbidden"}`))
	g.Expect(stored(t, f, "dora").Spec.Role).To(Equal(v1alpha1.RoleOwner))
}

func TestListMembers_omitsUsersWithoutID(t *testing.T) {
	f := newForge(t, User("fresh", 0), InProject("acme", "web", "fresh", v1alpha1.RoleDeveloper))
	for _, path := range []string{"/members", "/members/all"} {
		if got := f.As("root", "GET /projects/20"+path, ""); strings.Contains(got.Body, "fresh") {
			t.Errorf("got %s", got)
		}
	}
}

func TestMembership_endsWhenItsUserIsRecreated(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	g.Expect(f.As("mary", "POST /projects/21/members", `{"user_id":4,"access_level":30}`).Code).To(Equal(201))
	g.Expect(f.As("otto", "GET /projects/21/members", "").Code).To(Equal(200))
	f.Recreate(&v1alpha1.User{}, "otto")
	g.Expect(f.As("otto", "GET /projects/21/members", "").Code).To(Equal(404))
	g.Expect(f.As("mary", "GET /projects/21/members/4", "").Code).To(Equal(404))
	g.Expect(f.As("mary", "POST /projects/21/members", `{"user_id":4,"access_level":10}`).Code).To(Equal(201), "the name of the former one's is not in the way")
	g.Expect(f.As("mary", "GET /projects/21/members/4", "").Body).To(ContainSubstring(`"access_level":10`))
}

func TestMembership_endsWhenProjectOrGroupIsRecreated(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	g.Expect(f.As("olga", "POST /projects/21/members", `{"user_id":4,"access_level":50}`).Code).To(Equal(201))
	g.Expect(f.As("olga", "POST /groups/11/members", `{"user_id":4,"access_level":50}`).Code).To(Equal(201))
	g.Expect(f.As("otto", "GET /projects/21/members", "").Code).To(Equal(200))
	var made v1alpha1.MembershipList
	g.Expect(f.Client.List(t.Context(), &made)).To(Succeed())
	for _, m := range made.Items {
		if m.Spec.UserRef.ID == 4 {
			g.Expect(m.OwnerReferences).To(HaveLen(1), "the garbage collector removes it when what it is of is gone")
		}
	}

	// The garbage collector has not deleted the memberships yet, and no controller has seen the new objects.
	f.Recreate(&v1alpha1.Project{}, "acme/secret")
	f.Recreate(&v1alpha1.Group{}, "acme/core")
	g.Expect(f.As("otto", "GET /projects/21/members", "").Code).To(Equal(404))
	g.Expect(f.As("olga", "GET /projects/21/members/all/4", "").Code).To(Equal(404))
	g.Expect(f.As("olga", "GET /groups/11/members/4", "").Code).To(Equal(404))
}
