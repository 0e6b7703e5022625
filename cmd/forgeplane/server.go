package main

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/forgeplane/forgeplane/apiserver"
	"github.com/forgeplane/forgeplane/apiserver/aggregated"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/connection"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/internal/watermark"
)

// addServer adds to mgr what clients talk to, and what follows a push.
func addServer(mgr ctrl.Manager, o *options, s shared) error {
	external, err := o.external()
	if err != nil {
		return err
	}
	var administrators auth.Administrators
	if o.door.open() {
		if administrators, err = aggregated.NewAdministrators(mgr.GetConfig()); err != nil {
			return err
		}
	}
	limits, err := o.rates.limits(o.development)
	if err != nil {
		return err
	}
	observer := repository.NewObserver(s.repositories, mgr.GetClient())
	writers := new(git.Writers)
	keeper, err := repository.NewKeeper(s.repositories, mgr.GetClient(), writers, o.maintenance, metrics.Registry)
	if err != nil {
		return err
	}
	var others *watermark.Watermark
	if !o.single {
		others = watermark.New(s.activity, s.informers, mgr.GetLogger().WithName("watermark"))
	}
	server, err := apiserver.New(apiserver.Options{
		Address: o.httpAddress, RuntimeDir: o.runtimeDir, HookBinary: o.hookBinary,
		ExternalURL: external, Version: version, Namespace: o.namespace, Home: o.home, Targets: s.targets,
		Catalog: s.catalog, Repositories: s.repositories, Client: mgr.GetClient(), Live: mgr.GetAPIReader(), IDs: s.ids, Activity: s.activity, Clock: clock.RealClock{},
		Log: mgr.GetLogger().WithName("server"), Administrators: administrators, RateLimits: limits, Connections: connection.Limits{PerAddress: o.rates.connections, Trusted: limits.TrustedProxies}, Quotas: o.quotas, GitSlots: o.slots.of("git"), Memory: s.requests,
		// The door that leads through kube-apiserver serves the metrics of the generic API server.
		Metrics: []prometheus.Registerer{metrics.Registry, legacyregistry.Registerer()},
		Writers: writers, Others: others, Audit: s.audit,
		Pushed: func(project types.NamespacedName) {
			observer.Pushed(project)
			keeper.Pushed(project)
		},
	})
	if err != nil {
		return err
	}
	if err := mgr.Add(observer); err != nil {
		return fmt.Errorf("adding the observer of pushes: %w", err)
	}
	if err := mgr.Add(keeper); err != nil {
		return fmt.Errorf("adding the maintenance of repositories: %w", err)
	}
	if err := mgr.Add(server); err != nil {
		return fmt.Errorf("adding the server: %w", err)
	}
	if o.door.open() {
		if err := addDoor(mgr, o, s, server); err != nil {
			return fmt.Errorf("adding the server behind kube-apiserver: %w", err)
		}
	}
	if err := mgr.AddReadyzCheck("server", server.Ready); err != nil {
		return fmt.Errorf("adding a readiness check: %w", err)
	}
	return nil
}
