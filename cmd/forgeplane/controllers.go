package main

import (
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/forgeplane/forgeplane/controllers"
)

// addControllers adds the controllers of all kinds to mgr.
func addControllers(mgr ctrl.Manager, o *options, s shared) error {
	return controllers.Parts{
		Client: mgr.GetClient(), Secrets: mgr.GetAPIReader(), Events: mgr.GetEventRecorder("forgeplane"),
		Catalog: s.catalog, IDs: s.ids, Repositories: s.repositories, Clock: clock.RealClock{},
		Namespace: o.namespace, AllowFileImport: o.development,
	}.AddTo(mgr, controller.Options{MaxConcurrentReconciles: o.concurrency})
}
