package jobtoken_test

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	. "github.com/forgeplane/forgeplane/internal/catalog/catalogtest/objects"
	"github.com/forgeplane/forgeplane/internal/jobtoken"
)

func TestScopeOf_returnsOldestScopeInNamespace(t *testing.T) {
	g := NewWithT(t)
	world, web := TenantWorld(t)
	c := world.Catalog()
	scope, err := c.ProjectScope(t.Context(), web)
	g.Expect(err).NotTo(HaveOccurred())
	holder := func() string {
		s, err := jobtoken.ScopeOf(t.Context(), c, scope)
		g.Expect(err).NotTo(HaveOccurred())
		if s == nil {
			return ""
		}
		return s.Name
	}
	world.Put(JobTokenScope("b", "foreign", ByPath("acme/sub/web")), JobTokenScope("a", "other", ByName("other")))
	g.Expect(holder()).To(BeEmpty())
	first, second := JobTokenScope("a", "first", ByID(100)), JobTokenScope("a", "second", ByName("web"))
	world.Put(first, second)
	g.Expect(holder()).To(Equal("first"))
	world.Remove(first)
	g.Expect(holder()).To(Equal("second"))
}

func TestAllowed_resolvesEntries(t *testing.T) {
	g := NewWithT(t)
	world, web := TenantWorld(t)
	c := world.Catalog()
	broken := Project("b", "astray", ByName("orphan"), Known(201))
	leaving := Project("b", "leaving", ByName("bolt"), Known(202))
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	world.Put(Group("b", "orphan", Below(ByPath("no/where"))), broken, leaving)
	for _, tt := range []struct {
		ref  v1alpha1.Reference
		want string
	}{
		{ByName("web"), "acme/sub/web"}, {ByPath("bolt/web"), "bolt/web"}, {ByPath("BOLT/WEB"), "bolt/web"}, {ByID(200), "bolt/web"}, {ByID(101), "acme/sub/other"},
		{ByName("elsewhere"), ""}, {ByPath("bolt"), ""}, {ByPath("bolt/none"), ""}, {ByID(999), ""},
		{ByID(201), ""}, {ByPath("orphan/astray"), ""}, {ByID(202), ""}, {ByPath("bolt/leaving"), ""},
	} {
		s := JobTokenScope("a", "s", ByName("web"), tt.ref)
		got, err := jobtoken.Allowed(t.Context(), c, s, s.Spec.Allowlist[0])
		if tt.want == "" {
			g.Expect(err).To(MatchError(catalog.ErrNotFound), "%+v", tt.ref)
			g.Expect(err).To(MatchError(HaveSuffix("project "+catalog.Show(tt.ref)+": not found")), "%+v", tt.ref)
		} else {
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got.Path()).To(Equal(tt.want))
		}
		for _, p := range []*v1alpha1.Project{web, broken, leaving, get(t, world.Reader(), "b", "web"), get(t, world.Reader(), "a", "other")} {
			allowed, err := jobtoken.Allows(t.Context(), c, s, p)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(allowed).To(Equal(tt.want != "" && got.Project.UID == p.UID), "%+v: %s", tt.ref, p.Name)
		}
	}
}

// A project that takes over the path or id of an allowed project must not inherit its access, except in the namespace of the scope.
func TestAllows_refusesReplacementInAnotherNamespace(t *testing.T) {
	g := NewWithT(t)
	world, web := TenantWorld(t)
	c := world.Catalog()
	foreign := get(t, world.Reader(), "b", "web")
	led := func(ref v1alpha1.Reference, uid types.UID) v1alpha1.Reference {
		ref.UID = string(uid)
		return ref
	}
	for _, tt := range []struct {
		name           string
		entry, led     v1alpha1.Reference
		project        *v1alpha1.Project
		in, isReplaced bool
	}{
		{"never seen", ByPath("bolt/web"), v1alpha1.Reference{}, foreign, true, false},
		{"the same", ByPath("bolt/web"), led(ByPath("bolt/web"), foreign.UID), foreign, true, false},
		{"another project by path", ByPath("bolt/web"), led(ByPath("bolt/web"), "former"), foreign, false, true},
		{"another project by id", ByID(200), led(ByID(200), "former"), foreign, false, true},
		{"declared by another reference since", ByID(200), led(ByPath("bolt/web"), "former"), foreign, true, false},
		{"named by its uid", led(ByPath("bolt/web"), foreign.UID), led(ByPath("bolt/web"), "former"), foreign, true, false},
		{"another project of the same namespace", ByPath("acme/sub/web"), led(ByPath("acme/sub/web"), "former"), web, true, false},
	} {
		s := JobTokenScope("a", "s", ByName("web"), tt.entry)
		s.Status.RecordedAllowlist = []v1alpha1.AllowlistEntry{{ProjectRef: tt.led}}
		allowed, err := jobtoken.Allows(t.Context(), c, s, tt.project)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(allowed).To(Equal(tt.in), tt.name)
		_, err = jobtoken.Allowed(t.Context(), c, s, s.Spec.Allowlist[0])
		g.Expect(errors.Is(err, jobtoken.ErrEntryReplaced)).To(Equal(tt.isReplaced), tt.name)
		g.Expect(errors.Is(err, catalog.ErrNotFound)).To(Equal(!tt.in), tt.name)
	}
}

func TestDecide_letsInProjectsBelowAllowedGroups(t *testing.T) {
	g := NewWithT(t)
	for _, tt := range []struct {
		name  string
		entry v1alpha1.Reference
		led   types.UID
		want  jobtoken.Outcome
	}{
		{"their group", ByPath("acme/sub"), "", jobtoken.AsUser},
		{"a group above it", ByPath("acme"), "", jobtoken.AsUser},
		{"another group", ByPath("bolt"), "", jobtoken.Refused},
		{"a group that does not exist", ByPath("no/where"), "", jobtoken.Refused},
		{"a path that led to another group before", ByPath("acme"), "former", jobtoken.Refused},
	} {
		world, web := TenantWorld(t)
		c := world.Catalog()
		target, err := c.ProjectScope(t.Context(), get(t, world.Reader(), "b", "web"))
		g.Expect(err).NotTo(HaveOccurred())
		s := JobTokenScope("b", "s", ByName("web"))
		s.Spec.GroupAllowlist = []v1alpha1.GroupAllowlistEntry{{GroupRef: tt.entry}}
		if tt.led != "" {
			led := tt.entry
			led.UID = string(tt.led)
			s.Status.RecordedGroups = []v1alpha1.Reference{led}
		}
		world.Put(s)
		got, err := jobtoken.NewScopes(c).Decide(t.Context(), web, target, jobtoken.Rights{User: true})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(Equal(tt.want), tt.name)
	}
}

func get(t *testing.T, r client.Reader, namespace, name string) *v1alpha1.Project {
	t.Helper()
	var p v1alpha1.Project
	if err := r.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &p); err != nil {
		t.Fatal(err)
	}
	return &p
}
