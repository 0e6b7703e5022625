// Package catalog answers questions about the declared objects as a whole: which project a path names, which role a user has, what is
// declared for a project. It reads the informer cache through indexes and makes no call to the API server. It derives its answers from
// declarations, so that they never lag behind a status that a controller has yet to write. Lookups that concern a single kind are in the
// package of that kind, in functions that take a Catalog.
//
// The returned objects are shared with the cache: callers must not change them.
package catalog

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/claim"
)

// ErrNotFound says that no visible object has the name, path or id. The caller cannot distinguish an object that is out of reach from one
// that does not exist.
var ErrNotFound = errors.New("not found")

// Catalog reads the declared objects.
type Catalog struct {
	reader    client.Reader
	rootRules []RootGroupRule
	// revisions is nil if no answers are remembered.
	revisions Revisions
	// indexed is nil if only the reader is used.
	indexed Indexed
	// recalled has the roles of users, and recalledShared those in scopes that are shared with groups, which depend on more kinds. They are
	// nil if no answers are remembered.
	recalled, recalledShared *Memory[rolesIn, Roles]
	// register is used by the process that takes claims.
	register claim.Register
}

// New returns a catalog on reader, a cache that has the Indexes. Without rules, every namespace can hold root groups.
func New(reader client.Reader, rules ...RootGroupRule) *Catalog {
	c := &Catalog{reader: reader, rootRules: rules}
	c.recalled = NewMemory[rolesIn, Roles](c, maxRoles, &v1alpha1.Membership{}, &v1alpha1.User{})
	c.recalledShared = NewMemory[rolesIn, Roles](
		c, maxRoles, &v1alpha1.Membership{}, &v1alpha1.User{}, &v1alpha1.Group{}, &v1alpha1.Project{}, &corev1.Namespace{})
	return c
}

// Indexed returns the cached objects of a Go type, such as "*v1alpha1.Group", that the reader of a catalog would return. informer.Factory
// implements it. It reports false if the reader must be used instead.
type Indexed interface {
	ByIndex(kind, index, key string) (found []any, ok bool)
	// ByName returns the object of a kind by its name, or nil.
	ByName(kind string, name types.NamespacedName) (found any, ok bool)
}

// LookUpIn makes the catalog read indexes directly. That is faster than the reader, whose overhead dominates lookups with few or no
// results.
func (c *Catalog) LookUpIn(indexed Indexed) { c.indexed = indexed }

// IgnoreNotFound returns nil for ErrNotFound, and other errors as they are.
func IgnoreNotFound(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
