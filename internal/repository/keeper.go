package repository

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus" // the library that controller-runtime's own metrics are made with
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git"
)

// Limits are those of the maintenance of repositories in one process.
type Limits struct {
	// Concurrency is how many repositories are maintained at once, and half of it, rounded up, how many of one tenant. 0 is for none.
	Concurrency int
	// Timeout is how long it may take for one.
	Timeout time.Duration
	// Delay is the time from a push until the repository is maintained. Pushes meanwhile do not make it longer.
	Delay time.Duration
}

// DefaultLimits take one processor at most for one tenant, and two for all.
var DefaultLimits = Limits{Concurrency: 2, Timeout: time.Hour, Delay: 10 * time.Second}

// Keeper maintains the repositories of projects that were pushed to, after the pushes were answered. Tenants take turns.
type Keeper struct {
	repositories *Repositories
	client       client.Reader
	limits       Limits
	queue        workqueue.TypedDelayingInterface[types.NamespacedName]
	turns        *turns
	seconds      *prometheus.HistogramVec
}

// NewKeeper returns a keeper that gives way to whoever closes a repository. It registers its metrics.
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

// Pushed says that something was written to the repository of a project. It does not wait.
func (k *Keeper) Pushed(project types.NamespacedName) {
	if k.limits.Concurrency > 0 {
		k.queue.AddAfter(project, k.limits.Delay)
	}
}

// NeedLeaderElection is false: each replica looks after what was pushed to it.
func (k *Keeper) NeedLeaderElection() bool { return false }

// Start maintains repositories until ctx ends.
func (k *Keeper) Start(ctx context.Context) error { return k.turns.run(ctx) }

func (k *Keeper) work(ctx context.Context, project types.NamespacedName) {
	// Where it fails, the next push is the next occasion.
	if err := k.keep(ctx, project); err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "Maintaining the repository of a project", "project", project)
	}
}

// keep maintains the repository of a project, if it is there and nobody else does so.
func (k *Keeper) keep(ctx context.Context, project types.NamespacedName) error {
	var p v1alpha1.Project
	if err := k.client.Get(ctx, project, &p); err != nil {
		return client.IgnoreNotFound(err)
	}
	ctx = k.repositories.For(ctx, &p)
	repo, err := k.repositories.Of(ctx, &p)
	if err != nil {
		return err
	}
	yielding, end, err := repo.BeginYielding(ctx)
	switch {
	case errors.Is(err, git.ErrClosed): // whoever moves it leaves it packed
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
	switch err = repo.Maintain(limited); {
	case err == nil:
	case errors.Is(err, git.ErrMaintained): // and perhaps before this push was there
		k.Pushed(project)
		return nil
	case errors.Is(repo.Check(), git.ErrNotFound): // it was deleted, perhaps in the middle
		return nil
	case yielding.Err() != nil:
		result, err = "interrupted", nil
	default:
		result = "failed"
	}
	k.seconds.WithLabelValues(result).Observe(time.Since(begun).Seconds())
	return err
}
