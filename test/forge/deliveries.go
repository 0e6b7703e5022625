package forge

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// deliveries record which objects of Forgeplane's kinds the event handlers of a cache have seen. A cache shows a change before its handlers, each in a goroutine
// of its own, have added work to the queues, so neither the cache nor the queues tell whether more work is about to come.
type deliveries struct {
	lock   sync.Mutex
	byKind map[string][]*delivery
}

func newDeliveries() *deliveries { return &deliveries{byKind: map[string][]*delivery{}} }

// newCache is a cache.NewCacheFunc.
func (d *deliveries) newCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	of, err := cache.New(config, options)
	return deliveringCache{Cache: of, scheme: options.Scheme, deliveries: d}, err
}

// outstanding returns an error if a handler has not seen the objects of a kind in the given versions.
func (d *deliveries) outstanding(kind string, stored map[client.ObjectKey]string) error {
	d.lock.Lock()
	defer d.lock.Unlock()
	for _, one := range d.byKind[kind] {
		if seen := one.all(); !maps.Equal(seen, stored) {
			return fmt.Errorf("a handler has seen the kind %s in the versions %v, and they are %v", kind, seen, stored)
		}
	}
	return nil
}

// deliveringCache is a cache whose informers record deliveries.
type deliveringCache struct {
	cache.Cache
	scheme     *runtime.Scheme
	deliveries *deliveries
}

func (c deliveringCache) GetInformer(ctx context.Context, obj client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	of, err := c.Cache.GetInformer(ctx, obj, options...)
	if err != nil {
		return nil, err
	}
	gvk, err := apiutil.GVKForObject(obj, c.scheme)
	return deliveringInformer{Informer: of, kind: gvk.Kind, deliveries: c.deliveries}, err
}

// deliveringInformer wraps the handlers that controllers add.
type deliveringInformer struct {
	cache.Informer
	kind       string
	deliveries *deliveries
}

func (i deliveringInformer) AddEventHandlerWithOptions(
	handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	one := &delivery{to: handler, versions: map[client.ObjectKey]string{}}
	i.deliveries.lock.Lock()
	i.deliveries.byKind[i.kind] = append(i.deliveries.byKind[i.kind], one)
	i.deliveries.lock.Unlock()
	return i.Informer.AddEventHandlerWithOptions(one, options)
}

// delivery is a handler that remembers the objects that it has passed on.
type delivery struct {
	to       toolscache.ResourceEventHandler
	lock     sync.Mutex
	versions map[client.ObjectKey]string
}

func (d *delivery) all() map[client.ObjectKey]string {
	d.lock.Lock()
	defer d.lock.Unlock()
	return maps.Clone(d.versions)
}

func (d *delivery) seen(o any) {
	d.lock.Lock()
	defer d.lock.Unlock()
	obj := o.(client.Object)
	d.versions[client.ObjectKeyFromObject(obj)] = obj.GetResourceVersion()
}

// OnAdd implements the handler.
func (d *delivery) OnAdd(obj any, initial bool) {
	d.to.OnAdd(obj, initial)
	d.seen(obj)
}

// OnUpdate implements the handler.
func (d *delivery) OnUpdate(before, after any) {
	d.to.OnUpdate(before, after)
	d.seen(after)
}

// OnDelete implements the handler.
func (d *delivery) OnDelete(obj any) {
	d.to.OnDelete(obj)
	if unknown, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	d.lock.Lock()
	defer d.lock.Unlock()
	delete(d.versions, client.ObjectKeyFromObject(obj.(client.Object)))
}
