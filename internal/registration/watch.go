package registration

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patrol is the interval at which a Watch looks.
const patrol = 5 * time.Second

// Watch removes the registration of a group when no server of it has renewed its lease for most of a minute, because killed servers cannot do it
// themselves.
// The manager starts it in the leader.
type Watch struct {
	Options
	began time.Time
	signs map[types.UID]sign
}

// sign is the last one of a server, and when it was seen: by one clock, so that it does not matter what others show.
type sign struct {
	version string
	seen    time.Time
}

// NewWatch returns a watch that has seen nothing yet.
func NewWatch(o Options) *Watch { return &Watch{Options: o, signs: map[types.UID]sign{}} }

// NeedLeaderElection is true: one of several replicas suffices.
func (*Watch) NeedLeaderElection() bool { return true }

// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=forgeplane-system,resources=leases,verbs=list;delete,roleName=forgeplane-manager
// +kubebuilder:rbac:groups=apiregistration.k8s.io,resources=apiservices,resourceNames=v4.rest.forgeplane.dev;v1alpha1.activity.forgeplane.dev,verbs=get;delete,roleName=forgeplane-manager

// Start watches until ctx ends.
func (w *Watch) Start(ctx context.Context) error {
	ticker := w.Clock.NewTicker(patrol)
	defer ticker.Stop()
	w.began = w.Clock.Now()
	for {
		if err := w.look(ctx); err != nil && ctx.Err() == nil {
			w.Log.Error(err, "Failed to look for the servers of the aggregated API")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

func (w *Watch) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patrol)
	defer cancel()
	leases, err := w.leases(ctx)
	if err != nil {
		return fmt.Errorf("listing leases: %w", err)
	}
	now, alive := w.Clock.Now(), []coordinationv1.Lease(nil)
	signs := make(map[types.UID]sign, len(leases))
	for i := range leases {
		l := &leases[i]
		last, known := w.signs[l.UID]
		if !known || last.version != l.ResourceVersion {
			last = sign{version: l.ResourceVersion, seen: now}
		}
		if now.Sub(last.seen) < silence {
			alive, signs[l.UID] = append(alive, *l), last
			continue
		}
		if err := w.Client.Delete(ctx, l, client.Preconditions{UID: &l.UID, ResourceVersion: &l.ResourceVersion}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting the lease of a server that no longer exists: %w", err)
		}
	}
	w.signs = signs
	if w.Clock.Since(w.began) < silence {
		return nil
	}
	return w.unregister(ctx, alive...)
}
