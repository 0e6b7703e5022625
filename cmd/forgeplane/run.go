package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/activity"
	"github.com/forgeplane/forgeplane/internal/artifact"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/avatar"
	"github.com/forgeplane/forgeplane/internal/blob"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/egress"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/hook"
	"github.com/forgeplane/forgeplane/internal/ids"
	"github.com/forgeplane/forgeplane/internal/index"
	"github.com/forgeplane/forgeplane/internal/informer"
	"github.com/forgeplane/forgeplane/internal/registration"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// shared are the objects that the parts of the forge share.
type shared struct {
	catalog *catalog.Catalog
	// informers are the informers of the cache.
	informers *informer.Factory
	// direct is a client without the cache, for kinds that no informer watches. Watching them would need more rights.
	direct client.Client
	activity.Stores
	// registry has the images of projects. It is nil if the registry is off.
	registry *registry.Registry
	// audit records every write.
	audit *audit.Log

	// The fields below are nil in a process that is a container registry alone.

	repositories *repository.Repositories
	ids          *ids.Allocator
	blobs        *blob.Store
	// avatars and artifacts are in blobs.
	avatars   *avatar.Store
	artifacts *artifact.Store
	// targets is the policy for connections to hosts that users name.
	targets *egress.Policy
	// requests limits the memory for requests and responses.
	requests *fair.Memory
}

// run runs the parts of the forge until ctx ends.
func run(ctx context.Context, p parts, o *options) (err error) {
	startLogging(o)
	informers := &informer.Factory{}
	mgr, err := newManager(p, o, informers)
	if err != nil {
		return err
	}
	if err := addIndexes(ctx, p, mgr); err != nil {
		return err
	}
	requests := o.slots.requests()
	engine, err := git.NewEngine(ctx, git.Options{
		Binary: o.gitBinary, Limits: o.gitLimits.git(), Slots: o.slots.engine(), Memory: requests, Scratch: o.scratch(p),
	})
	if err != nil {
		return err
	}
	defer engine.Close()
	for _, s := range engine.Slots() {
		if err := metrics.Registry.Register(s); err != nil {
			return fmt.Errorf("registering the metrics of Git: %w", err)
		}
	}
	s, err := share(mgr, o, informers)
	if err != nil {
		return err
	}
	if err := s.shareRepositories(ctx, mgr, o, engine); err != nil {
		return err
	}
	s.requests = requests
	if s.Stores, err = o.openActivity(ctx); err != nil {
		return err
	}
	// All users of the database have stopped when the manager has stopped.
	defer func() { err = errors.Join(err, s.Database.Close()) }()
	s.ids.Spare("StorageMove", s.Moves.Has)
	if s.blobs, err = blob.Open(ctx, o.blobs); err != nil {
		return fmt.Errorf("--blobs: %w", err)
	}
	defer func() { err = errors.Join(err, s.blobs.Close()) }()
	s.avatars, s.artifacts = avatar.NewStore(s.blobs), artifact.NewStore(s.Pipelines, s.blobs)
	if s.registry, err = o.registry(ctx, s); err != nil {
		return err
	}
	if s.audit, err = o.audit.open(mgr.GetLogger()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.audit.Close()) }()
	if err := addParts(ctx, mgr, p, o, s); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// scratch returns the runtime directory of a server. A process without a server writes no archives.
func (o *options) scratch(p parts) func() (string, error) {
	if !p.server {
		return nil
	}
	return func() (string, error) {
		dir, err := filepath.Abs(o.runtimeDir)
		if err == nil {
			err = hook.PrepareDir(dir)
		}
		return dir, err
	}
}

func addIndexes(ctx context.Context, p parts, mgr ctrl.Manager) error {
	if err := index.Add(ctx, mgr.GetFieldIndexer()); err != nil || !p.controllers {
		return err
	}
	return index.AddForManagers(ctx, mgr.GetFieldIndexer())
}

// share returns the shared objects of all processes that need not be closed.
func share(mgr ctrl.Manager, o *options, informers *informer.Factory) (s shared, err error) {
	rules, err := o.rootGroupRules()
	if err != nil {
		return s, err
	}
	s.direct, err = client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), HTTPClient: mgr.GetHTTPClient(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return s, fmt.Errorf("connecting past the cache: %w", err)
	}
	s.informers, s.catalog = informers, catalog.New(mgr.GetCache(), rules...)
	s.catalog.Remember(informers)
	s.catalog.LookUpIn(informers)
	return s, nil
}

// shareRepositories adds the shared objects of the processes that serve and reconcile repositories.
func (s *shared) shareRepositories(ctx context.Context, mgr ctrl.Manager, o *options, engine *git.Engine) (err error) {
	if s.targets, err = o.targets(); err != nil {
		return err
	}
	s.repositories = repository.New(engine, s.catalog).WithHome(o.home)
	s.ids = ids.New(mgr.GetCache(), s.direct, s.direct, o.namespace, o.ids)
	return s.repositories.Follow(ctx, mgr.GetCache())
}

// addParts adds to mgr the parts that the process runs, and the checks of their health.
func addParts(ctx context.Context, mgr ctrl.Manager, p parts, o *options, s shared) error {
	if p.controllers {
		if err := addControllers(ctx, mgr, o, s); err != nil {
			return err
		}
		if err := mgr.Add(registration.NewWatch(o.registration(mgr, s.direct))); err != nil {
			return fmt.Errorf("adding the watch of the servers: %w", err)
		}
		if err := addSweeper(mgr, s); err != nil {
			return err
		}
		if err := mgr.Add(avatar.NewSweeper(s.avatars, s.catalog, clock.RealClock{}, mgr.GetLogger().WithName("avatars"))); err != nil {
			return fmt.Errorf("adding the sweeper of avatars: %w", err)
		}
		if err := mgr.Add(artifact.NewCollector(s.artifacts, s.catalog, clock.RealClock{}, mgr.GetLogger().WithName("artifacts"))); err != nil {
			return fmt.Errorf("adding the collector of artifacts: %w", err)
		}
		if err := o.addCollector(mgr, s); err != nil {
			return err
		}
	}
	if p.server {
		if err := addServer(ctx, mgr, o, s); err != nil {
			return err
		}
	}
	return addChecks(mgr, s)
}

// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=forgeplane-system,resources=leases,verbs=create,roleName=forgeplane-manager
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=forgeplane-system,resources=leases,resourceNames=forgeplane-manager,verbs=get;update,roleName=forgeplane-manager
// +kubebuilder:rbac:groups="",namespace=forgeplane-system,resources=events,verbs=create,roleName=forgeplane-manager

func newManager(p parts, o *options, informers *informer.Factory) (ctrl.Manager, error) {
	config, err := clusterConfig(o.kubeconfig)
	if err != nil {
		return nil, err
	}
	// The priority and fairness of the API server limits the rate of requests.
	config.QPS = -1
	config.Wrap(informer.ReadAhead)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiregistrationv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering kinds: %w", err)
		}
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                  scheme,
		HealthProbeBindAddress:  o.healthAddress,
		Metrics:                 server.Options{BindAddress: o.metricsAddress},
		PprofBindAddress:        o.pprofAddress,
		LeaderElection:          p.controllers && o.leaderElect,
		LeaderElectionID:        "forgeplane-manager",
		LeaderElectionNamespace: o.namespace,
		// The process ends when it no longer leads, so the next one need not wait for the lease to expire.
		LeaderElectionReleaseOnCancel: true,
		Cache:                         informers.CacheOptions(o.namespace, p.controllers),
		Client:                        client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}},
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	if err := mgr.Add(newFrugalStart(metrics.Registry)); err != nil {
		return nil, fmt.Errorf("adding the end of the start: %w", err)
	}
	return mgr, nil
}

func clusterConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		return ctrl.GetConfig()
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading --kubeconfig: %w", err)
	}
	return config, nil
}

// addChecks serves the health checks. The process is alive as long as it answers, and ready when the cache is complete and the activity database
// answers.
func addChecks(mgr ctrl.Manager, s shared) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding a health check: %w", err)
	}
	if err := mgr.AddReadyzCheck("cache", cacheComplete(mgr)); err != nil {
		return fmt.Errorf("adding a readiness check: %w", err)
	}
	if err := mgr.AddReadyzCheck("activity-database", activityReachable(s.Database, mgr.GetLogger())); err != nil {
		return fmt.Errorf("adding a readiness check: %w", err)
	}
	return nil
}

// all runs several checks, one after another.
func all(checks ...healthz.Checker) healthz.Checker {
	return func(r *http.Request) error {
		for _, check := range checks {
			if err := check(r); err != nil {
				return err
			}
		}
		return nil
	}
}

// cacheComplete checks whether the cache contains everything.
func cacheComplete(mgr ctrl.Manager) healthz.Checker {
	return func(r *http.Request) error {
		if !mgr.GetCache().WaitForCacheSync(r.Context()) {
			return errors.New("the cache is not complete yet")
		}
		return nil
	}
}
