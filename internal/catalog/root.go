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

// Errors of a group's place at the root.
var (
	// ErrRootNotAllowed says that the installation lets this namespace hold no root group of that path.
	ErrRootNotAllowed = errors.New("this installation lets the namespace hold no root group of that path")
	// ErrRootOfUser says that the path is a username: the user's own projects are there, or will be.
	ErrRootOfUser = errors.New("it belongs to the user of that username, for their personal projects")
)

// RootGroupRule lets one namespace hold root groups.
type RootGroupRule struct {
	// Namespace that may hold them.
	Namespace string
	// Path is a pattern in the form of path.Match for their paths; "*" for all.
	Path string
}

// MayHoldRootGroup reports whether the installation lets a namespace hold a root group of this path.
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

// root decides which groups can be at the root, under one path.
type root struct {
	catalog *Catalog
	// user is whose username the path is, once it is known; nil for nobody.
	user  *v1alpha1.User
	known bool
}

// check gives ErrRootNotAllowed or ErrRootOfUser for a group that must not be at the root. The path of a user is for the group of their
// personal projects alone, unless another one has held it before there was the user.
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

// isPersonal reports whether a group is marked as that of a user's personal projects, which takes a right of its own. Those of earlier
// versions have the id alone.
func isPersonal(g *v1alpha1.Group, u *v1alpha1.User) bool {
	if of := g.Annotations[v1alpha1.AnnotationPersonal]; of != "" {
		return of == string(u.UID)
	}
	return g.Labels[v1alpha1.LabelPersonal] == strconv.FormatInt(u.RESTID(), 10)
}
