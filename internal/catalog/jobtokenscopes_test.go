package catalog_test

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
)

func jobTokenScope(namespace, name string, of v1alpha1.Reference, allowed ...v1alpha1.Reference) *v1alpha1.JobTokenScope {
	s := &v1alpha1.JobTokenScope{ObjectMeta: meta("jobtokenscope", namespace, name), Spec: v1alpha1.JobTokenScopeSpec{ProjectRef: of}}
	for _, a := range allowed {
		s.Spec.Allowlist = append(s.Spec.Allowlist, v1alpha1.AllowlistEntry{ProjectRef: a})
	}
	return s
}

func TestTheJobTokenScopeOfAProjectIsTheOldestOfItsNamespace(t *testing.T) {
	g := NewWithT(t)
	world, web := tenantWorld(t)
	c := world.Catalog()
	scope, err := c.ProjectScope(t.Context(), web)
	g.Expect(err).NotTo(HaveOccurred())
	holder := func() string {
		s, err := c.JobTokenScopeOf(t.Context(), scope)
		g.Expect(err).NotTo(HaveOccurred())
		if s == nil {
			return ""
		}
		return s.Name
	}
	world.Put(jobTokenScope("b", "foreign", byPath("acme/sub/web")), jobTokenScope("a", "other", byName("other")))
	g.Expect(holder()).To(BeEmpty())
	first, second := jobTokenScope("a", "first", byID(100)), jobTokenScope("a", "second", byName("web"))
	world.Put(first, second)
	g.Expect(holder()).To(Equal("first"))
	world.Remove(first)
	g.Expect(holder()).To(Equal("second"))
}

func TestAnEntryOfAJobTokenScope(t *testing.T) {
	g := NewWithT(t)
	world, web := tenantWorld(t)
	c := world.Catalog()
	broken := project("b", "astray", byName("orphan"), known(201))
	leaving := project("b", "leaving", byName("bolt"), known(202))
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	world.Put(group("b", "orphan", below(byPath("no/where"))), broken, leaving)
	for _, tt := range []struct {
		ref  v1alpha1.Reference
		want string
	}{
		{byName("web"), "acme/sub/web"}, {byPath("bolt/web"), "bolt/web"}, {byPath("BOLT/WEB"), "bolt/web"}, {byID(200), "bolt/web"}, {byID(101), "acme/sub/other"},
		{byName("elsewhere"), ""}, {byPath("bolt"), ""}, {byPath("bolt/none"), ""}, {byID(999), ""},
		{byID(201), ""}, {byPath("orphan/astray"), ""}, {byID(202), ""}, {byPath("bolt/leaving"), ""},
	} {
		s := jobTokenScope("a", "s", byName("web"), tt.ref)
		got, err := c.Allowed(t.Context(), s, s.Spec.Allowlist[0])
		if tt.want == "" {
			g.Expect(err).To(MatchError(catalog.ErrNotFound), "%+v", tt.ref)
			g.Expect(err).To(MatchError(HaveSuffix("project "+catalog.Show(tt.ref)+": not found")), "%+v", tt.ref)
		} else {
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got.Path()).To(Equal(tt.want))
		}
		for _, p := range []*v1alpha1.Project{web, broken, leaving, get(t, world.Reader(), "b", "web"), get(t, world.Reader(), "a", "other")} {
			allowed, err := c.Allows(t.Context(), s, p)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(allowed).To(Equal(tt.want != "" && got.Project.UID == p.UID), "%+v: %s", tt.ref, p.Name)
		}
	}
}

// Whoever gets the path or the id that others have let in gets nothing of that, unless it is in the namespace of who declared it.
func TestAnEntryThatLedToAProject_letsInNoOtherOfAnotherNamespace(t *testing.T) {
	g := NewWithT(t)
	world, web := tenantWorld(t)
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
		{"never seen", byPath("bolt/web"), v1alpha1.Reference{}, foreign, true, false},
		{"the same", byPath("bolt/web"), led(byPath("bolt/web"), foreign.UID), foreign, true, false},
		{"another one by path", byPath("bolt/web"), led(byPath("bolt/web"), "former"), foreign, false, true},
		{"another one by id", byID(200), led(byID(200), "former"), foreign, false, true},
		{"declared in another way since", byID(200), led(byPath("bolt/web"), "former"), foreign, true, false},
		{"named by its uid", led(byPath("bolt/web"), foreign.UID), led(byPath("bolt/web"), "former"), foreign, true, false},
		{"another one of the own namespace", byPath("acme/sub/web"), led(byPath("acme/sub/web"), "former"), web, true, false},
	} {
		s := jobTokenScope("a", "s", byName("web"), tt.entry)
		s.Status.RecordedAllowlist = []v1alpha1.AllowlistEntry{{ProjectRef: tt.led}}
		allowed, err := c.Allows(t.Context(), s, tt.project)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(allowed).To(Equal(tt.in), tt.name)
		_, err = c.Allowed(t.Context(), s, s.Spec.Allowlist[0])
		g.Expect(errors.Is(err, catalog.ErrEntryReplaced)).To(Equal(tt.isReplaced), tt.name)
		g.Expect(errors.Is(err, catalog.ErrNotFound)).To(Equal(!tt.in), tt.name)
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
