package reference

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// StartCache starts a process that only holds all objects of Forgeplane in informers, as any of their controllers must. It returns when the
// informers are complete.
func StartCache(ctx context.Context, kubeconfig string) (*Process, error) {
	p, _, err := start(ctx, "cache", kubeconfig)
	return p, err
}

func holdCache(ctx context.Context, kubeconfig string) error {
	ctrl.SetLogger(zap.New())
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading %s: %w", kubeconfig, err)
	}
	config.QPS = -1
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	all, err := cache.New(config, cache.Options{Scheme: scheme, DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- all.Start(ctx) }()
	for _, kind := range v1alpha1.Kinds() {
		if _, err := all.GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			return err
		}
	}
	if !all.WaitForCacheSync(ctx) {
		return errors.New("the cache did not become complete")
	}
	if err := announce("complete"); err != nil {
		return err
	}
	return <-ended
}
