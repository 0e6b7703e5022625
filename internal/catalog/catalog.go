// Package catalog answers what the declared objects mean together: which project a path names, what role a user has, what is declared for
// a project. It reads the informer cache through indexes, costs no call to the API server, and derives its answers from what is declared,
// so that an answer never lags behind a status that a controller has still to write. What is looked up of one kind alone is in the package
// of that kind, in functions that take a Catalog.
//
// Objects that it returns are shared with the cache: callers do not change them.
package catalog

import (
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/claim"
)

// ErrNotFound says that nothing in reach of the asker has the name, path or id. What is out of his reach is not told
// apart from what does not exist.
var ErrNotFound = errors.New("not found")

// Catalog reads the declared objects.
type Catalog struct {
	reader    client.Reader
	rootRules []RootGroupRule
	// revisions is nil when nothing is remembered.
	revisions Revisions
	// indexed is nil when only the reader is asked.
	indexed Indexed
	// recalled are the roles of users; nil where nothing is remembered.
	recalled *Memory[rolesIn, Roles]
	// register is of the process that takes claims.
	register claim.Register
}

// New returns a catalog on reader, a cache that has the Indexes. Without rules every namespace may hold root groups.
func New(reader client.Reader, rules ...RootGroupRule) *Catalog {
	c := &Catalog{reader: reader, rootRules: rules}
	c.recalled = NewMemory[rolesIn, Roles](c, maxRoles, &v1alpha1.Membership{}, &v1alpha1.User{})
	return c
}

// Indexed has the objects that the reader of a catalog reads, by their Go types as in "*v1alpha1.Group"; an informer.Factory does. It
// reports false when the reader must be asked.
type Indexed interface {
	ByIndex(kind, index, key string) (found []any, ok bool)
}

// LookUpIn has the catalog look up in the indexes itself: where nothing or little is found, most of what the reader does is beside that.
func (c *Catalog) LookUpIn(indexed Indexed) { c.indexed = indexed }

// IgnoreNotFound returns nil for ErrNotFound, and other errors as they are.
func IgnoreNotFound(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
