package namespace_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/apiserver/v4/accesstokens"
	. "github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/groups"
	"github.com/forgeplane/forgeplane/apiserver/v4/members"
	"github.com/forgeplane/forgeplane/apiserver/v4/projects"
	"github.com/forgeplane/forgeplane/apiserver/v4/protectedbranches"
	"github.com/forgeplane/forgeplane/apiserver/v4/remotemirrors"
	"github.com/forgeplane/forgeplane/apiserver/v4/triggertokens"
	"github.com/forgeplane/forgeplane/apiserver/v4/users"
	"github.com/forgeplane/forgeplane/internal/declare"
	"github.com/forgeplane/forgeplane/internal/egress"
	"github.com/forgeplane/forgeplane/internal/quota"
)

// newBounded returns a forge with quotas.
func newBounded(t *testing.T, l quota.Limits) *Forge {
	t.Helper()
	f := New(t, User("root", 1, Admin), User("bob", 2), User("max", 3),
		Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic), InGroup("acme", "acme", "bob", v1alpha1.RoleOwner),
		Project("acme", "app", 11, "acme", v1alpha1.VisibilityPublic))
	anywhere, err := egress.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	f.Targets, f.Quotas = anywhere, l
	f.Writer = store.NewBackend(declare.NewWriter(f.Client, f.Client, f.IDs).Within(quota.New(f.Catalog, f.Clock, l, "home")), f.Catalog, "")
	f.Keep(Repositories(t, f.Catalog))
	return f.Serve(
		groups.New(f.Kit).Table(),
		projects.New(f.Kit).Table(),
		users.New(f.Kit).Table(),
		accesstokens.New(f.Kit).Table(),
		members.New(f.Kit).Table(),
		triggertokens.New(f.Kit).Table(),
		remotemirrors.New(f.Kit).Table(),
		protectedbranches.New(f.Kit).Table(),
	)
}

func tooMany(whose string, number int, what string) string {
	return fmt.Sprintf(`403 {"message":"403 Forbidden - %s has %d of %d %s. Remove some that are no longer needed, or ask an administrator for a higher limit."}`,
		whose, number, number, what)
}

func TestQuotas_limitObjectsOfUser(t *testing.T) {
	g := NewWithT(t)
	f := newBounded(t, quota.Limits{Projects: 2, Groups: 2, Tokens: 3})
	for i := range 2 {
		g.Expect(f.As("bob", "POST /projects", fmt.Sprintf(`{"name":"p%d"}`, i)).Code).To(Equal(201))
	}
	g.Expect(f.As("bob", "POST /projects", `{"name":"p2"}`).String()).To(Equal(tooMany("The user bob", 2, "projects")))
	g.Expect(f.As("bob", "POST /projects", `{"name":"in-a-namespace-with-its-own-quota","namespace_id":10}`).Code).To(Equal(201))
	g.Expect(f.As("max", "POST /projects", `{"name":"p0"}`).Code).To(Equal(201), "each user has their own limits")
	g.Expect(f.As("bob", "DELETE /projects/bob%2Fp0", "").Code).To(Equal(202))
	g.Expect(f.As("bob", "POST /projects", `{"name":"p2"}`).Code).To(Equal(201), "there is room again")

	g.Expect(f.As("bob", "POST /groups", `{"name":"g0","path":"g0"}`).Code).To(Equal(201))
	id := Decode[struct{ ID int64 }](t, f.As("bob", "GET /groups/g0", "")).ID
	g.Expect(f.As("bob", "POST /groups", fmt.Sprintf(`{"name":"g1","path":"g1","parent_id":%d}`, id)).Code).To(Equal(201))
	g.Expect(f.As("bob", "POST /groups", `{"name":"g2","path":"g2"}`).String()).To(Equal(tooMany("The user bob", 2, "groups")))

	// Bob already has one token, with which this test makes requests.
	for i := range 2 {
		g.Expect(f.As("root", "POST /users/2/personal_access_tokens", fmt.Sprintf(`{"name":"t%d","scopes":["api"]}`, i)).Code).To(Equal(201))
	}
	const create = `{"name":"one more","scopes":["api"]}`
	g.Expect(f.As("root", "POST /users/2/personal_access_tokens", create).String()).To(Equal(tooMany("The user bob", 3, "personal access tokens")))
	list := Decode[[]struct {
		ID   int64
		Name string
	}](t, f.As("bob", "GET /personal_access_tokens", ""))
	var first int64
	for _, token := range list {
		if token.Name == "t0" {
			first = token.ID
		}
	}
	rotated := f.As("bob", fmt.Sprintf("POST /personal_access_tokens/%d/rotate", first), "")
	g.Expect(rotated.Code).To(BeElementOf(200, 201), "a successor takes the place of another one: "+rotated.String())
	g.Expect(f.As("root", "POST /users/2/personal_access_tokens", create).Code).To(Equal(403))
	second := Decode[struct{ ID int64 }](t, rotated).ID
	g.Expect(f.As("bob", fmt.Sprintf("DELETE /personal_access_tokens/%d", second), "").Code).To(Equal(204))
	g.Expect(f.As("root", "POST /users/2/personal_access_tokens", create).Code).To(Equal(201), "what is revoked does not count")
}

func TestQuotas_canDifferForUser(t *testing.T) {
	g := NewWithT(t)
	f := newBounded(t, quota.Limits{Projects: 1})
	shown := func(who, request string) (limit int, may bool) {
		u := Decode[struct {
			Limit int  `json:"projects_limit"`
			May   bool `json:"can_create_project"`
		}](t, f.As(who, request, ""))
		return u.Limit, u.May
	}
	limit, may := shown("bob", "GET /user")
	g.Expect([]any{limit, may}).To(Equal([]any{1, true}))
	g.Expect(f.As("root", "PUT /users/2", `{"projects_limit":0}`).Code).To(Equal(200))
	limit, may = shown("bob", "GET /user")
	g.Expect([]any{limit, may}).To(Equal([]any{0, false}))
	g.Expect(f.As("bob", "POST /projects", `{"name":"p"}`).String()).To(Equal(tooMany("The user bob", 0, "projects")))
	g.Expect(f.As("root", "PUT /users/2", `{"projects_limit":2}`).Code).To(Equal(200))
	for i := range 2 {
		g.Expect(f.As("bob", "POST /projects", fmt.Sprintf(`{"name":"p%d"}`, i)).Code).To(Equal(201))
	}
	g.Expect(f.As("bob", "POST /projects", `{"name":"p2"}`).Code).To(Equal(403))
	for _, wrong := range []string{"-1", "1000001"} {
		g.Expect(f.As("root", "PUT /users/2", `{"projects_limit":`+wrong+`}`).String()).To(Equal(`400 {"message":{"projects_limit":["must be 0 to 1000000"]}}`))
	}
	g.Expect(f.As("root", "PUT /users/2", `{"projects_limit":null}`).Code).To(Equal(200))
	limit, _ = shown("root", "GET /users/2")
	g.Expect(limit).To(Equal(1))
	made := f.As("root", "POST /users", `{"email":"new@forge.example","name":"New","username":"new","projects_limit":7}`)
	g.Expect(made.String()).To(ContainSubstring(`"projects_limit":7`))
	u, err := f.Catalog.UserByUsername(t.Context(), "new")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(u.Spec.ProjectsLimit).To(Equal(ptr.To[int32](7)))
}

func TestQuotas_limitSettingsOfProject(t *testing.T) {
	g := NewWithT(t)
	f := newBounded(t, quota.Limits{Settings: 1})
	g.Expect(f.As("bob", "POST /projects/11/members", `{"user_id":3,"access_level":10}`).Code).To(Equal(201))
	g.Expect(f.As("bob", "POST /projects/11/members", `{"user_id":1,"access_level":10}`).String()).To(Equal(tooMany("The project app", 1, "members")))
}

// A request can create several objects. Whichever of them exceeds a limit, the client reads which limit that is, and the other objects are
// deleted again.
func TestResourceQuota_isNamedInRefusal(t *testing.T) {
	for _, tt := range []struct{ refused, request, body string }{
		{"Group", "POST /groups", `{"name":"G","path":"g"}`},
		{"Membership", "POST /groups", `{"name":"G","path":"g"}`},
		{"Group", "POST /projects", `{"name":"P"}`},
		{"Project", "POST /projects", `{"name":"P","namespace_id":10}`},
		{"Membership", "POST /projects/11/members", `{"user_id":3,"access_level":10}`},
		{"TriggerToken", "POST /projects/11/triggers", `{"description":"T"}`},
		{"Secret", "POST /projects/11/triggers", `{"description":"T"}`},
		{"RemoteMirror", "POST /projects/11/remote_mirrors", `{"url":"https://ann:secret@example.com/x.git"}`},
		{"Secret", "POST /projects/11/remote_mirrors", `{"url":"https://ann:secret@example.com/x.git"}`},
		{"ProtectedBranch", "POST /projects/11/protected_branches", `{"name":"main"}`},
		{"AccessToken", "POST /users/2/personal_access_tokens", `{"name":"T","scopes":["api"]}`},
	} {
		t.Run(tt.refused+" of "+tt.request, func(t *testing.T) {
			g := NewWithT(t)
			f := newBounded(t, quota.Limits{})
			before := objects(t, f)
			full := "exceeded quota: few, requested: count/" + tt.refused + "=1, used: count/" + tt.refused + "=9, limited: count/" + tt.refused + "=9"
			f.Before = func(verb string, o client.Object) error {
				if verb == "create" && reflect.TypeOf(o).Elem().Name() == tt.refused {
					return apierrors.NewForbidden(schema.GroupResource{Resource: tt.refused}, o.GetName(), errors.New(full))
				}
				return nil
			}
			user := "bob"
			if strings.Contains(tt.request, "/users/") {
				user = "root"
			}
			g.Expect(f.As(user, tt.request, tt.body).String()).To(Equal(
				`403 {"message":"403 Forbidden - The ResourceQuota of the Kubernetes namespace does not allow more: ` + full + `"}`))
			g.Expect(objects(t, f)).To(Equal(before))
		})
	}

	// The group of a user's personal projects remains usable after a refused request, even though it is empty.
	g := NewWithT(t)
	f := newBounded(t, quota.Limits{})
	f.Before = func(verb string, o client.Object) error {
		if _, ok := o.(*v1alpha1.Membership); ok && verb == "create" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "memberships"}, o.GetName(), errors.New("exceeded quota: few, limited: count/memberships=9"))
		}
		return nil
	}
	g.Expect(f.As("bob", "POST /projects", `{"name":"P"}`).String()).To(Equal(
		`403 {"message":"403 Forbidden - The ResourceQuota of the Kubernetes namespace does not allow more: exceeded quota: few, limited: count/memberships=9"}`))
	f.Before = nil
	g.Expect(f.As("bob", "POST /projects", `{"name":"P"}`).Code).To(Equal(201))
}

// objects returns all objects, by kind and name.
func objects(t *testing.T, f *Forge) (all []string) {
	t.Helper()
	for _, l := range []client.ObjectList{
		&v1alpha1.GroupList{}, &v1alpha1.ProjectList{}, &v1alpha1.MembershipList{}, &v1alpha1.TriggerTokenList{}, &v1alpha1.RemoteMirrorList{},
		&v1alpha1.ProtectedBranchList{}, &v1alpha1.AccessTokenList{}, &corev1.SecretList{},
	} {
		if err := f.Client.List(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		_ = meta.EachListItem(l, func(o runtime.Object) error {
			all = append(all, fmt.Sprintf("%T %s", o, client.ObjectKeyFromObject(o.(client.Object))))
			return nil
		})
	}
	return all
}

func TestQuotas_limitConcurrentRequests(t *testing.T) {
	f := newBounded(t, quota.Limits{Projects: 5})
	if first := f.As("bob", "POST /projects", `{"name":"first"}`); first.Code != 201 {
		t.Fatal(first)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	codes := map[int]int{}
	for i := range 20 {
		all.Go(func() {
			r := httptest.NewRequest("POST", "/projects", strings.NewReader(fmt.Sprintf(`{"name":"p%d"}`, i)))
			r.Header.Set("PRIVATE-TOKEN", Value("bob"))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			f.ServeHTTP(w, r)
			mu.Lock()
			defer mu.Unlock()
			codes[w.Code]++
		})
	}
	all.Wait()
	if codes[201] != 4 || codes[403] != 16 {
		t.Errorf("got %v, want 4 more projects", codes)
	}
}
