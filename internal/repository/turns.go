package repository

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/internal/fair"
)

// turns is work for projects that nobody waits for, so many at once, in which tenants take turns. Work for one project does not overlap:
// what is asked for meanwhile follows.
type turns struct {
	// due has the projects that there is something to do for.
	due workqueue.TypedInterface[types.NamespacedName]
	// tenant says whom the work for a project is counted for.
	tenant func(ctx context.Context, project types.NamespacedName) fair.Key
	work   func(ctx context.Context, project types.NamespacedName)

	mu    sync.Mutex
	queue *fair.Queue[types.NamespacedName]
	all   sync.WaitGroup
}

// newTurns returns turns in slots that it names, for work for what is due.
func newTurns(
	r *Repositories, c client.Reader, due workqueue.TypedInterface[types.NamespacedName], name string, l fair.Limits,
	work func(ctx context.Context, project types.NamespacedName),
) *turns {
	return &turns{
		due: due, work: work, queue: fair.NewQueue[types.NamespacedName](fair.New(name, name, l)),
		tenant: func(ctx context.Context, project types.NamespacedName) fair.Key { return r.tenantOf(ctx, c, project) },
	}
}

// run works until ctx ends.
func (t *turns) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, t.due.ShutDown)
	defer stop()
	defer t.all.Wait()
	for {
		project, down := t.due.Get()
		if down {
			return
		}
		k := t.tenant(ctx, project)
		t.mu.Lock()
		t.queue.Add(k, project)
		t.dispatch(ctx)
		t.mu.Unlock()
	}
}

// dispatch starts what may start. The caller holds the lock.
func (t *turns) dispatch(ctx context.Context) {
	for ctx.Err() == nil {
		project, hold := t.queue.Next(func(types.NamespacedName) bool { return true })
		if hold == nil {
			return
		}
		t.all.Go(func() {
			t.work(ctx, project)
			t.due.Done(project)
			t.mu.Lock()
			defer t.mu.Unlock()
			t.queue.Done(hold)
			t.dispatch(ctx)
		})
	}
}
