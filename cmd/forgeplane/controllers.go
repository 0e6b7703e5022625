package main

import (
	"fmt"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/forgeplane/forgeplane/controllers/accesstoken"
	"github.com/forgeplane/forgeplane/controllers/deploykey"
	"github.com/forgeplane/forgeplane/controllers/group"
	"github.com/forgeplane/forgeplane/controllers/membership"
	"github.com/forgeplane/forgeplane/controllers/project"
	"github.com/forgeplane/forgeplane/controllers/protectedbranch"
	"github.com/forgeplane/forgeplane/controllers/repositorystorage"
	"github.com/forgeplane/forgeplane/controllers/user"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/ids"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// addControllers adds the controllers of all kinds to mgr.
func addControllers(mgr ctrl.Manager, o *options, cat *catalog.Catalog, repos *repository.Repositories) error {
	c, clk := mgr.GetClient(), clock.RealClock{}
	events := mgr.GetEventRecorder("forgeplane")
	// The counters are read and written past the cache: an informer for them would ask for more rights than they need.
	direct, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), HTTPClient: mgr.GetHTTPClient(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("connecting for the id counters: %w", err)
	}
	allocator := ids.New(mgr.GetCache(), direct, direct, o.namespace, o.ids)
	all := []interface {
		SetupWithManager(mgr ctrl.Manager, o controller.Options) error
	}{
		user.New(c, events, cat, allocator),
		accesstoken.New(c, events, cat, allocator, clk, o.namespace),
		repositorystorage.New(c, events, cat),
		group.New(c, events, cat, allocator),
		project.New(c, events, cat, allocator, repos, project.Options{
			Secrets: mgr.GetAPIReader(), Clock: clk, AllowFileImport: o.development,
		}),
		membership.New(c, events, cat, clk),
		deploykey.New(c, events, cat, allocator),
		protectedbranch.New(c, events, cat, allocator, repos),
	}
	for _, one := range all {
		if err := one.SetupWithManager(mgr, controller.Options{MaxConcurrentReconciles: o.concurrency}); err != nil {
			return fmt.Errorf("setting up %T: %w", one, err)
		}
	}
	return nil
}
