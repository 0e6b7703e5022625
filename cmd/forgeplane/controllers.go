package main

import (
	"fmt"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/forgeplane/forgeplane/controllers/accesstoken"
	"github.com/forgeplane/forgeplane/controllers/deploykey"
	"github.com/forgeplane/forgeplane/controllers/group"
	"github.com/forgeplane/forgeplane/controllers/membership"
	"github.com/forgeplane/forgeplane/controllers/project"
	"github.com/forgeplane/forgeplane/controllers/protectedbranch"
	"github.com/forgeplane/forgeplane/controllers/repositorystorage"
	"github.com/forgeplane/forgeplane/controllers/user"
)

// addControllers adds the controllers of all kinds to mgr.
func addControllers(mgr ctrl.Manager, o *options, s shared) error {
	c, clk := mgr.GetClient(), clock.RealClock{}
	events := mgr.GetEventRecorder("forgeplane")
	all := []interface {
		SetupWithManager(mgr ctrl.Manager, o controller.Options) error
	}{
		user.New(c, events, s.catalog, s.ids),
		accesstoken.New(c, events, s.catalog, s.ids, clk, o.namespace),
		repositorystorage.New(c, events, s.catalog),
		group.New(c, events, s.catalog, s.ids),
		project.New(c, events, s.catalog, s.ids, s.repositories, project.Options{
			Secrets: mgr.GetAPIReader(), Clock: clk, AllowFileImport: o.development,
		}),
		membership.New(c, events, s.catalog, clk),
		deploykey.New(c, events, s.catalog, s.ids),
		protectedbranch.New(c, events, s.catalog, s.ids, s.repositories),
	}
	for _, one := range all {
		if err := one.SetupWithManager(mgr, controller.Options{MaxConcurrentReconciles: o.concurrency}); err != nil {
			return fmt.Errorf("setting up %T: %w", one, err)
		}
	}
	return nil
}
