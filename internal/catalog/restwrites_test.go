package catalog_test

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	. "github.com/forgeplane/forgeplane/internal/catalog/catalogtest/objects"
)

func TestLimitedBelow(t *testing.T) {
	refuse := func(s *v1alpha1.ProjectSpec) { s.RESTWrites = v1alpha1.RESTWritesRefuse }
	refuseAll := func(s *v1alpha1.GroupSpec) { s.RESTWrites = v1alpha1.RESTWritesRefuse }
	going := Project("a", "web", ByName("sub"), refuse)
	going.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	for name, tt := range map[string]struct {
		with []client.Object
		want string
	}{
		"nothing":                      {with: []client.Object{Project("a", "web", ByName("sub"))}},
		"a project":                    {[]client.Object{Project("a", "web", ByName("acme"), refuse)}, "acme/web"},
		"a project further down":       {[]client.Object{Project("a", "web", ByPath("acme/sub"), refuse)}, "acme/sub/web"},
		"a group":                      {[]client.Object{Group("a", "deep", Below(ByName("sub")), refuseAll)}, "acme/sub/deep"},
		"a group of another tenant":    {[]client.Object{Group("b", "deep", Below(ByPath("acme/open")), refuseAll)}, "acme/open/deep"},
		"a group that is not admitted": {with: []client.Object{Group("b", "deep", Below(ByPath("acme/sub")), refuseAll)}},
		"another restWrites": {with: []client.Object{
			Project("a", "web", ByName("sub"), func(s *v1alpha1.ProjectSpec) { s.RESTWrites = v1alpha1.RESTWritesRefuseDeclared }),
		}},
		"a project elsewhere":             {with: []client.Object{Group("b", "bolt"), Project("b", "web", ByName("bolt"), refuse)}},
		"a project without a group":       {with: []client.Object{Project("a", "web", ByName("none"), refuse)}},
		"a project of another's path":     {with: []client.Object{Project("a", "web", ByName("sub")), Project("a", "late", ByName("sub"), Placed("web"), refuse)}},
		"a project that is being deleted": {with: []client.Object{going}},
	} {
		t.Run(name, func(t *testing.T) {
			acme := Group("a", "acme", refuseAll)
			c := catalogtest.New(t, append([]client.Object{
				acme, Group("a", "sub", Below(ByName("acme"))), Group("a", "open", Below(ByName("acme")), AdmittingAll),
			}, tt.with...)...).Catalog()
			s, err := c.LimitedBelow(t.Context(), acme, v1alpha1.RESTWritesRefuse)
			if tt.want == "" && !errors.Is(err, catalog.ErrNotFound) || tt.want != "" && (err != nil || s.Path() != tt.want) {
				t.Errorf("got %+v, %v, want %q", s, err, tt.want)
			}
		})
	}
}
