package main

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/namespace/deletion"
)

const (
	// grace is the time in which requests that were admitted before the deletion of their namespace complete.
	grace = 200 * time.Millisecond
	// firstPause and lastPause limit the pauses after which a namespace that is not empty yet is looked at again. Each pause is twice as long as the one
	// before.
	firstPause, lastPause = 200 * time.Millisecond, 15 * time.Second
)

// namespaces empties the namespaces that are deleted, like the controller of Kubernetes, but with shorter pauses. That controller first waits 5 s
// for the other replicas of kube-apiserver and etcd, which do not exist here, and then some seconds for each round of finalizers.
type namespaces struct {
	deleter deletion.NamespacedResourcesDeleterInterface
	queue   workqueue.TypedRateLimitingInterface[string]
}

func newNamespaces(deleter deletion.NamespacedResourcesDeleterInterface, informer cache.SharedInformer) (*namespaces, error) {
	n := &namespaces{
		deleter: deleter,
		queue:   workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstPause, lastPause)),
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    n.add,
		UpdateFunc: func(_, namespace any) { n.add(namespace) },
	})
	return n, err
}

func (n *namespaces) add(object any) {
	if namespace := object.(*corev1.Namespace); !namespace.DeletionTimestamp.IsZero() {
		n.queue.AddAfter(namespace.Name, grace)
	}
}

// run returns when the context has ended.
func (n *namespaces) run(ctx context.Context) {
	var running sync.WaitGroup
	for range namespaceWorkers {
		running.Go(func() {
			for n.emptyNext(ctx) {
			}
		})
	}
	<-ctx.Done()
	n.queue.ShutDown()
	running.Wait()
}

// emptyNext deletes what is in the next namespace. It returns false when the queue has ended.
func (n *namespaces) emptyNext(ctx context.Context) bool {
	name, ended := n.queue.Get()
	if ended {
		return false
	}
	defer n.queue.Done(name)
	err := n.deleter.Delete(ctx, name)
	if err == nil {
		n.queue.Forget(name)
		return true
	}
	if !errors.As(err, new(*deletion.ResourcesRemainingError)) {
		klog.ErrorS(err, "Failed to empty a namespace", "namespace", name)
	}
	n.queue.AddRateLimited(name)
	return true
}
