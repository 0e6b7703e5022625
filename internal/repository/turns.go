package repository

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/job"
)

// turns runs background work for projects, a limited number at once. Tenants take turns. Work for one project does not overlap: work that
// is requested while it runs follows afterwards.
type turns struct {
	// due has the projects with outstanding work.
	due workqueue.TypedInterface[types.NamespacedName]
	// tenant returns the tenant whose share the work for a project uses.
	tenant func(ctx context.Context, project types.NamespacedName) fair.Key
	work   func(ctx context.Context, project types.NamespacedName)
	jobs   *job.Pool[types.NamespacedName]
}

// newTurns returns turns that process due. The slots have the given name in the metrics.
func newTurns(
	r *Repositories, c client.Reader, due workqueue.TypedInterface[types.NamespacedName], name string, l fair.Limits,
	work func(ctx context.Context, project types.NamespacedName),
) *turns {
	return &turns{
		due: due, work: work, jobs: job.New[types.NamespacedName](job.Options{Name: name, Limits: l, Clock: clock.RealClock{}}),
		tenant: func(ctx context.Context, project types.NamespacedName) fair.Key { return r.tenantOf(ctx, c, project) },
	}
}

// run processes work until ctx ends.
func (t *turns) run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, t.due.ShutDown)
	defer stop()
	var working sync.WaitGroup
	defer working.Wait()
	working.Go(func() { _ = t.jobs.Start(ctx) })
	for {
		project, down := t.due.Get()
		if down {
			return nil
		}
		t.jobs.Begin(project, job.Job{
			Tenant: t.tenant(ctx, project),
			Run: func(ctx context.Context, _ func(string)) error {
				t.work(ctx, project)
				return nil
			},
			Ended: func(context.Context) { t.due.Done(project) },
		})
	}
}
