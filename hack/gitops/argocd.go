package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/cache"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/diff"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/engine"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync/common"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/kube"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

const (
	// tracking is the annotation by which Argo CD knows what an application has applied.
	tracking = "argocd.argoproj.io/tracking-id"
	// fieldManager is the field manager of Argo CD's application controller.
	fieldManager = "argocd-controller"
)

// argocd synchronizes the objects as an Application with the options prune and ServerSideApply does, without health checks, and then prints what is
// still out of sync.
func argocd(ctx context.Context, config *rest.Config, namespace string, objects []*unstructured.Unstructured, out io.Writer) error {
	id := func(k kube.ResourceKey) string {
		return fmt.Sprintf("forge:%s/%s:%s/%s", k.Group, k.Kind, k.Namespace, k.Name)
	}
	for _, o := range objects {
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[tracking] = id(kube.GetResourceKey(o))
		o.SetAnnotations(annotations)
	}
	live := cache.NewClusterCache(config, cache.SetNamespaces([]string{namespace}), cache.SetLogr(logr.Discard()),
		cache.SetPopulateResourceInfoHandler(func(o *unstructured.Unstructured, _ bool) (any, bool) {
			id := o.GetAnnotations()[tracking]
			return id, id != ""
		}))
	managed := func(r *cache.Resource) bool { return r.Info == id(r.ResourceKey()) }
	e := engine.NewEngine(config, live, engine.WithLogr(logr.Discard()))
	stop, err := e.Run()
	if err != nil {
		return err
	}
	defer stop()
	foreground := metav1.DeletePropagationForeground // Argo CD's default
	results, err := e.Sync(ctx, objects, managed, "HEAD", namespace, sync.WithPrune(true), sync.WithPrunePropagationPolicy(&foreground),
		sync.WithServerSideApply(true), sync.WithServerSideApplyManager(fieldManager), sync.WithLogr(logr.Discard()))
	for _, r := range results {
		fmt.Fprintln(out, r.Status, r.ResourceKey.Kind, r.ResourceKey.Name)
		if r.Status == common.ResultCodeSyncFailed || r.HookPhase.Failed() {
			err = errors.Join(err, fmt.Errorf("%s %s: %s", r.ResourceKey.Kind, r.ResourceKey.Name, r.Message))
		}
	}
	if err != nil {
		return err
	}
	var different []string
	for begun := time.Now(); ctx.Err() == nil; time.Sleep(100 * time.Millisecond) { // the cache follows the cluster
		different, err = differences(live, managed, namespace, objects)
		if err != nil || len(different) == 0 || time.Since(begun) > settleTime {
			break
		}
	}
	for _, d := range different {
		fmt.Fprintln(out, "OutOfSync", d)
	}
	return errors.Join(err, ctx.Err())
}

// settleTime limits the time until an application must be in sync.
const settleTime = 20 * time.Second

// differences returns the objects that Argo CD shows as out of sync.
func differences(live cache.ClusterCache, managed func(*cache.Resource) bool, namespace string, objects []*unstructured.Unstructured) (names []string, err error) {
	found, err := live.GetManagedLiveObjs(objects, managed)
	if err != nil {
		return nil, err
	}
	both := sync.Reconcile(objects, found, namespace, live)
	all, err := diff.DiffArray(both.Target, both.Live, diff.WithLogr(logr.Discard()), diff.WithManager(fieldManager),
		diff.WithStructuredMergeDiff(true), diff.WithGVKParser(live.GetGVKParser()))
	if err != nil {
		return nil, err
	}
	for i, d := range all.Diffs {
		switch target, live := both.Target[i], both.Live[i]; {
		case target == nil:
			names = append(names, live.GetKind()+" "+live.GetName()+" is not pruned")
		case live == nil:
			names = append(names, target.GetKind()+" "+target.GetName()+" does not exist")
		case d.Modified && target.GetKind() == "Secret": // the output must not contain its value
			names = append(names, target.GetKind()+" "+target.GetName())
		case d.Modified:
			names = append(names, fmt.Sprintf("%s %s: %s is not %s", target.GetKind(), target.GetName(), d.NormalizedLive, d.PredictedLive))
		}
	}
	return names, nil
}
