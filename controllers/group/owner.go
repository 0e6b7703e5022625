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

// ownerDelay is how long the server that has made a group is left to make its owner.
const ownerDelay = 10 * time.Second

// +kubebuilder:rbac:groups=forgeplane.dev,resources=memberships,verbs=create

// own makes the owner of a group whose server was cut short before it did, and reports whether the group is not to say so any more.
// A user who is gone owns nothing.
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
		// It is one that REST makes, and goes with the user as those do.
		if err := c.frame.Client.Create(ctx, m, declare.FieldOwner); err != nil && !apierrors.IsAlreadyExists(err) {
			return false, fmt.Errorf("making %s the owner: %w", u.Spec.Username, err)
		}
	}
	owner.Settle(g)
	return true, nil
}

// awaitOwner looks again when it is time to make the owner.
func (c *Controller) awaitOwner(_ context.Context, g *v1alpha1.Group) error {
	if _, is := owner.Expected(g); !is {
		return nil
	}
	return frame.Again(c.ownerDue(g))
}

func (c *Controller) ownerDue(g client.Object) time.Duration {
	return ownerDelay - c.clock.Since(g.GetCreationTimestamp().Time)
}
