// Package owner makes whoever has made a group over REST its owner. The group says so itself until the membership is there, so that a
// server that is killed in between leaves no group that nobody can use.
package owner

import (
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/naturalkey"
)

// Membership declares that a user owns a group that is made for them. They are named by their id, as everywhere: whoever gets their
// username later on, and with it the name of their object, is somebody else. The group's id is in the name because the memberships of a
// group that was deleted may be there for a while when another one is made under its name.
func Membership(u *v1alpha1.User, g *v1alpha1.Group) *v1alpha1.Membership {
	return &v1alpha1.Membership{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: naturalkey.Name(g.Name, id(g.RESTID()), "owner", id(u.RESTID()))},
		Spec: v1alpha1.MembershipSpec{
			UserRef: catalog.Refer(u), GroupRef: ptr.To(catalog.ReferNamed(g)), Role: v1alpha1.RoleOwner,
		},
	}
}

// Expect writes down in a group, which is not made yet, that a user is to own it.
func Expect(g *v1alpha1.Group, u *v1alpha1.User) {
	metav1.SetMetaDataAnnotation(&g.ObjectMeta, v1alpha1.AnnotationOwner, id(u.RESTID())+"/"+string(u.UID))
}

// Expected returns the user who is to own a group and may have no membership yet, and whether there is one.
func Expected(g *v1alpha1.Group) (u v1alpha1.Reference, is bool) {
	value, is := g.Annotations[v1alpha1.AnnotationOwner]
	number, uid, _ := strings.Cut(value, "/")
	u.ID, _ = strconv.ParseInt(number, 10, 64) // nobody has the id 0
	u.UID = uid
	return u, is
}

// Settle forgets in a group who is to own it.
func Settle(g *v1alpha1.Group) { delete(g.Annotations, v1alpha1.AnnotationOwner) }

func id(n int64) string { return strconv.FormatInt(n, 10) }
