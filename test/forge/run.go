package forge

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/test/patience"
)

// Running is a process of Forgeplane that runs the controllers of all kinds, with its own cache.
type Running struct {
	// Writes are the requests of this process that change something.
	Writes Writes

	forge      *Forge
	cache      client.Reader
	stop       func()
	queues     queues
	deliveries *deliveries
}

// Run starts the controllers, which run until the end of the spec or Stop. During that time verbs do not reconcile. Verbs that change
// something wait until the controllers are idle, so that only the change itself can lead to what is expected next.
func (f *Forge) Run() *Running {
	GinkgoHelper()
	Expect(f.running).To(BeNil(), "the controllers run already")
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	r := &Running{forge: f, queues: queues{all: map[string]*queue{}}, deliveries: newDeliveries()}
	mgr, informers := f.cluster.newManager(ctx, &r.Writes, r.deliveries)
	r.cache = mgr.GetCache()
	cat := catalog.New(mgr.GetCache(), f.options.RootGroups...)
	cat.LookUpIn(informers)
	parts := f.parts(mgr, mgr.GetClient(), mgr.GetEventRecorder("forgeplane"), cat)
	Expect(parts.AddTo(mgr, controller.Options{MaxConcurrentReconciles: 10, NewQueue: r.queues.add})).To(Succeed())
	r.stop = f.cluster.start(mgr)
	f.running = r
	return r
}

// Stop stops the process gracefully.
func (r *Running) Stop() {
	GinkgoHelper()
	r.stop()
	r.forge.running = nil
}

// ExpectIdle expects that every object has been reconciled, that the process has seen all objects, and that only delayed work is left.
func (r *Running) ExpectIdle() {
	GinkgoHelper()
	Eventually(r.unrest).WithPolling(polling).Should(Succeed(), "the controllers have work to do")
}

// unrest returns the work that is left or was done meanwhile.
func (r *Running) unrest() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience.Wait)
	defer cancel()
	before := r.queues.worked()
	stored, err := r.forge.cluster.stored(ctx)
	if err != nil {
		return err
	}
	for _, kind := range v1alpha1.Kinds() {
		if err := r.behind(ctx, kind, stored[r.forge.kind(kind)]); err != nil {
			return err
		}
	}
	if err := r.queues.busy(); err != nil {
		return err
	}
	if after := r.queues.worked(); after != before {
		return fmt.Errorf("%d objects were reconciled just now", after-before)
	}
	return nil
}

// behind returns an error if objects of a kind were not reconciled yet, or if the cache does not show them as they are stored.
func (r *Running) behind(ctx context.Context, kind v1alpha1.Object, stored map[client.ObjectKey]string) error {
	name := r.forge.kind(kind)
	shown := kind.NewList()
	if err := r.cache.List(ctx, shown); err != nil {
		return err
	}
	versions := map[client.ObjectKey]string{}
	_ = meta.EachListItem(shown, func(o runtime.Object) error {
		versions[client.ObjectKeyFromObject(o.(client.Object))] = o.(client.Object).GetResourceVersion()
		return nil
	})
	if !maps.Equal(versions, stored) {
		return fmt.Errorf("the cache shows the kind %s in the versions %v, and they are %v", name, versions, stored)
	}
	if err := r.deliveries.outstanding(name, stored); err != nil {
		return err
	}
	for key := range stored {
		if !r.queues.did(name, key) {
			return fmt.Errorf("%s %s was not reconciled yet", name, key)
		}
	}
	return nil
}

// ExpectRestartWritesNothing starts the controllers, or restarts them if they run, and expects that they change no object and no repository.
func (f *Forge) ExpectRestartWritesNothing() {
	GinkgoHelper()
	if f.running != nil {
		f.running.ExpectIdle()
		f.running.Stop()
	}
	files := f.tree()
	r := f.Run()
	r.ExpectIdle()
	Expect(r.Writes.All()).To(BeEmpty(), "the controllers wrote something after a restart")
	Expect(f.tree()).To(Equal(files), "the storages after a restart")
}

// queues are the queues of the controllers, by the lower-case name of their kind.
type queues struct {
	lock sync.Mutex
	all  map[string]*queue
}

// queue wraps the default queue of a controller, and records what was done.
type queue struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	lock   sync.Mutex
	active int
	worked int
	done   map[client.ObjectKey]bool
	// added are the objects that wait, from before they are in the queue until after they have been taken out of it.
	added map[reconcile.Request]bool
}

func (q *queues) add(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.all[name] = &queue{
		PriorityQueue: priorityqueue.New(name, func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = limiter }),
		done:          map[client.ObjectKey]bool{},
		added:         map[reconcile.Request]bool{},
	}
	return q.all[name]
}

func (q *queues) did(kind string, key client.ObjectKey) bool {
	q.lock.Lock()
	defer q.lock.Unlock()
	one := q.all[strings.ToLower(kind)]
	if one == nil {
		return false
	}
	one.lock.Lock()
	defer one.lock.Unlock()
	return one.done[key]
}

// worked returns how often each object was reconciled.
func (q *queues) worked() (n int) {
	q.lock.Lock()
	defer q.lock.Unlock()
	for _, one := range q.all {
		one.lock.Lock()
		n += one.worked
		one.lock.Unlock()
	}
	return n
}

// busy returns the work that is left, if any.
func (q *queues) busy() error {
	q.lock.Lock()
	defer q.lock.Unlock()
	for name, one := range q.all {
		one.lock.Lock()
		active := one.active + len(one.added)
		one.lock.Unlock()
		if n := one.Len() + active; n > 0 {
			return fmt.Errorf("%d objects are still in the queue %s", n, name)
		}
	}
	return nil
}

// promptRetries is the number of retries that count as work that is left. They happen within 100 ms, and solve conflicts between writers.
const promptRetries = 4

// AddWithOpts marks the objects as added, unless they are added for later.
func (q *queue) AddWithOpts(o priorityqueue.AddOpts, items ...reconcile.Request) {
	q.lock.Lock()
	defer q.lock.Unlock()
	for _, item := range items {
		if o.After == 0 && (!o.RateLimited || q.NumRequeues(item) < promptRetries) {
			q.added[item] = true
		}
	}
	q.PriorityQueue.AddWithOpts(o, items...)
}

// Add is AddWithOpts for an object that is added at once.
func (q *queue) Add(item reconcile.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, item) }

// AddAfter is AddWithOpts for an object that is added later.
func (q *queue) AddAfter(item reconcile.Request, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, item)
}

// AddRateLimited is AddWithOpts for an object that is tried again.
func (q *queue) AddRateLimited(item reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, item)
}

// GetWithPriority counts the object as work in progress.
func (q *queue) GetWithPriority() (item reconcile.Request, priority int, shutdown bool) {
	item, priority, shutdown = q.PriorityQueue.GetWithPriority()
	if !shutdown {
		q.lock.Lock()
		defer q.lock.Unlock()
		q.active++
		delete(q.added, item)
	}
	return item, priority, shutdown
}

// Done records that the object was reconciled.
func (q *queue) Done(item reconcile.Request) {
	q.PriorityQueue.Done(item)
	q.lock.Lock()
	defer q.lock.Unlock()
	q.active--
	q.worked++
	q.done[item.NamespacedName] = true
}
