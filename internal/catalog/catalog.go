// Package catalog answers what the declared objects mean together: which project a path names, who a token stands
// for, what role a user has, which protections a branch is under. It reads the informer cache through indexes, costs
// no call to the API server, and derives its answers from what is declared, so that an answer never lags behind a
// status that a controller has still to write.
//
// Objects that it returns are shared with the cache: callers do not change them.
package catalog

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
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
	// memory is nil when nothing is remembered.
	memory *memory
	// register is of the process that takes claims.
	register claim.Register
}

// New returns a catalog on reader, a cache that AddIndexes was called for. Without rules every namespace may hold root groups.
func New(reader client.Reader, rules ...RootGroupRule) *Catalog {
	return &Catalog{reader: reader, rootRules: rules}
}

// object is satisfied by *E for a kind E.
type object[E any] interface {
	*E
	client.Object
}

// list returns the objects of one kind that have any of the keys in an index, each once, uncopied.
func list[E any, P object[E]](ctx context.Context, r client.Reader, l client.ObjectList, items func() []E, index string, keys ...string) ([]P, error) {
	var found []P
	seen := map[types.UID]bool{}
	for _, key := range keys {
		err := r.List(ctx, l, client.MatchingFields{index: key}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, fmt.Errorf("looking up %s %s: %w", index, key, err)
		}
		batch := items()
		for i := range batch {
			o := P(&batch[i])
			if len(keys) == 1 || !seen[o.GetUID()] {
				seen[o.GetUID()] = true
				found = append(found, o)
			}
		}
	}
	return found, nil
}

func (c *Catalog) groups(ctx context.Context, index string, keys ...string) ([]*v1alpha1.Group, error) {
	var l v1alpha1.GroupList
	return list(ctx, c.reader, &l, func() []v1alpha1.Group { return l.Items }, index, keys...)
}

func (c *Catalog) projects(ctx context.Context, index string, keys ...string) ([]*v1alpha1.Project, error) {
	var l v1alpha1.ProjectList
	return list(ctx, c.reader, &l, func() []v1alpha1.Project { return l.Items }, index, keys...)
}

func (c *Catalog) users(ctx context.Context, index string, keys ...string) ([]*v1alpha1.User, error) {
	var l v1alpha1.UserList
	return list(ctx, c.reader, &l, func() []v1alpha1.User { return l.Items }, index, keys...)
}

func (c *Catalog) tokens(ctx context.Context, index string, keys ...string) ([]*v1alpha1.AccessToken, error) {
	var l v1alpha1.AccessTokenList
	return list(ctx, c.reader, &l, func() []v1alpha1.AccessToken { return l.Items }, index, keys...)
}

func (c *Catalog) memberships(ctx context.Context, index string, keys ...string) ([]*v1alpha1.Membership, error) {
	var l v1alpha1.MembershipList
	return list(ctx, c.reader, &l, func() []v1alpha1.Membership { return l.Items }, index, keys...)
}

func (c *Catalog) deployKeys(ctx context.Context, index string, keys ...string) ([]*v1alpha1.DeployKey, error) {
	var l v1alpha1.DeployKeyList
	return list(ctx, c.reader, &l, func() []v1alpha1.DeployKey { return l.Items }, index, keys...)
}

func (c *Catalog) protectedBranches(ctx context.Context, index string, keys ...string) ([]*v1alpha1.ProtectedBranch, error) {
	var l v1alpha1.ProtectedBranchList
	return list(ctx, c.reader, &l, func() []v1alpha1.ProtectedBranch { return l.Items }, index, keys...)
}

func (c *Catalog) triggerTokens(ctx context.Context, index string, keys ...string) ([]*v1alpha1.TriggerToken, error) {
	var l v1alpha1.TriggerTokenList
	return list(ctx, c.reader, &l, func() []v1alpha1.TriggerToken { return l.Items }, index, keys...)
}

// get reads one object by name; an absent one is ErrNotFound.
func (c *Catalog) get(ctx context.Context, key client.ObjectKey, obj client.Object) error {
	if err := c.reader.Get(ctx, key, obj); err != nil {
		if apierrors.IsNotFound(err) {
			return ErrNotFound
		}
		return fmt.Errorf("reading %s: %w", key, err)
	}
	return nil
}

// ProjectsOnStorage returns the projects that have their repository on a shard; for the empty name, those that have none yet.
func (c *Catalog) ProjectsOnStorage(ctx context.Context, storage string) ([]*v1alpha1.Project, error) {
	return c.projects(ctx, IndexStorage, storage)
}

// Storage returns a shard by its name.
func (c *Catalog) Storage(ctx context.Context, name string) (*v1alpha1.RepositoryStorage, error) {
	var s v1alpha1.RepositoryStorage
	if err := c.get(ctx, client.ObjectKey{Name: name}, &s); err != nil {
		return nil, fmt.Errorf("storage %s: %w", name, err)
	}
	return &s, nil
}

// Storages returns all shards.
func (c *Catalog) Storages(ctx context.Context) ([]v1alpha1.RepositoryStorage, error) {
	var l v1alpha1.RepositoryStorageList
	if err := c.reader.List(ctx, &l, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing storages: %w", err)
	}
	return l.Items, nil
}
