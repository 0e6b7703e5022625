package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/forgeplane/forgeplane/apiserver"
	"github.com/forgeplane/forgeplane/apiserver/activity"
	"github.com/forgeplane/forgeplane/apiserver/aggregated"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/avatar"
	"github.com/forgeplane/forgeplane/apiserver/connection"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/internal/watermark"
)

// addServer adds to mgr the server for clients and the observer of pushes.
func addServer(ctx context.Context, mgr ctrl.Manager, o *options, s shared) error {
	external, images, err := o.clients(ctx, mgr, s)
	if err != nil {
		return err
	}
	administrators, err := o.door.administrators(mgr)
	if err != nil {
		return err
	}
	limits, err := o.rates.limits(o.development)
	if err != nil {
		return err
	}
	features, err := o.features.flags(ctx, mgr, o.namespace)
	if err != nil {
		return err
	}
	observer := repository.NewObserver(s.repositories, mgr.GetClient())
	keeper, err := repository.NewKeeper(s.repositories, mgr.GetClient(), o.maintenance, metrics.Registry)
	if err != nil {
		return err
	}
	var others *watermark.Watermark
	if !o.single() {
		others = watermark.New(s.Written, s.informers, mgr.GetLogger().WithName("watermark"))
	}
	server, err := apiserver.New(ctx, apiserver.Options{
		Kit: family.Kit{
			Catalog: s.catalog, Avatars: avatar.New(s.avatars), Artifacts: s.artifacts, Repositories: s.repositories, Maintain: keeper.Ask, Activity: s.Stores, Features: features,
			Quotas: o.quotas, Targets: s.targets, Clock: clock.RealClock{}, Version: versionOf(number, commit), Namespace: o.namespace, Home: o.home,
			Audit: s.audit,
		},
		Address: o.httpAddress, RuntimeDir: o.runtimeDir, HookBinary: o.hookBinary, ExternalURL: external, RESTWrites: o.restWrites,
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), IDs: s.ids, Registry: images, Log: mgr.GetLogger().WithName("server"),
		Administrators: administrators, RateLimits: limits, GitSlots: o.slots.of("git"), Memory: s.requests, Disk: o.slots.onDisk(), Uploads: o.slots.uploads,
		Connections: connection.Limits{PerAddress: o.rates.connections, Trusted: limits.TrustedProxies},
		// The door through kube-apiserver serves the metrics of the generic API server.
		Metrics: []prometheus.Registerer{metrics.Registry, legacyregistry.Registerer()},
		Others:  others,
		Written: func(e change.Event) { observer.Pushed(e.Project); keeper.Pushed(e.Project) },
	})
	if err != nil {
		return err
	}
	for _, part := range []manager.Runnable{observer, keeper, server} {
		if err := mgr.Add(part); err != nil {
			return fmt.Errorf("adding the server: %w", err)
		}
	}
	if o.door.open() {
		groups := virtualGroups(activity.Options{
			Catalog: s.catalog, Stores: s.Stores, WebURL: strings.TrimSuffix(external.String(), "/"), Outdated: others.Outdated,
		})
		if err := addDoor(mgr, o, s, server, groups); err != nil {
			return fmt.Errorf("adding the server behind kube-apiserver: %w", err)
		}
	}
	if err := mgr.AddReadyzCheck("server", server.Ready); err != nil {
		return fmt.Errorf("adding a readiness check: %w", err)
	}
	return nil
}

// administrators decides which Kubernetes identities are administrators. It is nil if no Kubernetes identity can call.
func (d *door) administrators(mgr ctrl.Manager) (auth.Administrators, error) {
	if !d.open() {
		return nil, nil
	}
	return aggregated.NewAdministrators(mgr.GetConfig())
}
