// Package orphan removes what was made over REST for a user who is gone: nobody declares it again, and nobody would take it away.
package orphan

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/declare"
	"github.com/forgeplane/forgeplane/internal/reference"
)

// Collector removes orphans. It is safe for use by several goroutines.
type Collector struct {
	client client.Client
	live   client.Reader
}

// NewCollector returns a collector; live reads past the cache, which may be behind and does not keep who manages what.
func NewCollector(c client.Client, live client.Reader) *Collector {
	return &Collector{client: c, live: live}
}

// Unresolved is reference.Unresolved for a reference to a user, in a field of the spec of obj. Where the user is gone for good, and
// nobody but Forgeplane declares obj, it is removed first.
func (c *Collector) Unresolved(ctx context.Context, obj client.Object, field string, ref v1alpha1.Reference, err error) error {
	if errors.Is(err, catalog.ErrNotFound) {
		if removeErr := c.remove(ctx, obj, ref); removeErr != nil {
			return removeErr
		}
	}
	return reference.Unresolved(field, err)
}

func (c *Collector) remove(ctx context.Context, obj client.Object, ref v1alpha1.Reference) error {
	// Whoever names a user by name or path means whoever has it next as well.
	if ref.ID == 0 || !obj.GetDeletionTimestamp().IsZero() {
		return nil
	}
	if there, err := c.exists(ctx, ref); there || err != nil {
		return err
	}
	version, err := declare.MadeHere(ctx, c.live, obj)
	if version == "" || err != nil {
		return err
	}
	uid := obj.GetUID()
	err = c.client.Delete(ctx, obj.DeepCopyObject().(client.Object), client.Preconditions{UID: &uid, ResourceVersion: &version})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing what was made for a user who is gone: %w", err)
	}
	log.FromContext(ctx).Info("Removed what was made for a user who is gone", "user", ref.ID)
	return nil
}

// exists reports whether there is a user whom a reference may mean.
func (c *Collector) exists(ctx context.Context, ref v1alpha1.Reference) (bool, error) {
	// A replace may have dropped the id, for a moment.
	for _, id := range []string{strconv.FormatInt(ref.ID, 10), ""} {
		var users v1alpha1.UserList
		if err := c.live.List(ctx, &users, client.MatchingFields{catalog.IndexID: id}); err != nil {
			return false, fmt.Errorf("looking for user %d: %w", ref.ID, err)
		}
		for _, u := range users.Items {
			if (id != "" || u.Status.ID == ref.ID) && (ref.UID == "" || ref.UID == string(u.UID)) {
				return true, nil
			}
		}
	}
	return false, nil
}
