package group

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/declare"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/owner"
)

// ownerDelay is the time in which the server that created a group must create its owner.
const ownerDelay = 10 * time.Second

// +kubebuilder:rbac:groups=forgeplane.dev,resources=memberships,verbs=create

// own creates the owner of a group if the server that created the group was interrupted before it did. It reports whether the request for
// an owner can be removed from the group. A deleted user does not become an owner.
func (c *Controller) own(ctx context.Context, g *v1alpha1.Group) (settled bool, err error) {
	ref, is := owner.Expected(g)
	if !is || c.ownerDue(g) > 0 {
		return false, nil
	}
	u, err := c.frame.Catalog.User(ctx, ref)
	switch {
	case errors.Is(err, catalog.ErrNotFound):
	case err != nil:
		return false, err
	default:
		m := owner.Membership(u, g)
		if err := controllerutil.SetOwnerReference(g, m, c.frame.Client.Scheme()); err != nil {
			return false, fmt.Errorf("setting the owner of Membership %s: %w", m.Name, err)
		}
		// It counts as created over REST, and is deleted with the user.
		if err := c.frame.Client.Create(ctx, m, declare.FieldOwner); err != nil && !apierrors.IsAlreadyExists(err) {
			return false, fmt.Errorf("making %s the owner: %w", u.Spec.Username, err)
		}
	}
	owner.Settle(g)
	return true, nil
}

// awaitOwner schedules a reconcile for the time at which the owner must be created.
func (c *Controller) awaitOwner(_ context.Context, g *v1alpha1.Group) error {
	if _, is := owner.Expected(g); !is {
		return nil
	}
	return frame.RequeueAfter(c.ownerDue(g))
}

func (c *Controller) ownerDue(g client.Object) time.Duration {
	return ownerDelay - c.clock.Since(g.GetCreationTimestamp().Time)
}
