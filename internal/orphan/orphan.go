// Package orphan removes objects that were created over REST for a user who no longer exists, because no manifest declares them, and
// nothing else would remove them.
package orphan

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/declare"
	"github.com/forgeplane/forgeplane/internal/frame"
)

// grace is the time for which a new object that was never in force waits for its user: who restores a backup may create the user last, or
// has a reference to mend.
const grace = 24 * time.Hour

// Collector removes orphans. It is safe for use by several goroutines.
type Collector struct {
	client client.Client
	live   client.Reader
	clock  clock.PassiveClock
}

// NewCollector returns a collector. live reads past the cache, which may be behind and does not keep who manages what.
func NewCollector(c client.Client, live client.Reader, clk clock.PassiveClock) *Collector {
	return &Collector{client: c, live: live, clock: clk}
}

// Unresolved is frame.Unresolved for a reference to a user, in a field of the spec of obj. If the user is permanently gone and only
// Forgeplane declares obj, obj is removed: at once if it was in force, and otherwise a day after its creation.
func (c *Collector) Unresolved(ctx context.Context, obj v1alpha1.Object, field string, ref v1alpha1.Reference, err error) error {
	if !errors.Is(err, catalog.ErrNotFound) {
		return frame.Unresolved(field, err)
	}
	again, removeErr := c.remove(ctx, obj, ref)
	if removeErr != nil {
		return removeErr
	}
	return frame.WaitingFor(again, v1alpha1.ReasonReferenceNotFound, "%s: %w", field, err)
}

// remove removes obj if its user is gone for good. again is the time after which to ask again, if it is too early to decide.
func (c *Collector) remove(ctx context.Context, obj v1alpha1.Object, ref v1alpha1.Reference) (again time.Duration, err error) {
	// A reference by name or path also means a later user with that name or path.
	if ref.ID == 0 || !obj.GetDeletionTimestamp().IsZero() {
		return 0, nil
	}
	if there, err := c.exists(ctx, ref); there || err != nil {
		return 0, err
	}
	if left := grace - c.clock.Since(obj.GetCreationTimestamp().Time); left > 0 && !inForce(obj) {
		return left, nil
	}
	return 0, c.Remove(ctx, obj, fmt.Sprintf("was created over REST for user %d, who no longer exists", ref.ID))
}

// Remove removes an object that was created over REST, unless another field manager declares it. The reason is for the audit log.
func (c *Collector) Remove(ctx context.Context, obj client.Object, reason string) error {
	version, err := declare.MadeHere(ctx, c.live, obj)
	if version == "" || err != nil {
		return err
	}
	uid := obj.GetUID()
	told := audit.WithReason(ctx, audit.Event{Action: "remove", Reason: reason})
	err = c.client.Delete(told, obj.DeepCopyObject().(client.Object), client.Preconditions{UID: &uid, ResourceVersion: &version})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing an object that %s: %w", reason, err)
	}
	return nil
}

// inForce reports whether an object was in force when it was last reconciled, so that its user existed. A restored status is older than the
// object, and does not count.
func inForce(obj v1alpha1.Object) bool {
	ready := meta.FindStatusCondition(obj.GetCommonStatus().Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == obj.GetGeneration() &&
		!ready.LastTransitionTime.Time.Before(obj.GetCreationTimestamp().Time)
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
