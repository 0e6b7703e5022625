package repository

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus" // the library behind controller-runtime's own metrics
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/upkeep"
)

// Limits are the limits of repository maintenance in one process.
type Limits struct {
	// Concurrency is the maximum number of repositories that are maintained at once. One tenant can have half of it, rounded up. 0 turns
	// maintenance off.
	Concurrency int
	// Timeout is the maximum time for one repository.
	Timeout time.Duration
	// Delay is the time from a push until the repository is maintained. Further pushes do not extend it.
	Delay time.Duration
}

// DefaultLimits use at most one processor for one tenant, and two in total.
var DefaultLimits = Limits{Concurrency: 2, Timeout: time.Hour, Delay: 10 * time.Second}

// Keeper maintains the repositories of projects after pushes, once the pushes were answered. Tenants take turns.
type Keeper struct {
	repositories *Repositories
	client       client.Reader
	limits       Limits
	queue        workqueue.TypedDelayingInterface[types.NamespacedName]
	turns        *turns
	seconds      *prometheus.HistogramVec
}

// NewKeeper returns a keeper, and registers its metrics. Its work yields when the repository is closed.
func NewKeeper(r *Repositories, c client.Reader, l Limits, metrics prometheus.Registerer) (*Keeper, error) {
	k := &Keeper{
		repositories: r, client: c, limits: l, queue: workqueue.NewTypedDelayingQueue[types.NamespacedName](),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "forgeplane_repository_maintenance_duration_seconds",
			Help:    "How long the maintenance of repositories took, by result: done, failed, or interrupted by a move or the end of the process.",
			Buckets: []float64{.01, .05, .1, .5, 1, 5, 10, 60, 300, 1800, 3600},
		}, []string{"result"}),
	}
	k.turns = newTurns(r, c, k.queue, "maintenance", fair.Halves(l.Concurrency), k.work)
	if err := metrics.Register(k.seconds); err != nil {
		return nil, fmt.Errorf("registering the metrics of maintenance: %w", err)
	}
	return k, nil
}

// Pushed schedules maintenance for the repository of a project that something was written to. It does not wait.
func (k *Keeper) Pushed(project types.NamespacedName) {
	if k.limits.Concurrency > 0 {
		k.queue.AddAfter(project, k.limits.Delay)
	}
}

// Ask schedules maintenance for the repository of a project now. It does not wait. It reports false if maintenance is turned off.
func (k *Keeper) Ask(project types.NamespacedName) bool {
	if k.limits.Concurrency == 0 {
		return false
	}
	k.queue.Add(project)
	return true
}

// NeedLeaderElection returns false: each replica maintains the repositories that were pushed to it.
func (k *Keeper) NeedLeaderElection() bool { return false }

// Start maintains repositories until ctx ends.
func (k *Keeper) Start(ctx context.Context) error { return k.turns.run(ctx) }

func (k *Keeper) work(ctx context.Context, project types.NamespacedName) {
	// If this fails, the next push triggers another attempt.
	if err := k.keep(ctx, project); err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "Failed to maintain the repository of a project", "project", project)
	}
}

// keep maintains the repository of a project, if it exists and no other process is maintaining it.
func (k *Keeper) keep(ctx context.Context, project types.NamespacedName) error {
	var p v1alpha1.Project
	if err := k.client.Get(ctx, project, &p); err != nil {
		return client.IgnoreNotFound(err)
	}
	ctx = k.repositories.WithTenant(ctx, &p)
	repo, err := k.repositories.Of(ctx, &p)
	if err != nil {
		return err
	}
	yielding, end, err := repo.BeginYielding(ctx)
	switch {
	case errors.Is(err, git.ErrClosed): // it is being moved, which packs it too
		return nil
	case errors.Is(err, git.ErrNotFound): // it was deleted
		return nil
	case err != nil:
		return err
	}
	defer end()
	limited, cancel := context.WithTimeoutCause(yielding, k.limits.Timeout, fmt.Errorf("it took longer than %s", k.limits.Timeout))
	defer cancel()
	begun, result := time.Now(), "done"
	switch err = upkeep.Maintain(limited, repo); {
	case err == nil:
	case errors.Is(err, upkeep.ErrMaintained): // perhaps the other process began before this push
		k.Pushed(project)
		return nil
	case errors.Is(repo.Check(), git.ErrNotFound): // it was deleted, perhaps during the maintenance
		return nil
	case yielding.Err() != nil:
		result, err = "interrupted", nil
	default:
		result = "failed"
	}
	k.seconds.WithLabelValues(result).Observe(time.Since(begun).Seconds())
	return err
}
