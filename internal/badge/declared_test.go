package badge_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/badge"
	"github.com/forgeplane/forgeplane/internal/catalog"
	. "github.com/forgeplane/forgeplane/internal/catalog/catalogtest/objects"
)

func TestBadges_areListedForProjectAndItsGroups(t *testing.T) {
	g := NewWithT(t)
	world, web := TenantWorld(t)
	to := func(r v1alpha1.Reference) *v1alpha1.Reference { return &r }
	world.Put(
		Badge("a", "above", 5, nil, to(ByPath("acme"))), Badge("a", "own", 4, to(ByID(100)), nil), Badge("a", "group", 3, nil, to(ByName("sub"))),
		Badge("a", "by-path", 2, to(ByPath("ACME/sub/web")), nil),
		Badge("a", "other", 6, to(ByName("other")), nil), Badge("b", "foreign", 7, to(ByPath("acme/sub/web")), nil), Badge("b", "foreign-group", 8, nil, to(ByPath("acme"))),
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
	g.Expect(names(badge.All(t.Context(), c, scope))).To(Equal([]string{"above", "own", "group", "by-path"}))
	g.Expect(names(badge.Own(t.Context(), c, scope))).To(Equal([]string{"own", "by-path"}))
	g.Expect(names(badge.Own(t.Context(), c, catalog.Scope{Groups: scope.Groups}))).To(Equal([]string{"group"}))

	// The ids decide between badges of the same second.
	for _, b := range []*v1alpha1.Badge{Badge("a", "z", 11, to(ByName("web")), nil), Badge("a", "y", 12, to(ByName("web")), nil), Badge("a", "x", 10, to(ByName("web")), nil)} {
		b.CreationTimestamp = metav1.Time{Time: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
		world.Put(b)
	}
	g.Expect(names(badge.All(t.Context(), c, scope))).To(Equal([]string{"above", "own", "group", "by-path", "x", "z", "y"}))
}
