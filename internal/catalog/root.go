package catalog

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/claim"
)

// Errors about a group's place at the root.
var (
	// ErrRootNotAllowed says that the installation does not allow this namespace to hold a root group with that path.
	ErrRootNotAllowed = errors.New("this installation does not allow the namespace to have a root group with that path")
	// ErrRootOfUser says that the path is a username, and so reserved for the user's own projects.
	ErrRootOfUser = errors.New("it belongs to the user of that username, for their personal projects")
)

// RootGroupRule allows a namespace to hold root groups.
type RootGroupRule struct {
	// Namespace is the namespace that may hold them.
	Namespace string
	// Path is a pattern for the paths of root groups, in the syntax of path.Match; "*" allows all.
	Path string
}

// MayHoldRootGroup reports whether the installation allows a namespace to hold a root group with this path.
func (c *Catalog) MayHoldRootGroup(namespace, groupPath string) bool {
	if len(c.rootRules) == 0 {
		return true
	}
	for _, r := range c.rootRules {
		if ok, err := path.Match(r.Path, groupPath); err == nil && ok && r.Namespace == namespace {
			return true
		}
	}
	return false
}

// root decides which groups can be at the root, for one path.
type root struct {
	catalog *Catalog
	// user is the user whose username is the path, once they were looked up; nil if there is none.
	user  *v1alpha1.User
	known bool
}

// check returns ErrRootNotAllowed or ErrRootOfUser for a group that must not be at the root. A username is reserved for the group of the
// user's personal projects, unless another group held the path before the user existed.
func (r *root) check(ctx context.Context, g *v1alpha1.Group) error {
	if !r.catalog.MayHoldRootGroup(g.Namespace, g.Spec.Path) {
		return ErrRootNotAllowed
	}
	if claim.Path("", g.Spec.Path).ShownBy(g) {
		return nil
	}
	if !r.known {
		u, err := r.catalog.UserByUsername(ctx, g.Spec.Path)
		if IgnoreNotFound(err) != nil {
			return err
		}
		r.user, r.known = u, true
	}
	if r.user == nil || isPersonal(g, r.user) {
		return nil
	}
	return fmt.Errorf("full path %s: %w", g.Spec.Path, ErrRootOfUser)
}

// isPersonal reports whether a group is marked as the group of a user's personal projects; setting the mark needs a separate permission.
// A restored group lacks the annotation, so the id in the label decides.
func isPersonal(g *v1alpha1.Group, u *v1alpha1.User) bool {
	if of := g.Annotations[v1alpha1.AnnotationPersonal]; of != "" {
		return of == string(u.UID)
	}
	return g.Labels[v1alpha1.LabelPersonal] == strconv.FormatInt(u.RESTID(), 10)
}
