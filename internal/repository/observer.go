package repository

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/fair"
)

const (
	// observeTimeout bounds one look at a repository.
	observeTimeout = 2 * time.Minute
	// observations is how many projects are looked at at once, one of each tenant.
	observations = 4
)

// Observer writes into the status of projects what pushes have changed, after the push has been answered. Pushes to
// one project that come fast are folded into one look, and tenants take turns.
type Observer struct {
	repositories *Repositories
	client       client.Client
	queue        workqueue.TypedRateLimitingInterface[types.NamespacedName]
	turns        *turns
}

// NewObserver returns an observer that patches with c.
func NewObserver(r *Repositories, c client.Client) *Observer {
	o := &Observer{
		repositories: r, client: c,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName]()),
	}
	o.turns = newTurns(r, c, o.queue, "observations", fair.Limits{Total: observations, Share: 1}, o.work)
	return o
}

// Pushed says that the refs of a project may have changed. It does not wait.
func (o *Observer) Pushed(project types.NamespacedName) { o.queue.Add(project) }

// NeedLeaderElection is false: each replica observes the pushes that it has served.
func (o *Observer) NeedLeaderElection() bool { return false }

// +kubebuilder:rbac:groups=forgeplane.dev,resources=projects/status,verbs=patch,roleName=forgeplane-apiserver

// Start observes until ctx ends.
func (o *Observer) Start(ctx context.Context) error { return o.turns.run(ctx) }

func (o *Observer) work(ctx context.Context, project types.NamespacedName) {
	err := o.observe(ctx, project)
	switch {
	case err == nil:
		o.queue.Forget(project)
	case !apierrors.IsConflict(err): // else the cache has to learn what somebody else wrote
		log.FromContext(ctx).Error(err, "Observing a project after a push", "project", project)
	}
	if err != nil {
		o.queue.AddRateLimited(project)
	}
}

func (o *Observer) observe(ctx context.Context, name types.NamespacedName) error {
	ctx, cancel := context.WithTimeout(ctx, observeTimeout)
	defer cancel()
	var p v1alpha1.Project
	if err := o.client.Get(ctx, name, &p); err != nil {
		return client.IgnoreNotFound(err)
	}
	ctx = o.repositories.For(ctx, &p)
	before := p.DeepCopy()
	if err := o.repositories.Observe(ctx, &p); err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(p.Status, before.Status) {
		return nil
	}
	// The lock keeps it off the next project of the same name, and from overtaking what was observed later.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := o.client.Status().Patch(ctx, &p, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	return nil
}
