package store_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/declare"
)

const (
	allow, declared, refuse = v1alpha1.RESTWritesAllow, v1alpha1.RESTWritesRefuseDeclared, v1alpha1.RESTWritesRefuse
	byGitOps                = `403 {"message":"403 Forbidden - this is managed by gitops, so a change over REST would be undone: change it there"}`
)

func refusedBy(who string) string {
	return `403 {"message":"403 Forbidden - ` + who + ` does not accept changes over REST: they are declared elsewhere"}`
}

func TestRESTWrites_strictestInForce(t *testing.T) {
	for name, tt := range map[string]struct {
		installation, root, sub, project v1alpha1.RESTWrites
		// ofProject and ofGroup are the answers to a change of a badge that a GitOps tool declares, newOne to a new badge of the project.
		ofProject, ofGroup, newOne string
	}{
		"nothing declared":                  {},
		"all allowed":                       {installation: allow, root: allow, sub: allow, project: allow},
		"the project":                       {project: refuse, ofProject: refusedBy("the project"), ofGroup: refusedBy("the project acme/sub/web"), newOne: refusedBy("the project")},
		"the group":                         {sub: refuse, ofProject: refusedBy("the group acme/sub"), ofGroup: refusedBy("the group acme/sub"), newOne: refusedBy("the group acme/sub")},
		"the group above":                   {root: refuse, ofProject: refusedBy("the group acme"), ofGroup: refusedBy("the group acme"), newOne: refusedBy("the group acme")},
		"looser ones further down":          {root: refuse, sub: declared, project: allow, ofProject: refusedBy("the group acme"), ofGroup: refusedBy("the group acme"), newOne: refusedBy("the group acme")},
		"the nearest of two":                {root: refuse, sub: refuse, ofProject: refusedBy("the group acme/sub"), ofGroup: refusedBy("the group acme/sub"), newOne: refusedBy("the group acme/sub")},
		"what is declared":                  {root: declared, ofProject: byGitOps, ofGroup: byGitOps},
		"what is declared, in the project":  {project: declared, ofProject: byGitOps, ofGroup: byGitOps},
		"the installation":                  {installation: refuse, ofProject: refusedBy("this installation"), ofGroup: refusedBy("this installation"), newOne: refusedBy("this installation")},
		"the installation, for projects":    {installation: declared, project: allow, ofProject: byGitOps, ofGroup: byGitOps},
		"a root group, of the installation": {installation: refuse, root: allow},
	} {
		t.Run(name, func(t *testing.T) {
			root, sub := familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic), familytest.Group("acme", "sub", 11, "acme", v1alpha1.VisibilityPublic)
			web := familytest.Project("acme", "web", 20, "sub", v1alpha1.VisibilityPublic)
			root.Spec.RESTWrites, sub.Spec.RESTWrites, web.Spec.RESTWrites = tt.root, tt.sub, tt.project
			ofGroup := badge("of-group", "", 31)
			ofGroup.Spec.ProjectRef, ofGroup.Spec.GroupRef = nil, &v1alpha1.Reference{Name: "sub"}
			f := familytest.New(t, root, sub, web, badge("of-project", "web", 30), ofGroup)
			backend := store.NewBackend(declare.NewWriter(f.Client, notes{f.Client, ""}, f.IDs), f.Catalog, tt.installation)
			badges := store.ByID(backend, f.Catalog, catalog.ListInScope[*v1alpha1.Badge])
			groups := []*v1alpha1.Group{sub, root}
			change := func(id int64, in catalog.Scope) error {
				_, err := badges.Update(t.Context(), auth.Subject{Scope: in}, id, func(b *v1alpha1.Badge) error {
					b.Spec.Name = "renamed"
					return nil
				})
				return err
			}
			made := badge("made", "web", 0)
			made.Spec.ProjectRef.UID = string(web.UID)
			for of, got := range map[string]struct {
				err  error
				want string
			}{
				"a badge of the project": {change(30, catalog.Scope{Project: web, Groups: groups}), tt.ofProject},
				"a badge of the group":   {change(31, catalog.Scope{Groups: groups}), tt.ofGroup},
				"a new badge":            {badges.Create(t.Context(), made), tt.newOne},
			} {
				if got.want == "" && got.err != nil || got.want != "" && (got.err == nil || got.err.Error() != got.want) {
					t.Errorf("%s: got %v, want %q", of, got.err, got.want)
				}
			}
		})
	}
}

func TestRESTWrites_holdForGroupsAndWhatIsBelow(t *testing.T) {
	root := familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic)
	root.Spec.RESTWrites = refuse
	f := familytest.New(t, root, familytest.Group("acme", "sub", 11, "acme", v1alpha1.VisibilityPublic))
	above := f.Named(&v1alpha1.Group{}, "acme/acme")
	same := func(*v1alpha1.Group) bool { return true }
	below := &v1alpha1.Group{ObjectMeta: metav1.ObjectMeta{Namespace: "acme"}, Spec: v1alpha1.GroupSpec{Path: "new", ParentRef: &above}}
	if err := store.Groups(f.Writer).CreateUnique(t.Context(), below, same, []string{"acme", "new"}); status(err) != 403 {
		t.Errorf("a new subgroup: got %v", err)
	}
	beside := &v1alpha1.Group{ObjectMeta: metav1.ObjectMeta{Namespace: "acme"}, Spec: v1alpha1.GroupSpec{Path: "new"}}
	if err := store.Groups(f.Writer).CreateUnique(t.Context(), beside, same, []string{"new"}); err != nil {
		t.Errorf("a new root group: got %v", err)
	}
	project := familytest.Project("acme", "made", 0, "", v1alpha1.VisibilityPublic)
	project.Spec.GroupRef = above
	if err := store.Projects(f.Writer).Create(t.Context(), project); status(err) != 403 {
		t.Errorf("a new project: got %v", err)
	}
	sub, err := f.Catalog.GroupByPath(t.Context(), "acme/sub")
	if err != nil {
		t.Fatal(err)
	}
	of := auth.Subject{Scope: catalog.Scope{Groups: []*v1alpha1.Group{sub, root}}}
	f.Before = func(verb string, o client.Object) error {
		t.Errorf("%s of %s", verb, o.GetName())
		return nil
	}
	_, err = store.Groups(f.Writer).Update(t.Context(), of, store.Only{}, func(g *v1alpha1.Group) error {
		g.Spec.Description = "changed"
		return nil
	})
	if status(err) != 403 {
		t.Errorf("a subgroup: got %v", err)
	}
	if err := store.Groups(f.Writer).Delete(t.Context(), of, store.Only{}); status(err) != 403 {
		t.Errorf("the removal of a subgroup: got %v", err)
	}
}

func TestCreate_answers404IfItsProjectIsGone(t *testing.T) {
	s := newShop(t, allow)
	b := badge("made", "web", 0)
	b.Spec.ProjectRef.UID = "of another project"
	if err := s.badges.Create(t.Context(), b); status(err) != 404 {
		t.Errorf("got %v", err)
	}
}
