package catalog_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

func badge(namespace, name string, id int64, project, group *v1alpha1.Reference) *v1alpha1.Badge {
	return &v1alpha1.Badge{
		ObjectMeta: meta("badge", namespace, name),
		Spec:       v1alpha1.BadgeSpec{ID: id, ProjectRef: project, GroupRef: group},
	}
}

func TestAProjectShowsItsBadgesAndThoseOfItsGroups(t *testing.T) {
	g := NewWithT(t)
	world, web := tenantWorld(t)
	to := func(r v1alpha1.Reference) *v1alpha1.Reference { return &r }
	world.Put(
		badge("a", "above", 5, nil, to(byPath("acme"))), badge("a", "own", 4, to(byID(100)), nil), badge("a", "group", 3, nil, to(byName("sub"))),
		badge("a", "by-path", 2, to(byPath("ACME/sub/web")), nil),
		badge("a", "other", 6, to(byName("other")), nil), badge("b", "foreign", 7, to(byPath("acme/sub/web")), nil), badge("b", "foreign-group", 8, nil, to(byPath("acme"))),
	)
	c := world.Catalog()
	scope, err := c.ProjectScope(t.Context(), web)
	g.Expect(err).NotTo(HaveOccurred())
	names := func(all []*v1alpha1.Badge, err error) (names []string) {
		g.Expect(err).NotTo(HaveOccurred())
		for _, b := range all {
			names = append(names, b.Name)
		}
		return names
	}
	g.Expect(names(c.Badges(t.Context(), scope))).To(Equal([]string{"above", "own", "group", "by-path"}))
	g.Expect(names(c.BadgesIn(t.Context(), scope))).To(Equal([]string{"own", "by-path"}))
	g.Expect(names(c.BadgesIn(t.Context(), catalog.Scope{Groups: scope.Groups}))).To(Equal([]string{"group"}))

	// Of one second, the ids tell.
	for _, b := range []*v1alpha1.Badge{badge("a", "z", 11, to(byName("web")), nil), badge("a", "y", 12, to(byName("web")), nil), badge("a", "x", 10, to(byName("web")), nil)} {
		b.CreationTimestamp = metav1.Time{Time: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
		world.Put(b)
	}
	g.Expect(names(c.Badges(t.Context(), scope))).To(Equal([]string{"above", "own", "group", "by-path", "x", "z", "y"}))
}

func TestDefaultBranch(t *testing.T) {
	for name, tt := range map[string]struct {
		p    v1alpha1.Project
		want string
	}{
		"nobody says one":               {v1alpha1.Project{}, "main"},
		"the repository says one":       {v1alpha1.Project{Status: v1alpha1.ProjectStatus{DefaultBranch: "trunk"}}, "trunk"},
		"one is declared":               {v1alpha1.Project{Spec: v1alpha1.ProjectSpec{DefaultBranch: "next"}, Status: v1alpha1.ProjectStatus{DefaultBranch: "trunk"}}, "next"},
		"it is still to be imported":    {v1alpha1.Project{Spec: v1alpha1.ProjectSpec{ImportURL: "https://a"}}, ""},
		"it was imported with this one": {v1alpha1.Project{Spec: v1alpha1.ProjectSpec{ImportURL: "https://a"}, Status: v1alpha1.ProjectStatus{DefaultBranch: "trunk"}}, "trunk"},
	} {
		if got := catalog.DefaultBranch(&tt.p); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}
