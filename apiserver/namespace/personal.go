// Package namespace has the rules for the groups and personal namespaces that callers of the REST API make: their paths, names and owners.
package namespace

import (
	"context"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// Personal reports whether a group holds the personal projects of a user.
func Personal(g *v1alpha1.Group) bool {
	_, ok := g.Labels[v1alpha1.LabelPersonal]
	return ok
}

// PersonalKey returns the key of the group that holds the personal projects of a user. home is the Kubernetes namespace of these groups. The
// name contains the id of the user, because a username can pass to another user. An id can do so only if an administrator pins it: see IsPersonal.
func PersonalKey(u *v1alpha1.User, home string) client.ObjectKey {
	return client.ObjectKey{Namespace: home, Name: v1alpha1.NaturalName("user", id(u.RESTID()))}
}

// PersonalOf returns the group with the key PersonalKey.
func PersonalOf(u *v1alpha1.User, home string) *v1alpha1.Group {
	key := PersonalKey(u, home)
	return &v1alpha1.Group{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{v1alpha1.LabelPersonal: id(u.RESTID())},
			Annotations: map[string]string{v1alpha1.AnnotationPersonal: string(u.UID)},
		},
		Spec: v1alpha1.GroupSpec{
			Path: u.Spec.Username, Name: catalog.DisplayName(u), Visibility: v1alpha1.VisibilityPublic,
		},
	}
}

// IsPersonal reports whether an object is the group of a user's personal projects, and not the group of an earlier user with the same id.
func IsPersonal(ctx context.Context, c *catalog.Catalog, o metav1.Object, u *v1alpha1.User, home string) (bool, error) {
	g, ok := o.(*v1alpha1.Group)
	if !ok || client.ObjectKeyFromObject(g) != PersonalKey(u, home) {
		return false, nil
	}
	if of := g.Annotations[v1alpha1.AnnotationPersonal]; of != "" {
		return of == string(u.UID), nil
	}
	// A restored group lacks the annotation. It belongs to the user who has a membership in it.
	m, err := c.MembershipIn(ctx, u, catalog.Scope{Groups: []*v1alpha1.Group{g}})
	return m != nil, err
}

// FindPersonal returns the group of a user's personal projects, or catalog.ErrNotFound if it does not exist yet.
func FindPersonal(ctx context.Context, c *catalog.Catalog, u *v1alpha1.User, home string) (*v1alpha1.Group, error) {
	g, err := c.Group(ctx, home, v1alpha1.Reference{Name: PersonalKey(u, home).Name})
	if err != nil {
		return nil, err
	}
	own, err := IsPersonal(ctx, c, g, u, home)
	if err == nil && !own {
		err = catalog.ErrNotFound
	}
	return g, err
}

func id(n int64) string { return strconv.FormatInt(n, 10) }
