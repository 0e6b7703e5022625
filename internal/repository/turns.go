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

// turns is work for projects that nobody waits for, so many at once, in which tenants take turns. Work for one project does not overlap:
// what is asked for meanwhile follows.
type turns struct {
	// due has the projects that there is something to do for.
	due workqueue.TypedInterface[types.NamespacedName]
	// tenant says whom the work for a project is counted for.
	tenant func(ctx context.Context, project types.NamespacedName) fair.Key
	work   func(ctx context.Context, project types.NamespacedName)
	jobs   *job.Pool[types.NamespacedName]
}

// newTurns returns turns in slots that it names, for work for what is due.
func newTurns(
	r *Repositories, c client.Reader, due workqueue.TypedInterface[types.NamespacedName], name string, l fair.Limits,
	work func(ctx context.Context, project types.NamespacedName),
) *turns {
	return &turns{
		due: due, work: work, jobs: job.New[types.NamespacedName](job.Options{Name: name, Limits: l, Clock: clock.RealClock{}}),
		tenant: func(ctx context.Context, project types.NamespacedName) fair.Key { return r.tenantOf(ctx, c, project) },
	}
}

// run works until ctx ends.
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
