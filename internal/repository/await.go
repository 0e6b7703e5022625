package repository

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/fair"
)

// ErrPending says that the repository of a project is still being created. A later retry may succeed.
var ErrPending = errors.New("the repository of the project is still being created")

const (
	// awaitTimeout limits how long a request waits for the repository of a new project.
	awaitTimeout = 15 * time.Second
	// youth is the age of a project up to which requests wait for its repository. An older project without a repository is waiting for an
	// administrator rather than for its turn.
	youth = time.Minute
	// maxWaiters is the maximum number of waiting requests, maxWaitersOf the maximum for one caller, and maxWaitersEach for one project.
	// Callers who have not signed in leave openWaiters to the others.
	maxWaiters, maxWaitersOf, maxWaitersEach, openWaiters = 512, 16, 32, 256
)

// waiters are requests that wait for a project to change, by its UID.
type waiters struct {
	slots *fair.Slots
	count atomic.Int32
	mu    sync.Mutex
	// changed has a channel for each awaited project, which is closed when the project changes.
	changed map[types.UID]*awaited
}

type awaited struct {
	changed chan struct{}
	waiting int
}

// Follow makes Await wait for the projects of a cache, and ends the processes that read a repository when its project uses another shard.
// Call it once, before the cache starts.
func (r *Repositories) Follow(ctx context.Context, c cache.Informers) error {
	informer, err := c.GetInformer(ctx, &v1alpha1.Project{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("following projects: %w", err)
	}
	w := &waiters{changed: map[types.UID]*awaited{}, slots: fair.New("waiting", "requests that wait for a repository", fair.Limits{
		Total: maxWaiters, Share: maxWaitersOf, Reserved: openWaiters,
	})}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(was, now any) {
			w.tell(now)
			r.moved(ctx, was.(*v1alpha1.Project), now.(*v1alpha1.Project))
		},
		DeleteFunc: w.tell,
	})
	if err != nil {
		return fmt.Errorf("following projects: %w", err)
	}
	r.waiters = w
	return nil
}

// moved ends the processes that read the repository of a project on its former shard.
func (r *Repositories) moved(ctx context.Context, was, now *v1alpha1.Project) {
	if was.Status.Storage == "" || was.Status.Storage == now.Status.Storage {
		return
	}
	// If the shard is gone, they end when they are idle.
	if all, err := r.All(ctx, was); err == nil {
		for _, repo := range all {
			repo.Evict()
		}
	}
}

// Await returns the current state of a project as soon as its repository can be used. It waits only for a new project whose controller is
// about to create the repository. In every other case it returns at once, and Of reports the problem. The error is ErrPending after 15
// seconds, if too many requests wait already (of the caller of ctx, for the project, or in total), and if no controller has processed the
// project within a minute of its creation.
func (r *Repositories) Await(ctx context.Context, p *v1alpha1.Project) (*v1alpha1.Project, error) {
	if r.waiters == nil || !pending(p) {
		return p, nil
	}
	if time.Since(p.CreationTimestamp.Time) > youth {
		if looked(p) {
			return p, nil
		}
		return nil, ErrPending
	}
	slot := r.waiters.slots.Try(ctx, 1)
	if slot == nil {
		return nil, ErrPending
	}
	defer slot.Leave()
	bounded, cancel := context.WithTimeoutCause(ctx, awaitTimeout, ErrPending)
	defer cancel()
	for {
		changed, leave, ok := r.waiters.enter(p.UID)
		if !ok {
			return nil, ErrPending
		}
		// Later changes are announced on the channel, and earlier ones are read here.
		now, err := r.catalog.Current(ctx, p)
		if err != nil || !pending(now) {
			leave()
			return now, err
		}
		select {
		case <-changed:
			leave()
		case <-bounded.Done():
			leave()
			return nil, context.Cause(bounded)
		}
	}
}

// pending reports whether a project is known to have no repository yet, but to get one soon.
func pending(p *v1alpha1.Project) bool {
	return p.Status.RefsChecksum == "" && p.Spec.ImportURL == "" && p.DeletionTimestamp.IsZero() &&
		!meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionStalled)
}

// looked reports whether the controller has set any condition on a project.
func looked(p *v1alpha1.Project) bool {
	ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Status != metav1.ConditionUnknown
}

// enter returns a channel that is closed at the next change of a project. The caller must call leave when it stops waiting. ok is false if
// too many requests wait for the project.
func (w *waiters) enter(project types.UID) (changed <-chan struct{}, leave func(), ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.changed[project]
	if a != nil && a.waiting >= maxWaitersEach {
		return nil, nil, false
	}
	if a == nil {
		a = &awaited{changed: make(chan struct{})}
		w.changed[project] = a
	}
	a.waiting++
	w.count.Add(1)
	return a.changed, func() { w.leave(project, a) }, true
}

func (w *waiters) leave(project types.UID, a *awaited) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count.Add(-1)
	if a.waiting--; a.waiting == 0 && w.changed[project] == a {
		delete(w.changed, project)
	}
}

// tell wakes the requests that wait for a project.
func (w *waiters) tell(o any) {
	if w.count.Load() == 0 {
		return
	}
	if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	p, ok := o.(*v1alpha1.Project)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if a := w.changed[p.UID]; a != nil {
		close(a.changed)
		delete(w.changed, p.UID)
	}
}
