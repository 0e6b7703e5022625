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

// ErrPending says that the repository of a project is still to be made. Whoever asks again a little later may find it.
var ErrPending = errors.New("the repository of the project is still being made")

const (
	// awaitTimeout is how long a request waits for the repository of a project that was made just now.
	awaitTimeout = 15 * time.Second
	// youth is the age of a project up to which requests wait for its repository. An older one that has none is
	// waiting for an administrator rather than for its turn.
	youth = time.Minute
	// maxWaiters is how many requests wait at once, maxWaitersOf how many of them for one caller, and maxWaitersEach for one project.
	// Callers who have not signed in leave openWaiters to the others.
	maxWaiters, maxWaitersOf, maxWaitersEach, openWaiters = 512, 16, 32, 256
)

// waiters are requests that wait for a project to change, by its UID.
type waiters struct {
	slots *fair.Slots
	count atomic.Int32
	mu    sync.Mutex
	// changed has a channel for each project that somebody waits for, which is closed when the project changes.
	changed map[types.UID]*awaited
}

type awaited struct {
	changed chan struct{}
	waiting int
}

// Follow makes Await wait for the projects of a cache. It is called once, before the cache starts.
func (r *Repositories) Follow(ctx context.Context, c cache.Informers) error {
	informer, err := c.GetInformer(ctx, &v1alpha1.Project{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("following projects: %w", err)
	}
	w := &waiters{changed: map[types.UID]*awaited{}, slots: fair.New("waiting", "requests that wait for a repository", fair.Limits{
		Total: maxWaiters, Share: maxWaitersOf, Reserved: openWaiters,
	})}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, now any) { w.tell(now) },
		DeleteFunc: w.tell,
	})
	if err != nil {
		return fmt.Errorf("following projects: %w", err)
	}
	r.waiters = w
	return nil
}

// Await returns a project as soon as its repository can be used, and as it is then. It waits only for a project that was
// made just now and whose controller is about to make the repository; in every other case it returns at once, and what
// is to be said is for Of to find out. The error is ErrPending after 15 seconds, where too many wait already, of the caller of ctx, for
// the project or altogether, and where no controller has looked at the project within a minute of its creation.
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
		// Whatever happens from here on is told, and what happened before is read.
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

// pending reports whether a project has no repository yet and is going to have one soon, as far as is known.
func pending(p *v1alpha1.Project) bool {
	return p.Status.RefsChecksum == "" && p.Spec.ImportURL == "" && p.DeletionTimestamp.IsZero() &&
		!meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionStalled)
}

// looked reports whether the controller has said anything about a project.
func looked(p *v1alpha1.Project) bool {
	ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Status != metav1.ConditionUnknown
}

// enter returns a channel that is closed at the next change of a project; leave is to be called then, or before. ok is false where
// too many wait for the project.
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

// tell wakes those who wait for a project.
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
