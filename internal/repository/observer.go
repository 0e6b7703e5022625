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
	// observeTimeout limits one observation of a repository.
	observeTimeout = 2 * time.Minute
	// observations is the maximum number of projects that are observed at once. One tenant can have one of them.
	observations = 4
)

// Observer updates the status of projects after pushes, once the pushes were answered. It combines rapid pushes to one project into one
// observation, and tenants take turns.
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

// Pushed schedules an observation of a project whose refs may have changed. It does not wait.
func (o *Observer) Pushed(project types.NamespacedName) { o.queue.Add(project) }

// NeedLeaderElection returns false: each replica observes the pushes that it has served.
func (o *Observer) NeedLeaderElection() bool { return false }

// +kubebuilder:rbac:groups=forgeplane.dev,resources=projects/status,verbs=patch,roleName=forgeplane-apiserver

// Start observes until ctx ends.
func (o *Observer) Start(ctx context.Context) error { return o.turns.run(ctx) }

func (o *Observer) work(ctx context.Context, project types.NamespacedName) {
	err := o.observe(ctx, project)
	switch {
	case err == nil:
		o.queue.Forget(project)
	case !apierrors.IsConflict(err): // otherwise the cache must first receive another writer's change
		log.FromContext(ctx).Error(err, "Failed to update the status of a project after a push", "project", project)
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
	ctx = o.repositories.WithTenant(ctx, &p)
	before := p.DeepCopy()
	if err := o.repositories.Observe(ctx, &p); err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(p.Status, before.Status) {
		return nil
	}
	// The optimistic lock prevents writing to a later project of the same name, and overwriting a newer observation.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := o.client.Status().Patch(ctx, &p, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	return nil
}
