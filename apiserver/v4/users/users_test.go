package users_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/namespace"
	. "github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/users"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/feature"
)

func newForge(t *testing.T) *Forge {
	t.Helper()
	named := func(name string) func(*v1alpha1.UserSpec) { return func(s *v1alpha1.UserSpec) { s.Name = name } }
	f := New(t,
		User("root", 1, Admin), User("ann", 2, named("Zoe Miller")), User("Bob", 3), User("cid", 4, Blocked),
		User("dev-bot", 5, func(s *v1alpha1.UserSpec) { s.Type = v1alpha1.UserBot }),
	)
	return f.Serve(users.New(f.Kit).Table())
}

func TestGetUser_showsMoreToAdministrators(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	const summary = `"id":3,"username":"Bob","name":"Bob","state":"active","avatar_url":null,"web_url":"https://forge.example/Bob"`
	const profile = `,"created_at":"2026-01-01T00:00:03.000Z","bio":"","location":"","public_email":"","website_url":"",
		"organization":"","bot":false`
	g.Expect(f.As("ann", "GET /users?username=bob", "").Body).To(MatchJSON("[{" + summary + "}]"))
	g.Expect(f.As("ann", "GET /users/3", "").Body).To(MatchJSON("{" + summary + profile + "}"))
	for _, request := range []string{"GET /users/3", "GET /users?username=bob"} {
		g.Expect(f.As("root", request, "").Body).To(And(ContainSubstring(`"email":"Bob@forge.example"`), ContainSubstring(`"is_admin":false`)))
	}
	g.Expect(f.As("ann", "GET /user", "").Body).To(And(ContainSubstring(`"email":"ann@forge.example"`), Not(ContainSubstring("is_admin"))))
	g.Expect(f.As("root", "GET /user", "").Body).To(ContainSubstring(`"is_admin":true`))
	const limits = `"shared_runners_minutes_limit":null,"extra_shared_runners_minutes_limit":null`
	g.Expect(f.As("ann", "GET /user", "").Body).To(ContainSubstring(limits))
	g.Expect(f.As("ann", "GET /users/3", "").Body).NotTo(ContainSubstring("minutes_limit"))
	g.Expect(f.As("ann", "GET /users/4", "").Body).To(ContainSubstring(`"state":"blocked"`))
}

// cluster makes every Kubernetes identity an administrator of the instance.
type cluster struct{}

func (cluster) Include(context.Context) (bool, error) { return true, nil }

func TestCurrentUser_isAdminForClusterAdministrators(t *testing.T) {
	f := New(t, User("ann", 2, func(s *v1alpha1.UserSpec) { s.Kubernetes = &v1alpha1.KubernetesIdentity{Username: "ann@cluster"} }))
	f.Guard = auth.NewGuard(auth.NewAuthenticator(f.Catalog, f.Clock, cluster{}), f.Catalog, nil)
	f.Serve(users.New(f.Kit).Table())
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequestWithContext(auth.WithIdentity(t.Context(), "ann@cluster"), http.MethodGet, "/user", http.NoBody))
	g := NewWithT(t)
	g.Expect(w.Body.String()).To(And(ContainSubstring(`"username":"ann"`), ContainSubstring(`"is_admin":true`)))
	g.Expect(f.As("ann", "GET /user", "").Body).NotTo(ContainSubstring("is_admin"), "her token is that of no administrator")
}

func TestListUsers_filtersAndSorts(t *testing.T) {
	f := newForge(t)
	tests := []struct{ who, query, want string }{
		{"ann", "", "dev-bot cid Bob ann root"},
		{"ann", "?order_by=username&sort=asc", "dev-bot cid Bob ann root"},
		{"root", "", "dev-bot cid Bob ann root"},
		{"root", "?sort=asc", "root ann Bob cid dev-bot"},
		{"root", "?order_by=username&sort=asc", "ann Bob cid dev-bot root"},
		{"root", "?order_by=name&sort=desc", "ann root dev-bot cid Bob"},
		{"root", "?order_by=created_at&sort=asc&per_page=2&page=2", "Bob cid"},
		{"ann", "?active=true", "dev-bot Bob ann root"},
		{"ann", "?active=false", "dev-bot cid Bob ann root"},
		{"ann", "?blocked=true", "cid"},
		{"ann", "?humans=true&active=true", "Bob ann root"},
		{"ann", "?exclude_humans=true", "dev-bot"},
		{"ann", "?search=MILL", "ann"},
		{"ann", "?search=bob", "Bob"},
		{"ann", "?search=bob@forge", ""},
		{"root", "?search=bob@forge", "Bob"},
		{"ann", "?username=BOB", "Bob"},
		{"ann", "?username=bo", ""},
		{"root", "?admins=true", "root"},
		{"ann", "?admins=true", "dev-bot cid Bob ann root"},
		{"root", "?created_after=2026-01-01T00:00:03Z", "dev-bot cid"},
		{"root", "?created_before=2026-01-01T00:00:02Z", "root"},
	}
	for _, tt := range tests {
		t.Run(tt.who+tt.query, func(t *testing.T) {
			var got []string
			for _, u := range Decode[[]struct{ Username string }](t, f.As(tt.who, "GET /users"+tt.query, "")) {
				got = append(got, u.Username)
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("got  %s\nwant %s", strings.Join(got, " "), tt.want)
			}
		})
	}
}

func TestUser_isStoredAsAnObject(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	made := Decode[struct{ ID int64 }](t, f.As("root", "POST /users",
		`{"email":"Eve@forge.example","name":"Eve","username":"Eve","admin":true,"password":"never kept"}`))
	u := stored(t, f, made.ID)
	g.Expect(u.Spec).To(Equal(v1alpha1.UserSpec{
		ID: made.ID, Username: "Eve", Name: "Eve", Email: "Eve@forge.example", Admin: true,
		Type: v1alpha1.UserPerson, State: v1alpha1.UserActive,
	}))
	g.Expect(u.Status.ID).To(Equal(made.ID), "the user can be used at once")

	at := fmt.Sprintf("/users/%d", made.ID)
	g.Expect(f.As("root", "PUT "+at, `{"name":"Eva","admin":false}`).Code).To(Equal(200))
	g.Expect(stored(t, f, made.ID).Spec).To(And(HaveField("Name", "Eva"), HaveField("Admin", false), HaveField("Username", "Eve")))

	g.Expect(f.As("root", "POST "+at+"/block", "").String()).To(Equal("201 true"))
	g.Expect(stored(t, f, made.ID).Spec.State).To(Equal(v1alpha1.UserBlocked))
	g.Expect(f.As("root", "POST "+at+"/block", "").Code).To(Equal(201), "once more changes nothing")
	g.Expect(f.As("root", "POST "+at+"/unblock", "").String()).To(Equal("201 true"))
	g.Expect(stored(t, f, made.ID).Spec.State).To(Equal(v1alpha1.UserActive))

	g.Expect(f.As("root", "DELETE "+at, "").String()).To(Equal("204"))
	g.Expect(f.As("root", "GET "+at, "").String()).To(Equal(`404 {"message":"404 User Not Found"}`))
}

func TestExternalAndAuditor_areSetAndShownByAdministrators(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	made := f.As("root", "POST /users", `{"email":"eve@forge.example","name":"Eve","username":"eve","external":true,"auditor":true}`)
	g.Expect(made.Code).To(Equal(201))
	g.Expect(made.Body).To(And(ContainSubstring(`"external":true`), ContainSubstring(`"is_auditor":true`),
		ContainSubstring(`"can_create_group":false`), ContainSubstring(`"can_create_project":false`), ContainSubstring(`"projects_limit":0`)))
	id := Decode[struct{ ID int64 }](t, made).ID
	g.Expect(stored(t, f, id).Spec).To(And(HaveField("External", true), HaveField("Auditor", true)))
	at := fmt.Sprintf("/users/%d", id)
	g.Expect(f.As("root", "GET /users?external=true", "").Body).To(And(ContainSubstring(`"username":"eve"`), Not(ContainSubstring(`"username":"ann"`))))
	g.Expect(f.As("ann", "GET "+at, "").Body).NotTo(Or(ContainSubstring("external"), ContainSubstring("is_auditor")))
	g.Expect(f.As("ann", "PUT "+at, `{"auditor":false}`).Code).To(Equal(403))
	changed := f.As("root", "PUT "+at, `{"external":false,"auditor":false}`)
	g.Expect(changed.Body).To(And(ContainSubstring(`"external":false`), ContainSubstring(`"is_auditor":false`), ContainSubstring(`"can_create_group":true`)))
	g.Expect(stored(t, f, id).Spec).To(And(HaveField("External", false), HaveField("Auditor", false)))
}

func TestBlockUser_takesEffectImmediately(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	g.Expect(f.As("Bob", "GET /user", "").Code).To(Equal(200))
	g.Expect(f.As("root", "POST /users/3/block", "").Code).To(Equal(201))
	g.Expect(f.As("Bob", "GET /user", "").String()).To(Equal(`403 {"message":"403 Forbidden - Your account has been blocked."}`))
	g.Expect(f.As("root", "POST /users/3/unblock", "").Code).To(Equal(201))
	g.Expect(f.As("Bob", "GET /user", "").Code).To(Equal(200))
}

// TestUserState_changesAsClientsExpect compares the answer of each change with the state of the user before it.
func TestUserState_changesAsClientsExpect(t *testing.T) {
	const (
		changed, unchanged, before = "201 true", "201 false", "201 null"
		cannot                     = `403 {"message":"403 Forbidden - A blocked user `
	)
	must := cannot + `must be unblocked to be activated"}`
	wants := map[v1alpha1.UserState]map[string]string{
		v1alpha1.UserActive: {
			"block": changed, "unblock": unchanged, "deactivate": changed, "activate": changed, "ban": changed,
			"unban": `403 {"message":"You cannot unban active users."}`,
		},
		v1alpha1.UserBlocked: {
			"block": before, "unblock": changed, "deactivate": cannot + `cannot be deactivated by the API"}`, "activate": must,
			"ban": `403 {"message":"You cannot ban blocked users."}`, "unban": `403 {"message":"You cannot unban blocked users."}`,
		},
		v1alpha1.UserDeactivated: {
			"block": changed, "unblock": `403 {"message":"403 Forbidden - Deactivated users cannot be unblocked by the API"}`,
			"deactivate": before, "activate": changed,
			"ban": `403 {"message":"You cannot ban deactivated users."}`, "unban": `403 {"message":"You cannot unban deactivated users."}`,
		},
		v1alpha1.UserBanned: {
			"block": before, "unblock": unchanged, "deactivate": cannot + `cannot be deactivated by the API"}`, "activate": must,
			"ban": `403 {"message":"You cannot ban banned users."}`, "unban": changed,
		},
	}
	becomes := map[string]v1alpha1.UserState{
		"block": v1alpha1.UserBlocked, "deactivate": v1alpha1.UserDeactivated, "ban": v1alpha1.UserBanned,
		"unblock": v1alpha1.UserActive, "activate": v1alpha1.UserActive, "unban": v1alpha1.UserActive,
	}
	for from, answers := range wants {
		for action, want := range answers {
			t.Run(string(from)+" "+action, func(t *testing.T) {
				f := New(t, User("root", 1, Admin), User("eve", 6, func(s *v1alpha1.UserSpec) { s.State = from }))
				f.Serve(users.New(f.Kit).Table())
				if got := f.As("root", "POST /users/6/"+action, "").String(); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
				is := from
				if want == changed {
					is = becomes[action]
				}
				state := strings.ToLower(string(is))
				if got := f.As("root", "GET /users/6", "").Body; !strings.Contains(got, `"state":"`+state+`"`) {
					t.Errorf("is not %s: %s", state, got)
				}
			})
		}
	}
}

func TestUser_isRefusedUnlessActive(t *testing.T) {
	const blocked = `403 {"message":"403 Forbidden - Your account has been blocked."}`
	f := newForge(t)
	for _, tt := range []struct{ leave, want, back string }{
		{"block", blocked, "unblock"},
		{"ban", blocked, "unban"},
		{"deactivate", `403 {"message":"403 Forbidden - Your account has been deactivated by your administrator."}`, "activate"},
	} {
		f.As("root", "POST /users/3/"+tt.leave, "")
		if got := f.As("Bob", "GET /user", "").String(); got != tt.want {
			t.Errorf("%s: got %s", tt.leave, got)
		}
		active := f.As("root", "GET /users?active=true", "").Body
		if strings.Contains(active, "Bob") {
			t.Errorf("%s: is listed as active: %s", tt.leave, active)
		}
		if listed := strings.Contains(f.As("root", "GET /users?blocked=true", "").Body, "Bob"); listed != (tt.leave == "block") {
			t.Errorf("%s: is listed as blocked: %t", tt.leave, listed)
		}
		f.As("root", "POST /users/3/"+tt.back, "")
		if got := f.As("Bob", "GET /user", "").Code; got != http.StatusOK {
			t.Errorf("%s: got %d", tt.back, got)
		}
	}
}

// withProject returns a forge in which ann has the personal project notes.
func withProject(t *testing.T, writes v1alpha1.RESTWrites) *Forge {
	t.Helper()
	ann := User("ann", 2)
	ann.UID = "ann"
	own := namespace.PersonalOf(ann, "home")
	own.Spec.ID = 10
	notes := Project("home", "notes", 20, own.Name, v1alpha1.VisibilityPrivate)
	notes.Spec.RESTWrites = writes
	f := New(t, User("root", 1, Admin), ann, own, notes, InGroup("home", own.Name, "ann", v1alpha1.RoleOwner))
	return f.Serve(users.New(f.Kit).Table())
}

func TestCreateUser_setsTheLimitOfNewUsers(t *testing.T) {
	f := New(t, User("root", 1, Admin))
	f.Serve(users.New(f.Kit).Table())
	values := f.Features.Values()
	values.Data = map[string]string{feature.DefaultProjectsLimit: "7"}
	if err := f.Client.Create(t.Context(), values); err != nil {
		t.Fatal(err)
	}
	for sent, want := range map[string]string{"": `"projects_limit":7,`, `,"projects_limit":9`: `"projects_limit":9,`} {
		name := fmt.Sprintf("user%d", len(sent))
		got := f.As("root", "POST /users", `{"email":"`+name+`@forge.example","name":"x","username":"`+name+`"`+sent+`}`)
		if !strings.Contains(got.Body, want) {
			t.Errorf("%q: got %s", sent, got)
		}
	}
}

func TestUsername_staysIfPersonalGroupIsProtected(t *testing.T) {
	g := NewWithT(t)
	f := withProject(t, v1alpha1.RESTWritesAllow)
	ann, own := User("ann", 2), &v1alpha1.Group{}
	ann.UID = "ann"
	key := client.ObjectKeyFromObject(namespace.PersonalOf(ann, "home"))
	g.Expect(f.Client.Get(t.Context(), key, own)).To(Succeed())
	own.Spec.RESTWrites = v1alpha1.RESTWritesRefuse
	g.Expect(f.Client.Update(t.Context(), own)).To(Succeed())
	g.Expect(f.As("root", "PUT /users/2", `{"username":"anna","name":"Anna"}`).String()).To(
		Equal(`403 {"message":"403 Forbidden - the group ann does not accept changes over REST: they are declared elsewhere"}`))
	g.Expect(stored(t, f, 2).Spec).To(And(HaveField("Username", "ann"), HaveField("Name", Not(Equal("Anna")))))
	g.Expect(f.As("root", "PUT /users/2", `{"username":"ann","name":"Anna"}`).Code).To(Equal(200), "the username stays the same")
	own.Spec.RESTWrites = v1alpha1.RESTWritesAllow
	g.Expect(f.Client.Update(t.Context(), own)).To(Succeed())
	notes := &v1alpha1.Project{}
	g.Expect(f.Client.Get(t.Context(), client.ObjectKey{Namespace: "home", Name: "notes"}, notes)).To(Succeed())
	notes.Spec.RESTWrites = v1alpha1.RESTWritesRefuse
	g.Expect(f.Client.Update(t.Context(), notes)).To(Succeed())
	g.Expect(f.As("root", "PUT /users/2", `{"username":"anna"}`).String()).To(
		Equal(`403 {"message":"403 Forbidden - the project ann/notes does not accept changes over REST: they are declared elsewhere"}`))
	g.Expect(stored(t, f, 2).Spec.Username).To(Equal("ann"))
	notes.Spec.RESTWrites = ""
	g.Expect(f.Client.Update(t.Context(), notes)).To(Succeed())
	g.Expect(f.As("root", "PUT /users/2", `{"username":"anna"}`).Code).To(Equal(200))
	g.Expect(f.Client.Get(t.Context(), key, own)).To(Succeed())
	g.Expect(own.Spec.Path).To(Equal("anna"))
}

func TestDeleteUser_deletesPersonalProjectsOnRequest(t *testing.T) {
	tests := []struct {
		query  string
		writes v1alpha1.RESTWrites
		want   string
		left   bool
	}{
		{"", "", "204", true},
		{"?hard_delete=false", "", "204", true},
		{"?hard_delete=true", "", "204", false},
		{"?hard_delete=true", v1alpha1.RESTWritesRefuse, "403 ", true},
	}
	for _, tt := range tests {
		f := withProject(t, tt.writes)
		if got := f.As("root", "DELETE /users/2"+tt.query, "").String(); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s %s: got %s", tt.query, tt.writes, got)
		}
		_, project := f.Catalog.ByPath(t.Context(), "ann/notes")
		_, group := f.Catalog.ByPath(t.Context(), "ann")
		if (project == nil) != tt.left || (group == nil) != tt.left {
			t.Errorf("%s %s: project: %v, group: %v", tt.query, tt.writes, project, group)
		}
		_, err := f.Catalog.User(t.Context(), v1alpha1.Reference{ID: 2})
		if gone := errors.Is(err, catalog.ErrNotFound); gone != (tt.want == "204") {
			t.Errorf("%s %s: %v", tt.query, tt.writes, err)
		}
	}
}

func TestCreateUser_reusesTheNameOfARenamedUser(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	body := func(n int) string {
		return fmt.Sprintf(`{"email":"e%d@forge.example","name":"E","username":"eve"}`, n)
	}
	var ids []int64
	for n := range 3 {
		a := f.As("root", "POST /users", body(n))
		g.Expect(a.Code).To(Equal(201), a.Body)
		id := Decode[struct{ ID int64 }](t, a).ID
		g.Expect(slices.Contains(ids, id)).To(BeFalse())
		ids = append(ids, id)
		g.Expect(f.As("root", "POST /users", body(n+10)).String()).To(Equal(`409 {"message":"Username has already been taken"}`))
		g.Expect(f.As("root", fmt.Sprintf("PUT /users/%d", id), fmt.Sprintf(`{"username":"was-eve-%d"}`, n)).Code).To(Equal(200))
	}
}

func TestInvalidRequests_areRefusedWithAReason(t *testing.T) {
	const format = "can contain only letters, digits, '_', '-' and '.', and begins and ends with a letter, digit or '_'"
	tests := []struct{ request, body, want string }{
		{"POST /users", ``, `400 {"error":"email is missing, name is missing, username is missing"}`},
		{"POST /users", `{"email":"bob@FORGE.example","name":"x","username":"xx"}`, `409 {"message":"Email has already been taken"}`},
		{"POST /users", `{"email":"x@forge.example","name":"x","username":"bob"}`, `409 {"message":"Username has already been taken"}`},
		{"POST /users", `{"email":"x","name":"","username":"-x"}`,
			`400 {"message":{"email":["is invalid"],"name":["can't be blank"],"username":["` + format + `"]}}`},
		{"POST /users", `{"email":"x@y","name":"x","username":"x"}`, `400 {"message":{"username":["is too short (minimum is 2 characters)"]}}`},
		{"POST /users", `{"email":"x@y","name":"x","username":"xx","admin":"perhaps"}`, `400 {"error":"admin is invalid"}`},
		{"PUT /users/3", `{"username":"bob.git"}`, `400 {"message":{"username":["cannot end in '.git' or '.atom'"]}}`},
		{"PUT /users/3", `{"username":"ANN"}`, `409 {"message":"Username has already been taken"}`},
		{"PUT /users/3", `{"email":"ann@forge.example"}`, `409 {"message":"Email has already been taken"}`},
		{"PUT /users/3", `{"email":"x"}`, `400 {"message":{"email":["is invalid"]}}`},
		{"PUT /users/99", `{"name":"x"}`, `404 {"message":"404 User Not Found"}`},
		{"DELETE /users/99", ``, `404 {"message":"404 User Not Found"}`},
		{"POST /users/99/block", ``, `404 {"message":"404 User Not Found"}`},
		{"POST /users/1/block", ``, `403 {"message":"403 Forbidden - The API initiating user cannot be blocked by the API"}`},
		{"POST /users/1/deactivate", ``, `403 {"message":"403 Forbidden - The API initiating user cannot be deactivated by the API"}`},
		{"POST /users/1/ban", ``, `403 {"message":"403 Forbidden - The API initiating user cannot be banned by the API"}`},
		{"POST /users/99/unban", ``, `404 {"message":"404 User Not Found"}`},
		{"GET /users/ann", ``, `400 {"error":"id is invalid"}`},
		{"GET /users?order_by=mood", ``, `400 {"error":"order_by does not have a valid value"}`},
	}
	for _, tt := range tests {
		t.Run(tt.request+" "+tt.body, func(t *testing.T) {
			if got := newForge(t).As("root", tt.request, tt.body).String(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func stored(t *testing.T, f *Forge, id int64) *v1alpha1.User {
	t.Helper()
	u, err := f.Catalog.User(t.Context(), v1alpha1.Reference{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestCreateUser_conflictsWhenAnotherReplicaWasFaster(t *testing.T) {
	f := newForge(t)
	f.Before = func(verb string, o client.Object) error {
		if _, ok := o.(*v1alpha1.User); !ok {
			return nil
		}
		// The other replica was faster, and the cache does not show its user yet.
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "users"}, o.GetName())
	}
	got := f.As("root", "POST /users", `{"email":"new@forge.example","name":"New","username":"new"}`).String()
	if got != `409 {"message":"Username has already been taken"}` {
		t.Errorf("got %s", got)
	}
}
