package catalog_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	. "github.com/forgeplane/forgeplane/internal/catalog/catalogtest/objects"
	"github.com/forgeplane/forgeplane/internal/role"
)

// A replace removes spec.id until the controller restores it. Meanwhile the id in the status counts.
func TestByID_findsObjectWhoseSpecLostItsID(t *testing.T) {
	g := NewWithT(t)
	byID := func(id int64) v1alpha1.Reference { return v1alpha1.Reference{ID: id} }
	ada := &v1alpha1.User{ObjectMeta: Meta("ada", "", "ada"), Spec: v1alpha1.UserSpec{Username: "ada"}, Status: v1alpha1.UserStatus{ID: 1}}
	acme := &v1alpha1.Group{ObjectMeta: Meta("acme", "ns", "acme"), Spec: v1alpha1.GroupSpec{Path: "acme"}, Status: v1alpha1.GroupStatus{ID: 2}}
	web := &v1alpha1.Project{
		ObjectMeta: Meta("web", "ns", "web"), Spec: v1alpha1.ProjectSpec{Path: "web", GroupRef: byID(2)}, Status: v1alpha1.ProjectStatus{ID: 3},
	}
	inWeb := byID(3)
	member := &v1alpha1.Membership{
		ObjectMeta: Meta("m", "ns", "m"), Spec: v1alpha1.MembershipSpec{UserRef: byID(1), ProjectRef: &inWeb, Role: v1alpha1.RoleMaintainer},
	}
	badge := &v1alpha1.Badge{ObjectMeta: Meta("b", "ns", "b"), Spec: v1alpha1.BadgeSpec{ProjectRef: &inWeb}, Status: v1alpha1.BadgeStatus{ID: 4}}
	c := catalogtest.New(t, ada, acme, web, member, badge).Catalog()
	ctx := t.Context()

	g.Expect(c.ByPath(ctx, "acme/web")).To(HaveField("UID", web.UID), "what names its group by the id")
	g.Expect(catalog.ByID[*v1alpha1.Project](ctx, c, 3)).To(HaveField("UID", web.UID))
	g.Expect(c.ProjectRole(ctx, ada, web, time.Now())).To(Equal(role.Maintainer), "by a membership that names both by their ids")
	g.Expect(catalog.WithID(ctx, c, []*v1alpha1.Badge{badge}, 4)).To(BeIdenticalTo(badge))
	g.Expect(catalog.Refer(web)).To(Equal(v1alpha1.Reference{ID: 3, UID: string(web.UID)}))
}
