package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/forgeplane/forgeplane/controllers"
	"github.com/forgeplane/forgeplane/internal/egress"
)

// countLater makes one write of a shard's status count all projects that arrive within a second, because thousands can be applied at once.
const countLater = time.Second

// addControllers adds the controllers of all kinds to mgr.
func addControllers(ctx context.Context, mgr ctrl.Manager, o *options, s shared) error {
	proxy, err := egress.NewProxy(ctx, s.targets, egress.DefaultLimits)
	if err != nil {
		return err
	}
	if err := mgr.Add(proxy); err != nil {
		return fmt.Errorf("adding the way out: %w", err)
	}
	return controllers.Parts{
		Client: mgr.GetClient(), Secrets: mgr.GetAPIReader(), Events: mgr.GetEventRecorder("forgeplane"),
		Catalog: s.catalog, IDs: s.ids, Repositories: s.repositories, Clock: clock.RealClock{},
		Namespace: o.namespace, AllowFileImport: o.development, Egress: proxy, Mirrors: o.mirrors, Moves: o.moves, History: s.Moves, Registry: s.registry, Cleanups: o.cleanups, Retention: o.retention.quota(), Audit: s.audit,
		CountLater: countLater, Activity: s.Stores, Metrics: metrics.Registry,
	}.AddTo(mgr, controller.Options{MaxConcurrentReconciles: o.concurrency})
}
