package projects_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	. "github.com/forgeplane/forgeplane/apiserver/v4/projects"
)

func TestFork_isVisibleToNoMorePeopleThanItsSource(t *testing.T) {
	for _, tt := range []struct{ source, visibility, want string }{
		{"20", "", "public"},
		{"20", "internal", "internal"},
		{"21", "", "private"},
		{"21", "public", "private"},
	} {
		f := newForge(t)
		got := f.As("mary", "POST /projects/"+tt.source+"/fork", `{"path":"fork","namespace_id":10,"visibility":"`+tt.visibility+`"}`)
		if tt.visibility == "" {
			got = f.As("mary", "POST /projects/"+tt.source+"/fork", `{"path":"other","namespace_id":10}`)
		}
		if got.Code != http.StatusCreated {
			t.Fatalf("%s: got %s", tt.source, got)
		}
		if p := familytest.Decode[Project](t, got); p.Visibility != tt.want {
			t.Errorf("the fork of %s with %q is %s, want %s", tt.source, tt.visibility, p.Visibility, tt.want)
		}
	}
}

func TestFork_declaresItsSourceAndBranches(t *testing.T) {
	f := newForge(t)
	got := f.As("mary", "POST /projects/20/fork", `{"path":"fork","namespace_path":"acme/sub","branches":"main, topic,"}`)
	made := familytest.Decode[Project](t, got)
	if made.ImportStatus != "started" || made.ForkedFromProject == nil || made.ForkedFromProject.ID != 20 || made.PathWithNamespace != "acme/sub/fork" {
		t.Fatalf("got %s", got)
	}
	var all v1alpha1.ProjectList
	if err := f.Client.List(t.Context(), &all, client.InNamespace("acme")); err != nil {
		t.Fatal(err)
	}
	for _, p := range all.Items {
		if p.Spec.ForkOf != nil {
			if of := p.Spec.ForkOf; of.ProjectRef.ID != 20 || of.ProjectRef.UID == "" || strings.Join(of.Branches, " ") != "main topic" {
				t.Errorf("it is declared as %+v", of)
			}
			return
		}
	}
	t.Error("nothing is declared")
}

func TestFork_refusesBranchesThatItCannotBeginWith(t *testing.T) {
	f := newForge(t)
	for _, branches := range []string{
		strings.Repeat("x", 245), "main,two..dots", manyBranches(101),
	} {
		got := f.As("mary", "POST /projects/20/fork", fmt.Sprintf(`{"path":"fork","branches":%q}`, branches))
		if got.Code != http.StatusBadRequest || !strings.Contains(got.Body, `{"message":{"branches":[`) {
			t.Errorf("%.40s: got %s", branches, got)
		}
	}
	if got := f.As("mary", "POST /projects/20/fork", `{"path":"fork","namespace_path":"acme/sub","branches":"main,main"}`); got.Code != http.StatusCreated {
		t.Errorf("named twice: got %s", got)
	}
}

func TestFork_isRefusedByTheGroupItGoesTo(t *testing.T) {
	f := newForge(t)
	var group v1alpha1.Group
	if err := f.Client.Get(t.Context(), client.ObjectKey{Namespace: "acme", Name: "sub"}, &group); err != nil {
		t.Fatal(err)
	}
	group.Spec.RESTWrites = v1alpha1.RESTWritesRefuse
	if err := f.Client.Update(t.Context(), &group); err != nil {
		t.Fatal(err)
	}
	got := f.As("mary", "POST /projects/20/fork", `{"path":"fork","namespace_path":"acme/sub"}`)
	if got.Code != http.StatusForbidden || !strings.Contains(got.Body, "the group acme/sub does not accept changes over REST") {
		t.Errorf("got %s", got)
	}
	if got := f.As("mary", "POST /projects/20/fork", `{"path":"fork"}`); got.Code != http.StatusCreated {
		t.Errorf("into their own namespace: got %s", got)
	}
}

func TestFork_createsPersonalNamespace(t *testing.T) {
	for about, tt := range map[string]struct {
		who, into string
		want      int
	}{
		"their own":                {"dora", "dora", http.StatusCreated},
		"in another case":          {"dora", "Dora", http.StatusCreated},
		"as an administrator":      {"root", "dora", http.StatusCreated},
		"of somebody else":         {"otto", "dora", http.StatusNotFound},
		"of a user who is unknown": {"root", "nobody", http.StatusNotFound},
	} {
		f := newForge(t)
		got := f.As(tt.who, "POST /projects/20/fork", `{"path":"fork","namespace_path":"`+tt.into+`"}`)
		if got.Code != tt.want {
			t.Errorf("%s: got %s", about, got)
		} else if p := familytest.Decode[Project](t, got); tt.want == http.StatusCreated && p.PathWithNamespace != "dora/fork" {
			t.Errorf("%s: got %s", about, p.PathWithNamespace)
		}
	}
}

func TestFork_createsNoNamespaceForExternalUsers(t *testing.T) {
	f := newForge(t)
	makeExternal(t, f, "dora")
	for body, want := range map[string]string{
		`{"path":"fork"}`:                         `403 {"message":"403 Forbidden"}`,
		`{"path":"fork","namespace_path":"dora"}`: `404 {"message":"404 Target Namespace Not Found"}`,
	} {
		if got := f.As("dora", "POST /projects/20/fork", body); got.String() != want {
			t.Errorf("%s: got %s", body, got)
		}
	}
}

// makeExternal makes a user an external one.
func makeExternal(t *testing.T, f *familytest.Forge, name string) {
	t.Helper()
	var u v1alpha1.User
	if err := f.Client.Get(t.Context(), client.ObjectKey{Name: name}, &u); err != nil {
		t.Fatal(err)
	}
	u.Spec.External = true
	if err := f.Client.Update(t.Context(), &u); err != nil {
		t.Fatal(err)
	}
}

func TestPersonalProjects_areNotCreatedByUsersWhoHaveBecomeExternal(t *testing.T) {
	f := familytest.New(t,
		familytest.User("root", 1, familytest.Admin), familytest.User("dora", 3),
		familytest.Group("home", "acme", 10, "", v1alpha1.VisibilityPublic), familytest.InGroup("home", "acme", "dora", v1alpha1.RoleOwner),
		withRepository(familytest.Project("home", "site", 20, "acme", v1alpha1.VisibilityPublic)),
	)
	f.Keep(familytest.Repositories(t, f.Catalog))
	f.Serve(New(f.Kit).Table())
	own := familytest.Decode[Project](t, f.As("dora", "POST /projects", `{"path":"before"}`)).Namespace.ID
	makeExternal(t, f, "dora")
	const forbidden, unpermitted = `403 {"message":"403 Forbidden"}`,
		`400 {"message":"Failed to transfer project: You don't have permission to transfer projects into that namespace."}`
	for _, c := range []struct{ request, body, want string }{
		{"POST /projects", `{"path":"new"}`, forbidden},
		{"POST /projects", fmt.Sprintf(`{"path":"new","namespace_id":%d}`, own), forbidden},
		{"POST /projects/20/fork", `{}`, forbidden},
		{"POST /projects/20/fork", `{"namespace_path":"dora"}`, forbidden},
		{"POST /projects/20/fork", fmt.Sprintf(`{"namespace_id":%d}`, own), forbidden},
		{"PUT /projects/20/transfer", `{"namespace":"dora"}`, unpermitted},
		{"PUT /projects/20/transfer", fmt.Sprintf(`{"namespace":%d}`, own), unpermitted},
	} {
		if got := f.As("dora", c.request, c.body).String(); got != c.want {
			t.Errorf("%s %s: got %s", c.request, c.body, got)
		}
	}
	for _, c := range []struct {
		who, request, body string
		want               int
	}{
		{"dora", "POST /projects", `{"path":"new","namespace_id":10}`, http.StatusCreated},
		{"dora", "POST /projects/20/fork", `{"path":"fork","namespace_path":"acme"}`, http.StatusCreated},
		{"dora", "PUT /projects/dora%2Fbefore", `{"description":"still mine"}`, http.StatusOK},
		{"dora", "PUT /projects/dora%2Fbefore/transfer", `{"namespace":"acme"}`, http.StatusOK},
		{"root", "PUT /projects/20/transfer", `{"namespace":"dora"}`, http.StatusOK},
	} {
		if got := f.As(c.who, c.request, c.body); got.Code != c.want {
			t.Errorf("%s: %s %s: got %s", c.who, c.request, c.body, got)
		}
	}
}

func TestFork_needsARepository(t *testing.T) {
	f := newForge(t)
	created := f.As("mary", "POST /projects", `{"namespace_id":10,"path":"new"}`)
	at := fmt.Sprintf("POST /projects/%d/fork", familytest.Decode[Project](t, created).ID)
	for _, request := range []string{at, at + "/20"} {
		if got := f.As("mary", request, ""); got.Code != http.StatusConflict || !strings.Contains(got.Body, "has no repository yet") {
			t.Errorf("%s: got %s", request, got)
		}
	}
}

func manyBranches(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("branch-%d", i)
	}
	return strings.Join(all, ",")
}

func TestForkedFromProject_isShownToThoseWhoSeeIt(t *testing.T) {
	f := newForge(t)
	got := f.As("mary", "POST /projects/21/fork", `{"path":"fork","namespace_id":10}`)
	if got.Code != http.StatusCreated {
		t.Fatalf("got %s", got)
	}
	if err := f.Client.Create(t.Context(), familytest.InProject("acme", "api", "otto", v1alpha1.RoleGuest)); err != nil {
		t.Fatal(err)
	}
	for who, want := range map[string]bool{"mary": true, "root": true, "otto": true, "dora": false} {
		shown := f.As(who, "GET /projects/21/forks", "")
		if sees := shown.Code == http.StatusOK; sees != want {
			t.Errorf("%s: got %s", who, shown)
		}
	}
	if p := familytest.Decode[Project](t, f.As("mary", "GET /projects/21", "")); p.ForksCount != 1 {
		t.Errorf("it has %d forks", p.ForksCount)
	}
}

func TestForkRelation_isSetOnceAndRemoved(t *testing.T) {
	f := newForge(t)
	for _, step := range []struct {
		who, request string
		want         string
	}{
		{"mary", "DELETE /projects/20/fork", "304"},
		{"mary", "POST /projects/20/fork/22", `404 {"message":"404 Project Not Found"}`},
		{"mary", "POST /projects/20/fork/20", `409 {"message":"A project cannot be a fork of itself"}`},
		{"mary", "POST /projects/20/fork/21", "201"},
		{"mary", "POST /projects/20/fork/21", `409 {"message":"Project already forked"}`},
		{"mary", "PUT /projects/20", `400 {"message":{"visibility_level":["internal is not allowed since the fork source project has lower visibility."]}}`},
		{"dora", "DELETE /projects/20/fork", `403 {"message":"403 Forbidden"}`},
		{"mary", "DELETE /projects/20/fork", "204"},
	} {
		body := ""
		if strings.HasPrefix(step.request, "PUT") {
			body = `{"visibility":"internal"}`
		}
		if got := f.As(step.who, step.request, body).String(); !strings.HasPrefix(got, step.want) {
			t.Errorf("%s: got %s, want %s", step.request, got, step.want)
		}
	}
}

func TestUnrelate_waitsForTheRepository(t *testing.T) {
	f := newForge(t)
	change := func(mutate func(*v1alpha1.Project)) {
		var p v1alpha1.Project
		f.Named(&p, "acme/site")
		mutate(&p)
		status := p.Status
		err := f.Client.Update(t.Context(), &p)
		p.Status = status
		if err = errors.Join(err, f.Client.Status().Update(t.Context(), &p)); err != nil {
			t.Fatal(err)
		}
	}
	change(func(p *v1alpha1.Project) {
		p.Spec.ForkOf = &v1alpha1.ForkOf{ProjectRef: v1alpha1.Reference{ID: 21}}
		p.Status.RefsChecksum = ""
	})
	if got := f.As("mary", "DELETE /projects/20/fork", "").String(); got != `409 {"message":"The fork is still being made"}` {
		t.Errorf("got %s", got)
	}
	var p v1alpha1.Project
	f.Named(&p, "acme/site")
	if p.Spec.ForkOf == nil {
		t.Error("the relation is gone")
	}
	change(func(p *v1alpha1.Project) { p.Status.RefsChecksum = "some" })
	if got := f.As("mary", "DELETE /projects/20/fork", "").String(); got != "204" {
		t.Errorf("got %s", got)
	}
}
