package catalog_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	. "github.com/forgeplane/forgeplane/internal/catalog/catalogtest/objects"
)

func TestScopeOf(t *testing.T) {
	g := NewWithT(t)
	w, _ := TenantWorld(t)
	c := w.Catalog()
	scope, err := c.ScopeOf(t.Context(), Protecting("a", "p", "main", ByPath("acme/sub/web")))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(scope.Path()).To(Equal("acme/sub/web"))
	g.Expect(scope.Namespace()).To(Equal("a"))
	scope, err = c.ScopeOf(t.Context(), ProtectingBelow("a", "p", "main", ByName("sub")))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(scope.Path()).To(Equal("acme/sub"))
	g.Expect(scope.Project).To(BeNil())
	for _, b := range []*v1alpha1.ProtectedBranch{
		Protecting("b", "p", "main", ByPath("acme/sub/web")), Protecting("b", "p", "main", ByID(100)),
		ProtectingBelow("b", "p", "main", ByPath("acme")), ProtectingBelow("b", "p", "main", ByID(11)),
	} {
		_, err = c.ScopeOf(t.Context(), b)
		g.Expect(err).To(MatchError(catalog.ErrNotFound))
	}
}

func TestLevels_beginWithTheScopeItself(t *testing.T) {
	g := NewWithT(t)
	w, web := TenantWorld(t)
	scope, err := w.Catalog().ProjectScope(t.Context(), web)
	g.Expect(err).NotTo(HaveOccurred())
	paths := func(s catalog.Scope) (all []string) {
		for _, level := range s.Levels() {
			all = append(all, level.Path())
		}
		return all
	}
	g.Expect(paths(scope)).To(Equal([]string{"acme/sub/web", "acme/sub", "acme"}))
	g.Expect(paths(catalog.Scope{Groups: scope.Groups})).To(Equal([]string{"acme/sub", "acme"}))

	project, group := scope.Refs()
	g.Expect(project).To(HaveValue(Equal(catalog.ReferNamed(web))))
	g.Expect(group).To(BeNil())
	project, group = catalog.Scope{Groups: scope.Groups}.Refs()
	g.Expect(project).To(BeNil())
	g.Expect(group).To(HaveValue(Equal(catalog.ReferNamed(scope.Groups[0]))))
}

func TestStanding(t *testing.T) {
	g := NewWithT(t)
	p := Project("a", "web", ByName("acme"))
	seen := map[string]bool{}
	changed := func(what string) {
		t.Helper()
		g.Expect(seen).NotTo(HaveKey(catalog.Standing(p)), what)
		seen[catalog.Standing(p)] = true
	}
	changed("new")
	p.Status.FullPath = "acme/web"
	changed("in place")
	p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady}}
	changed("ready")
	p.Status.FullPath, p.Status.Conditions[0].Reason = "", v1alpha1.ReasonAlreadyExists
	changed("its path is another one's")
	p.Status.Conditions[0].Message = "full path acme/web is held by Group web"
	changed("which is told")
	before := catalog.Standing(p)
	p.Status.HeadCommit, p.Status.SizeBytes = "0123", 7
	g.Expect(catalog.Standing(p)).To(Equal(before), "a push")
	g.Expect(catalog.Standing(&v1alpha1.Group{Status: v1alpha1.GroupStatus{FullPath: "acme"}})).To(Equal("acme"))
	g.Expect(catalog.Standing(User("max", 1))).To(BeEmpty())
}

func TestProjectsBelow_omitsProjectsThatAreNotAdmitted(t *testing.T) {
	g := NewWithT(t)
	acme := Group("a", "acme", Pinned(10))
	c := catalogtest.New(t, acme, Group("a", "sub", Below(ByName("acme"))), Group("b", "bolt"),
		Group("b", "guest", Below(ByPath("acme"))), // not admitted by acme
		Project("a", "web", ByName("acme")), Project("a", "api", ByID(10)), Project("a", "deep", ByPath("acme/sub")),
		Project("b", "app", ByName("bolt")), Project("b", "intruder", ByPath("acme")), Project("b", "lost", ByName("guest")),
	).Catalog()
	found, err := c.ProjectsBelow(t.Context(), acme)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(ConsistOf(HaveField("Name", "web"), HaveField("Name", "api"), HaveField("Name", "deep")))
}
