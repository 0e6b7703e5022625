package storagemove

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// endLost ends the moves in the history whose objects are gone. Usually a move records its end before its object goes, but somebody can remove
// the finalizer, and the database may not have answered.
func (c *Controller) endLost(ctx context.Context) error {
	if c.options.History == nil {
		return nil
	}
	if err := c.findLost(ctx); err != nil {
		log.FromContext(ctx).Error(err, "Failed to end the moves whose objects are gone")
	}
	return nil
}

func (c *Controller) findLost(ctx context.Context) error {
	open, err := c.options.History.Open(ctx)
	if err != nil || len(open) == 0 {
		return err
	}
	// The history never has a move before its object exists.
	var all v1alpha1.StorageMoveList
	if err := c.options.Live.List(ctx, &all); err != nil {
		return fmt.Errorf("listing moves: %w", err)
	}
	exists := map[types.UID]bool{}
	for i := range all.Items {
		exists[all.Items[i].UID] = true
	}
	for _, was := range open {
		if exists[was.UID] {
			continue
		}
		m := &v1alpha1.StorageMove{Spec: v1alpha1.StorageMoveSpec{ID: was.ID}}
		m.UID, m.Status.Source, m.Status.Destination = was.UID, was.Source, was.Destination
		state := v1alpha1.StorageMoveFailed
		if was.State == v1alpha1.StorageMoveReplicated {
			state = v1alpha1.StorageMoveCleanupFailed
		}
		if err := c.options.History.End(ctx, m, state); err != nil {
			return err
		}
	}
	return nil
}
