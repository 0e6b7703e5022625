package users_test

import (
	"context"
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
	. "github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/users"
)

func newForge(t *testing.T) *Forge {
	t.Helper()
	named := func(name string) func(*v1alpha1.UserSpec) { return func(s *v1alpha1.UserSpec) { s.Name = name } }
	f := New(t,
		User("root", 1, Admin), User("ann", 2, named("Zoe Miller")), User("Bob", 3), User("cid", 4, Blocked),
		User("dev-bot", 5, func(s *v1alpha1.UserSpec) { s.Type = v1alpha1.UserBot }),
	)
	return f.Serve(users.New(f.Catalog, f.Writer, WebURL, "home").Table())
}

func TestWhatIsSeenOfAUser(t *testing.T) {
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

// cluster lets every Kubernetes identity administer the instance.
type cluster struct{}

func (cluster) Include(context.Context) (bool, error) { return true, nil }

func TestAnAdministratorOfTheClusterIsToldSo(t *testing.T) {
	f := New(t, User("ann", 2, func(s *v1alpha1.UserSpec) { s.Kubernetes = &v1alpha1.KubernetesIdentity{Username: "ann@cluster"} }))
	f.Guard = auth.NewGuard(auth.NewAuthenticator(f.Catalog, f.Clock, cluster{}), f.Catalog, nil)
	f.Serve(users.New(f.Catalog, f.Writer, WebURL, "home").Table())
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequestWithContext(auth.WithIdentity(t.Context(), "ann@cluster"), http.MethodGet, "/user", http.NoBody))
	g := NewWithT(t)
	g.Expect(w.Body.String()).To(And(ContainSubstring(`"username":"ann"`), ContainSubstring(`"is_admin":true`)))
	g.Expect(f.As("ann", "GET /user", "").Body).NotTo(ContainSubstring("is_admin"), "her token is that of no administrator")
}

func TestUsersAreListed(t *testing.T) {
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

func TestAUserEndsInAnObject(t *testing.T) {
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

func TestABlockedUserIsRefusedAtOnce(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	g.Expect(f.As("Bob", "GET /user", "").Code).To(Equal(200))
	g.Expect(f.As("root", "POST /users/3/block", "").Code).To(Equal(201))
	g.Expect(f.As("Bob", "GET /user", "").String()).To(Equal(`403 {"message":"403 Forbidden - Your account has been blocked."}`))
	g.Expect(f.As("root", "POST /users/3/unblock", "").Code).To(Equal(201))
	g.Expect(f.As("Bob", "GET /user", "").Code).To(Equal(200))
}

func TestAUsernameThatWasGivenUpIsFree(t *testing.T) {
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

func TestWhatIsWrongWithAUserIsSaid(t *testing.T) {
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

func TestOfTwoReplicasThatCreateAUserOneIsToldSo(t *testing.T) {
	f := newForge(t)
	f.Before = func(verb string, o client.Object) error {
		if _, ok := o.(*v1alpha1.User); !ok {
			return nil
		}
		// The other one was faster, and the cache does not show it yet.
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "users"}, o.GetName())
	}
	got := f.As("root", "POST /users", `{"email":"new@forge.example","name":"New","username":"new"}`).String()
	if got != `409 {"message":"Username has already been taken"}` {
		t.Errorf("got %s", got)
	}
}
