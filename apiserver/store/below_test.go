package store_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

func TestGroup_isHeldToRESTWritesBelow(t *testing.T) {
	closed := refusedBy("the project acme/sub/web")
	for name, tt := range map[string]struct {
		change func(*v1alpha1.Group)
		// refuse and declared are the answers if the project has this restWrites.
		refuse, declared string
	}{
		"name and description": {change: func(g *v1alpha1.Group) { g.Spec.Name, g.Spec.Description = "Acme", "changed" }},
		"path":                 {func(g *v1alpha1.Group) { g.Spec.Path = "moved" }, closed, byGitOps},
		"parent":               {func(g *v1alpha1.Group) { g.Spec.ParentRef = &v1alpha1.Reference{Name: "other"} }, closed, byGitOps},
		"visibility":           {func(g *v1alpha1.Group) { g.Spec.Visibility = v1alpha1.VisibilityPublic }, closed, byGitOps},
		"shares": {func(g *v1alpha1.Group) {
			g.Spec.SharedWith = []v1alpha1.Share{{GroupRef: v1alpha1.Reference{Name: "other"}, Role: v1alpha1.RoleOwner}}
		}, closed, byGitOps},
	} {
		for writes, want := range map[v1alpha1.RESTWrites]string{allow: "", refuse: tt.refuse, declared: tt.declared} {
			t.Run(name+", "+string(writes), func(t *testing.T) {
				root := familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPrivate)
				web := familytest.Project("acme", "web", 20, "sub", v1alpha1.VisibilityPrivate)
				web.Spec.RESTWrites = writes
				f := familytest.New(t, root, familytest.Group("acme", "sub", 11, "acme", v1alpha1.VisibilityPublic), web,
					familytest.Group("acme", "other", 12, "", v1alpha1.VisibilityPublic))
				groups := store.Groups(f.WriterReading(notes{f.Client, ""}))
				of := auth.Subject{Scope: catalog.Scope{Groups: []*v1alpha1.Group{root}}}
				changed := 0
				f.Before = func(string, client.Object) error { changed++; return nil }
				_, err := groups.Update(t.Context(), of, store.Only{}, func(g *v1alpha1.Group) error {
					tt.change(g)
					return nil
				})
				if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
					t.Errorf("got %v, want %q", err, want)
				}
				if (want == "") != (changed > 0) {
					t.Errorf("got %d writes", changed)
				}
			})
		}
	}
}

func TestGroup_isHeldToRESTWritesBelowBeforeItHasStatus(t *testing.T) {
	root := familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPrivate)
	root.Status.FullPath = ""
	web := familytest.Project("acme", "web", 20, "", v1alpha1.VisibilityPrivate)
	web.Spec.GroupRef, web.Spec.RESTWrites = v1alpha1.Reference{Path: "acme"}, refuse
	f := familytest.New(t, root, web)
	_, err := store.Groups(f.Writer).Update(t.Context(), auth.Subject{Scope: catalog.Scope{Groups: []*v1alpha1.Group{root}}}, store.Only{},
		func(g *v1alpha1.Group) error {
			g.Spec.Path = "moved"
			return nil
		})
	if want := refusedBy("the project acme/web"); err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestSettingsOfGroup_areHeldToRESTWritesBelow(t *testing.T) {
	for name, tt := range map[string]struct {
		sub, web v1alpha1.RESTWrites
		// added and deleted are the answers to a new badge of the root group, and to the removal of a badge that a GitOps tool declares.
		added, deleted string
	}{
		"nothing declared":    {},
		"Allow":               {sub: allow, web: allow},
		"a group":             {sub: refuse, added: refusedBy("the group acme/sub"), deleted: refusedBy("the group acme/sub")},
		"a project":           {web: refuse, added: refusedBy("the project acme/sub/web"), deleted: refusedBy("the project acme/sub/web")},
		"the strictest":       {sub: declared, web: refuse, added: refusedBy("the project acme/sub/web"), deleted: refusedBy("the project acme/sub/web")},
		"declared ones":       {sub: declared, deleted: byGitOps},
		"declared, a project": {web: declared, deleted: byGitOps},
	} {
		t.Run(name, func(t *testing.T) {
			root, sub := familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic), familytest.Group("acme", "sub", 11, "acme", v1alpha1.VisibilityPublic)
			web := familytest.Project("acme", "web", 20, "sub", v1alpha1.VisibilityPublic)
			sub.Spec.RESTWrites, web.Spec.RESTWrites = tt.sub, tt.web
			there, made := badge("there", "", 30), badge("made", "", 0)
			there.Spec.ProjectRef, there.Spec.GroupRef = nil, &v1alpha1.Reference{Name: "acme"}
			f := familytest.New(t, root, sub, web, there)
			above := f.Named(&v1alpha1.Group{}, "acme/acme")
			made.Spec.ProjectRef, made.Spec.GroupRef = nil, &above
			badges := store.ByID(f.WriterReading(notes{f.Client, ""}), f.Catalog, catalog.ListInScope[*v1alpha1.Badge])
			of := auth.Subject{Scope: catalog.Scope{Groups: []*v1alpha1.Group{root}}}
			for did, got := range map[string]struct {
				err  error
				want string
			}{
				"added":   {badges.Create(t.Context(), made), tt.added},
				"deleted": {badges.Delete(t.Context(), of, 30), tt.deleted},
			} {
				if got.want == "" && got.err != nil || got.want != "" && (got.err == nil || got.err.Error() != got.want) {
					t.Errorf("%s: got %v, want %q", did, got.err, got.want)
				}
			}
		})
	}
}
