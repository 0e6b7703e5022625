// Package owner makes the creator of a group over REST its owner. An annotation of the group names the creator until the membership exists,
// so that a server that is killed in between does not leave a group without an owner.
package owner

import (
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// Membership returns the membership that makes a user the owner of a group that is created for them. It names users by id: a later user
// with the same username, and so with the same object name, is a different user. Its name contains the group's id, because the memberships
// of a deleted group can still exist when another group of the same name is created.
func Membership(u *v1alpha1.User, g *v1alpha1.Group) *v1alpha1.Membership {
	return &v1alpha1.Membership{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: v1alpha1.NaturalName(g.Name, id(g.RESTID()), "owner", id(u.RESTID()))},
		Spec: v1alpha1.MembershipSpec{
			UserRef: catalog.Refer(u), GroupRef: ptr.To(catalog.ReferNamed(g)), Role: v1alpha1.RoleOwner,
		},
	}
}

// Expect records in a group that is not created yet that a user must become its owner.
func Expect(g *v1alpha1.Group, u *v1alpha1.User) {
	metav1.SetMetaDataAnnotation(&g.ObjectMeta, v1alpha1.AnnotationOwner, id(u.RESTID())+"/"+string(u.UID))
}

// Expected returns the user who must become the owner of a group and may have no membership yet, and whether there is one.
func Expected(g *v1alpha1.Group) (u v1alpha1.Reference, is bool) {
	value, is := g.Annotations[v1alpha1.AnnotationOwner]
	number, uid, _ := strings.Cut(value, "/")
	u.ID, _ = strconv.ParseInt(number, 10, 64) // no user has the id 0
	u.UID = uid
	return u, is
}

// Settle removes the record of Expect from a group.
func Settle(g *v1alpha1.Group) { delete(g.Annotations, v1alpha1.AnnotationOwner) }

func id(n int64) string { return strconv.FormatInt(n, 10) }
