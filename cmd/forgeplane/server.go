package main

import (
	"fmt"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/forgeplane/forgeplane/apiserver"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// addServer adds to mgr what clients talk to, and what follows a push.
func addServer(mgr ctrl.Manager, o *options, cat *catalog.Catalog, repos *repository.Repositories) error {
	observer := repository.NewObserver(repos, mgr.GetClient())
	server, err := apiserver.New(apiserver.Options{
		Address: o.httpAddress, RuntimeDir: o.runtimeDir, HookBinary: o.hookBinary,
		Catalog: cat, Repositories: repos, Clock: clock.RealClock{},
		Log: mgr.GetLogger().WithName("git"), Pushed: observer.Pushed,
	})
	if err != nil {
		return err
	}
	if err := mgr.Add(observer); err != nil {
		return fmt.Errorf("adding the observer of pushes: %w", err)
	}
	if err := mgr.Add(server); err != nil {
		return fmt.Errorf("adding the server: %w", err)
	}
	if err := mgr.AddReadyzCheck("server", server.Ready); err != nil {
		return fmt.Errorf("adding a readiness check: %w", err)
	}
	return nil
}
