package auth_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
)

// snippet is a record without a declared object.
type snippet struct {
	id, project int64
	author      types.UID
}

func (snippet) Parameter() string        { return "Id of the snippet." }
func (s snippet) Owner() types.UID       { return s.author }
func (s snippet) ProjectID() int64       { return s.project }
func (snippet) Missing() *endpoint.Error { return endpoint.NotFound("Snippet") }
func (s snippet) shown() (id string)     { return fmt.Sprintf("snippet %d", s.id) }

// snippets belong to ann, except one without an owner. They are in the projects web and secret, or in no project.
type snippets map[int64]snippet

func (s snippets) find(_ context.Context, _ auth.Subject, id int64) (snippet, error) {
	if found, is := s[id]; is {
		return found, nil
	}
	return snippet{}, endpoint.NotFound("Snippet")
}

func (s snippets) inProject(ctx context.Context, of auth.Subject, id int64) (snippet, error) {
	found, err := s.find(ctx, of, id)
	if err == nil && found.project != of.Scope.Project.RESTID() {
		err = endpoint.NotFound("Snippet")
	}
	return found, err
}

func (s snippets) table() endpoint.Table {
	get := func(_ context.Context, s auth.Record[snippet], _ *endpoint.None) (string, error) {
		return s.Record.shown(), nil
	}
	of := func(_ context.Context, s auth.ProjectRecord[snippet], _ *endpoint.None) (string, error) {
		return s.Scope.Path() + ": " + s.Record.shown(), nil
	}
	user := func(_ context.Context, s auth.User, _ *endpoint.None) (string, error) { return s.User.Name, nil }
	gone := endpoint.NotFound("Snippet")
	return endpoint.Table{
		endpoint.Get("/snippets/{id}", get).Found(s.find).Needs(auth.ReadProject).Or(auth.Own).Denies(gone).Anonymous(endpoint.Served),
		endpoint.Put("/snippets/{id}", get).Found(s.find).Needs(auth.WriteBadges).Or(auth.Own),
		endpoint.Post("/snippets/{id}/award", get).Found(s.find).Needs(auth.WriteBadges).Status(http.StatusOK).Anonymous(endpoint.Hidden),
		endpoint.Get("/projects/{id}/snippets/{snippet_id}", of).Found(s.inProject).Needs(auth.ReadProject),
		endpoint.Put("/projects/{id}/snippets/{snippet_id}", of).Found(s.inProject).Needs(auth.WriteBadges).Or(auth.Own),
		endpoint.Patch("/projects/{id}/snippets/{snippet_id}", of).Found(s.inProject).Needs(auth.WriteBadges).And(auth.Own),
		endpoint.Get("/users/{user_id}", user),
		endpoint.Put("/users/{user_id}", user).Needs(auth.AdminInstance).Or(auth.Own),
	}
}

func newSnippets(t *testing.T) *familytest.Forge {
	t.Helper()
	f := familytest.New(t,
		familytest.User("root", 1, familytest.Admin), familytest.User("ann", 2), familytest.User("mary", 3), familytest.User("otto", 4),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic),
		familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPublic), familytest.Project("acme", "secret", 21, "acme", v1alpha1.VisibilityPrivate),
		familytest.InGroup("acme", "acme", "mary", v1alpha1.RoleMaintainer), familytest.InProject("acme", "web", "ann", v1alpha1.RoleGuest),
	)
	uid := func(name string) types.UID {
		u, err := f.Catalog.UserByUsername(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return u.UID
	}
	ann, mary := uid("ann"), uid("mary")
	all := snippets{
		1: {1, 20, ann}, 2: {2, 20, ""}, 3: {3, 21, mary}, 4: {4, 0, ann}, 5: {5, 20, mary}, 6: {6, 99, ann},
	}
	return f.Serve(all.table())
}

func TestRecord_isFoundAndAuthorized(t *testing.T) {
	f := newSnippets(t)
	const (
		anonymous = `401 {"message":"401 Unauthorized"}`
		forbidden = `403 {"message":"403 Forbidden"}`
		missing   = `404 {"message":"404 Snippet Not Found"}`
		hidden    = `404 {"message":"404 Project Not Found"}`
		noUser    = `404 {"message":"404 User Not Found"}`
	)
	for _, tt := range []struct {
		request, as, want string
	}{
		// By the record's own id: if it is in a project, the project decides.
		{"GET /snippets/1", "", `200 "snippet 1"`}, {"GET /snippets/1", "otto", `200 "snippet 1"`},
		{"GET /snippets/3", "", missing}, {"GET /snippets/3", "otto", missing}, {"GET /snippets/3", "mary", `200 "snippet 3"`}, {"GET /snippets/3", "root", `200 "snippet 3"`},
		{"GET /snippets/4", "", missing}, {"GET /snippets/4", "mary", missing}, {"GET /snippets/4", "ann", `200 "snippet 4"`}, {"GET /snippets/4", "root", `200 "snippet 4"`},
		{"GET /snippets/6", "otto", missing}, {"GET /snippets/6", "root", missing},
		{"GET /snippets/9", "otto", missing}, {"GET /snippets/9", "root", missing}, {"GET /snippets/x", "otto", `400 {"error":"id is invalid"}`},
		// Its author or a Maintainer can change it. A snippet in a project that the caller must not see is answered like one that does not
		// exist.
		{"PUT /snippets/1", "", anonymous}, {"PUT /snippets/1", "otto", forbidden}, {"PUT /snippets/1", "ann", `200 "snippet 1"`}, {"PUT /snippets/1", "mary", `200 "snippet 1"`},
		{"PUT /snippets/5", "ann", forbidden}, {"PUT /snippets/2", "ann", forbidden}, {"PUT /snippets/2", "mary", `200 "snippet 2"`},
		{"PUT /snippets/3", "otto", missing}, {"PUT /snippets/3", "ann", missing}, {"PUT /snippets/9", "otto", missing}, {"PUT /snippets/6", "otto", missing},
		{"POST /snippets/1/award", "", forbidden}, {"POST /snippets/3/award", "", missing}, {"POST /snippets/9/award", "", missing}, {"PUT /snippets/4", "root", `200 "snippet 4"`},
		// In a project that the path names.
		{"GET /projects/20/snippets/1", "otto", `200 "acme/web: snippet 1"`}, {"GET /projects/acme%2Fweb/snippets/4", "otto", missing},
		{"GET /projects/21/snippets/3", "otto", hidden}, {"GET /projects/20/snippets/x", "otto", `400 {"error":"snippet_id is invalid"}`},
		{"PUT /projects/20/snippets/1", "ann", `200 "acme/web: snippet 1"`}, {"PUT /projects/20/snippets/5", "ann", forbidden},
		{"PUT /projects/20/snippets/9", "ann", forbidden}, {"PUT /projects/20/snippets/9", "mary", missing}, {"PUT /projects/20/snippets/1", "mary", `200 "acme/web: snippet 1"`},
		{"PUT /projects/21/snippets/3", "ann", hidden},
		// Endpoints for which the ability is not enough.
		{"PATCH /projects/20/snippets/1", "mary", forbidden}, {"PATCH /projects/20/snippets/5", "mary", `200 "acme/web: snippet 5"`},
		{"PATCH /projects/20/snippets/1", "ann", forbidden}, {"PATCH /projects/20/snippets/2", "root", forbidden}, {"PATCH /projects/20/snippets/9", "mary", missing},
		{"PATCH /projects/20/snippets/9", "ann", forbidden},
		// Users.
		{"GET /users/2", "otto", `200 "ann"`}, {"GET /users/9", "otto", noUser}, {"GET /users/ann", "otto", `400 {"error":"user_id is invalid"}`}, {"GET /users/2", "", anonymous},
		{"PUT /users/2", "ann", `200 "ann"`}, {"PUT /users/2", "otto", forbidden}, {"PUT /users/9", "otto", forbidden}, {"PUT /users/2", "root", `200 "ann"`},
		{"PUT /users/9", "root", noUser},
	} {
		if got := f.As(tt.as, tt.request, "").String(); got != tt.want {
			t.Errorf("%s as %q\ngot  %s\nwant %s", tt.request, tt.as, got, tt.want)
		}
	}
}

func TestRecord_isNotInheritedWithUsername(t *testing.T) {
	f := newSnippets(t)
	f.Recreate(&v1alpha1.User{}, "ann")
	const forbidden = `403 {"message":"403 Forbidden"}`
	if got := f.As("ann", "PUT /snippets/1", "").String(); got != forbidden {
		t.Errorf("got %s, want %s", got, forbidden)
	}
}
