package forge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

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
	"github.com/forgeplane/forgeplane/controllers"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/ids"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// Running is a process of Forgeplane that runs the controllers of all kinds, with a cache of its own.
type Running struct {
	// Writes are the requests of this process that change something.
	Writes Writes

	forge  *Forge
	cache  client.Reader
	stop   func()
	queues queues
}

// Run starts the controllers, which run until the end of the spec or Stop. During that time verbs do not reconcile. Verbs that change
// something wait until the controllers are idle, so that only the change itself can lead to what is expected next.
func (f *Forge) Run() *Running {
	GinkgoHelper()
	Expect(f.running).To(BeNil(), "the controllers run already")
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	r := &Running{forge: f, queues: queues{all: map[string]*queue{}}}
	mgr, informers := f.cluster.newManager(ctx, &r.Writes)
	r.cache = mgr.GetCache()
	cat := catalog.New(mgr.GetCache(), f.options.RootGroups...)
	cat.LookUpIn(informers)
	Expect(controllers.Parts{
		Client: mgr.GetClient(), Secrets: mgr.GetAPIReader(), Events: mgr.GetEventRecorder("forgeplane"), Catalog: cat,
		IDs:          ids.New(mgr.GetCache(), mgr.GetAPIReader(), mgr.GetClient(), PlatformNamespace, f.options.IDs),
		Repositories: repository.New(f.engine, cat), Clock: f.Clock, Namespace: PlatformNamespace, AllowFileImport: f.options.AllowFileImport,
		Egress: f.egress, Mirrors: f.options.Mirrors, Retention: f.options.Retention, Audit: f.options.Audit,
	}.AddTo(mgr, controller.Options{MaxConcurrentReconciles: 10, NewQueue: r.queues.add})).To(Succeed())
	r.stop = f.cluster.start(mgr)
	f.running, f.ran = r, true
	return r
}

// Stop ends the process in an orderly way.
func (r *Running) Stop() {
	GinkgoHelper()
	r.stop()
	r.forge.running = nil
}

// ExpectIdle expects that every object has been reconciled, that the process has seen all objects, and that only delayed work is left.
func (r *Running) ExpectIdle() {
	GinkgoHelper()
	Eventually(r.unrest).WithTimeout(waitTimeout).WithPolling(polling).Should(Succeed(), "the controllers have work to do")
}

// unrest returns the work that is left or was done meanwhile.
func (r *Running) unrest() error {
	ctx, cancel := context.WithTimeout(context.Background(), waitTimeout)
	defer cancel()
	before := r.queues.worked()
	// The API server takes its time for each of these lists, to be sure that it knows the latest.
	all := v1alpha1.Kinds()
	behind := make([]error, len(all))
	var lists sync.WaitGroup
	for i := range all {
		lists.Go(func() { behind[i] = r.behind(ctx, all[i]) })
	}
	lists.Wait()
	if err := errors.Join(append(behind, r.queues.busy())...); err != nil {
		return err
	}
	if after := r.queues.worked(); after != before {
		return fmt.Errorf("%d objects were reconciled just now", after-before)
	}
	return nil
}

// behind returns which objects of a kind were not reconciled yet, or are not what the cache shows.
func (r *Running) behind(ctx context.Context, kind v1alpha1.Object) error {
	name := r.forge.kind(kind)
	there, shown := kind.NewList(), kind.NewList()
	if err := r.forge.cluster.live.List(ctx, there); err != nil {
		return err
	}
	if err := r.cache.List(ctx, shown); err != nil {
		return err
	}
	versions := map[client.ObjectKey]string{}
	_ = meta.EachListItem(shown, func(o runtime.Object) error {
		versions[client.ObjectKeyFromObject(o.(client.Object))] = o.(client.Object).GetResourceVersion()
		return nil
	})
	return meta.EachListItem(there, func(o runtime.Object) error {
		obj := o.(client.Object)
		key := client.ObjectKeyFromObject(obj)
		switch {
		case versions[key] != obj.GetResourceVersion() || len(versions) != meta.LenList(there):
			return fmt.Errorf("the cache is behind with %s %s", name, key)
		case !r.queues.did(name, key):
			return fmt.Errorf("%s %s was not reconciled yet", name, key)
		}
		return nil
	})
}

// ExpectRestartWritesNothing starts the controllers, again if they run, and expects that they leave every object and every
// repository as it is.
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

// queue is the one that a controller works on by default, and remembers what was done.
type queue struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	lock   sync.Mutex
	active int
	worked int
	done   map[client.ObjectKey]bool
}

func (q *queues) add(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.all[name] = &queue{
		PriorityQueue: priorityqueue.New(name, func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = limiter }),
		done:          map[client.ObjectKey]bool{},
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

// worked is how often any object was worked on.
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

// busy returns what is still to be done, if anything.
func (q *queues) busy() error {
	q.lock.Lock()
	defer q.lock.Unlock()
	for name, one := range q.all {
		one.lock.Lock()
		active := one.active
		one.lock.Unlock()
		if n := one.Len() + active; n > 0 {
			return fmt.Errorf("%d objects are still in the queue %s", n, name)
		}
	}
	return nil
}

// GetWithPriority counts what is being worked on.
func (q *queue) GetWithPriority() (item reconcile.Request, priority int, shutdown bool) {
	item, priority, shutdown = q.PriorityQueue.GetWithPriority()
	if !shutdown {
		q.lock.Lock()
		defer q.lock.Unlock()
		q.active++
	}
	return item, priority, shutdown
}

// Done remembers what was worked on.
func (q *queue) Done(item reconcile.Request) {
	q.PriorityQueue.Done(item)
	q.lock.Lock()
	defer q.lock.Unlock()
	q.active--
	q.worked++
	q.done[item.NamespacedName] = true
}
