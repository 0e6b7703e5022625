package projects_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/projects"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/declare"
)

func TestTransfer_movesProjectToAnotherGroup(t *testing.T) {
	f := newForge(t)
	for _, c := range []struct{ namespace, path string }{{`11`, "acme/sub/site"}, {`"acme"`, "acme/site"}, {`"acme/sub"`, "acme/sub/site"}} {
		a := f.As("mary", "PUT /projects/20/transfer", `{"namespace":`+c.namespace+`}`)
		got := familytest.Decode[struct {
			ID   int64  `json:"id"`
			Path string `json:"path_with_namespace"`
		}](t, a)
		if a.Code != http.StatusOK || got.ID != 20 || got.Path != c.path {
			t.Errorf("to %s: got %s", c.namespace, a)
		}
	}
}

func TestTransfer_isRefusedWithAReason(t *testing.T) {
	f := familytest.New(t,
		familytest.User("mary", 2), familytest.User("dora", 3),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic),
		familytest.Group("acme", "other", 11, "", v1alpha1.VisibilityPublic),
		familytest.Group("acme", "open", 12, "", v1alpha1.VisibilityPublic),
		familytest.Group("acme", "hidden", 13, "", v1alpha1.VisibilityPrivate),
		familytest.Group("far", "far", 14, "", v1alpha1.VisibilityPublic),
		familytest.Project("acme", "site", 20, "acme", v1alpha1.VisibilityPublic),
		&v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "also"}, Spec: v1alpha1.ProjectSpec{ID: 21, Path: "Site", GroupRef: v1alpha1.Reference{Name: "other"}}},
		familytest.InGroup("acme", "acme", "mary", v1alpha1.RoleOwner), familytest.InGroup("acme", "other", "mary", v1alpha1.RoleOwner),
		familytest.InGroup("acme", "open", "mary", v1alpha1.RoleDeveloper), familytest.InGroup("far", "far", "mary", v1alpha1.RoleOwner),
		familytest.InGroup("acme", "acme", "dora", v1alpha1.RoleMaintainer),
	)
	f.Keep(familytest.Repositories(t, f.Catalog))
	f.Serve(projects.New(f.Kit).Table())
	for _, c := range [][3]string{
		{"mary", `{}`, `400 {"error":"namespace is missing"}`},
		{"mary", `{"namespace":""}`, `400 {"error":"namespace is empty"}`},
		{"mary", `{"namespace":"nowhere"}`, `404 {"message":"404 Namespace Not Found"}`},
		{"mary", `{"namespace":13}`, `404 {"message":"404 Namespace Not Found"}`},
		{"mary", `{"namespace":10}`, `400 {"message":"Failed to transfer project: Project is already in this namespace."}`},
		{"mary", `{"namespace":11}`, `400 {"message":"Failed to transfer project: Project with same name or path in target namespace already exists"}`},
		{"mary", `{"namespace":12}`, `400 {"message":"Failed to transfer project: You don't have permission to transfer projects into that namespace."}`},
		{"mary", `{"namespace":"far"}`, `400 {"message":"Failed to transfer project: The namespace belongs to another Kubernetes namespace than the project, and a project cannot change its Kubernetes namespace."}`},
		{"dora", `{"namespace":11}`, `403 {"message":"403 Forbidden"}`},
	} {
		if got := f.As(c[0], "PUT /projects/20/transfer", c[1]).String(); got != c[2] {
			t.Errorf("%s\ngot  %s\nwant %s", c[1], got, c[2])
		}
	}
	if got := f.As("mary", "GET /projects/20/transfer_locations", ""); len(familytest.Decode[[]any](t, got)) != 1 {
		t.Errorf("got %s", got)
	}
	if got := f.As("mary", "GET /projects/20/transfer_locations?search=nothing", "").String(); got != "200 []" {
		t.Errorf("got %s", got)
	}
}

func TestTransfer_keepsRulesOfBothPlaces(t *testing.T) {
	strict, personal := familytest.Group("acme", "strict", 12, "", v1alpha1.VisibilityPublic), familytest.Group("acme", "mary", 13, "", v1alpha1.VisibilityPublic)
	strict.Spec.RESTWrites = v1alpha1.RESTWritesRefuse
	personal.Labels = map[string]string{v1alpha1.LabelPersonal: "2"}
	f := familytest.New(t,
		familytest.User("mary", 2),
		familytest.Group("acme", "closed", 10, "", v1alpha1.VisibilityPrivate), familytest.Group("acme", "open", 11, "", v1alpha1.VisibilityPublic), strict, personal,
		familytest.Project("acme", "site", 20, "closed", v1alpha1.VisibilityPublic),
		familytest.InGroup("acme", "closed", "mary", v1alpha1.RoleOwner), familytest.InGroup("acme", "open", "mary", v1alpha1.RoleOwner),
		familytest.InGroup("acme", "strict", "mary", v1alpha1.RoleOwner), familytest.InGroup("acme", "mary", "mary", v1alpha1.RoleOwner),
	)
	f.Home = "acme"
	f.Keep(familytest.Repositories(t, f.Catalog))
	f.Serve(projects.New(f.Kit).Table())
	const refused = `403 {"message":"403 Forbidden - the group strict does not accept changes over REST: they are declared elsewhere"}`
	if got := f.As("mary", "PUT /projects/20/transfer", `{"namespace":"strict"}`).String(); got != refused {
		t.Errorf("got %s", got)
	}
	for _, to := range []string{"open", "mary"} {
		a := f.As("mary", "PUT /projects/20/transfer", `{"namespace":"`+to+`"}`)
		got := familytest.Decode[struct {
			Path       string `json:"path_with_namespace"`
			Visibility string `json:"visibility"`
		}](t, a)
		if a.Code != http.StatusOK || got.Path != to+"/site" || got.Visibility != "private" {
			t.Errorf("to %s: got %s", to, a)
		}
	}
}

func TestPersonalGroup_isNotCreatedByARefusedRequest(t *testing.T) {
	const refused = ` does not accept changes over REST: they are declared elsewhere"}`
	for _, c := range []struct {
		installation, project v1alpha1.RESTWrites
		request, body, want   string
	}{
		{"", v1alpha1.RESTWritesRefuse, "PUT /projects/20/transfer", `{"namespace":"mary"}`, "the project" + refused},
		{v1alpha1.RESTWritesRefuse, "", "PUT /projects/20/transfer", `{"namespace":"mary"}`, "this installation" + refused},
		{v1alpha1.RESTWritesRefuse, "", "POST /projects", `{"path":"new"}`, "this installation" + refused},
		{v1alpha1.RESTWritesRefuse, "", "POST /projects/20/fork", `{}`, "this installation" + refused},
	} {
		site := withRepository(familytest.Project("home", "site", 20, "acme", v1alpha1.VisibilityPublic))
		site.Spec.RESTWrites = c.project
		acme := familytest.Group("home", "acme", 10, "", v1alpha1.VisibilityPublic)
		acme.Spec.RESTWrites = v1alpha1.RESTWritesAllow
		f := familytest.New(t, familytest.User("mary", 2), acme, site, familytest.InGroup("home", "acme", "mary", v1alpha1.RoleOwner))
		backend := store.NewBackend(declare.NewWriter(f.Client, f.Client, f.IDs), f.Catalog, c.installation)
		f.Writer = backend
		f.Keep(familytest.Repositories(t, f.Catalog))
		f.Serve(projects.New(f.Kit).Table())
		if got := f.As("mary", c.request, c.body); got.Code != http.StatusForbidden || !strings.HasSuffix(got.Body, c.want) {
			t.Errorf("%s: got %s", c.request, got)
		}
		if _, err := f.Catalog.GroupByPath(t.Context(), "mary"); !errors.Is(err, catalog.ErrNotFound) {
			t.Errorf("%s leaves a personal group: %v", c.request, err)
		}
	}
}

func TestTransfer_isTakenBackWhenPlaceIsLost(t *testing.T) {
	for name, c := range map[string]struct {
		request, body string
		meanwhile     func(*testing.T, *familytest.Forge)
		want          string
	}{
		"to a group that is removed": {
			"PUT /projects/20/transfer", `{"namespace":11}`, func(t *testing.T, f *familytest.Forge) {
				var g v1alpha1.Group
				f.Named(&g, "acme/other")
				if err := f.Client.Delete(t.Context(), &g); err != nil {
					t.Fatal(err)
				}
			}, `404 {"message":"404 Group Not Found"}`,
		},
		"to the path of another project": {
			"PUT /projects/20/transfer", `{"namespace":11}`, func(t *testing.T, f *familytest.Forge) {
				var p v1alpha1.Project
				f.Named(&p, "acme/twin")
				p.Spec.GroupRef = f.Named(&v1alpha1.Group{}, "acme/other")
				if err := f.Client.Update(t.Context(), &p); err != nil {
					t.Fatal(err)
				}
			}, `400 {"message":"Failed to transfer project: Project with same name or path in target namespace already exists"}`,
		},
		"renamed to the path of another project": {
			"PUT /projects/20", `{"path":"new","description":"renamed"}`, func(t *testing.T, f *familytest.Forge) {
				var p v1alpha1.Project
				f.Named(&p, "acme/twin")
				p.Spec.Path, p.Spec.GroupRef = "New", f.Named(&v1alpha1.Group{}, "acme/acme")
				if err := f.Client.Update(t.Context(), &p); err != nil {
					t.Fatal(err)
				}
			}, `400 {"message":{"name":["has already been taken"],"path":["has already been taken"]}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			twin := familytest.Project("acme", "twin", 21, "third", v1alpha1.VisibilityPublic)
			twin.Spec.Path = "Site"
			f := familytest.New(t,
				familytest.User("mary", 2),
				familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPrivate), familytest.Group("acme", "other", 11, "", v1alpha1.VisibilityPublic),
				familytest.Group("acme", "third", 12, "", v1alpha1.VisibilityPublic),
				familytest.Project("acme", "site", 20, "acme", v1alpha1.VisibilityPublic), twin,
				familytest.InGroup("acme", "acme", "mary", v1alpha1.RoleOwner), familytest.InGroup("acme", "other", "mary", v1alpha1.RoleOwner),
			)
			f.Keep(familytest.Repositories(t, f.Catalog))
			f.Serve(projects.New(f.Kit).Table())
			f.BeforePatch("site", func() { c.meanwhile(t, f) })
			if got := f.As("mary", c.request, c.body).String(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			var p v1alpha1.Project
			f.Named(&p, "acme/site")
			if s := p.Spec; s.GroupRef.Name != "acme" || s.Path != "site" || s.Visibility != v1alpha1.VisibilityPublic || s.Description != "" {
				t.Errorf("got %+v", s)
			}
		})
	}
}
