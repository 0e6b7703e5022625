// Package controllers combines all controllers. Add a line here to add a kind to the forge.
package controllers

import (
	"fmt"
	"reflect"
	"time"

	"github.com/prometheus/client_golang/prometheus" // the library behind controller-runtime's own metrics
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/controllers/accesstoken"
	"github.com/forgeplane/forgeplane/controllers/badge"
	"github.com/forgeplane/forgeplane/controllers/bottoken"
	credentials "github.com/forgeplane/forgeplane/controllers/credential"
	"github.com/forgeplane/forgeplane/controllers/declaredid"
	"github.com/forgeplane/forgeplane/controllers/deploykey"
	"github.com/forgeplane/forgeplane/controllers/group"
	"github.com/forgeplane/forgeplane/controllers/jobtokenscope"
	"github.com/forgeplane/forgeplane/controllers/label"
	"github.com/forgeplane/forgeplane/controllers/membership"
	"github.com/forgeplane/forgeplane/controllers/project"
	"github.com/forgeplane/forgeplane/controllers/protectedbranch"
	"github.com/forgeplane/forgeplane/controllers/registrycleanup"
	"github.com/forgeplane/forgeplane/controllers/remotemirror"
	"github.com/forgeplane/forgeplane/controllers/repositorystorage"
	"github.com/forgeplane/forgeplane/controllers/retainedrepository"
	"github.com/forgeplane/forgeplane/controllers/storagemove"
	"github.com/forgeplane/forgeplane/controllers/triggertoken"
	"github.com/forgeplane/forgeplane/controllers/user"
	"github.com/forgeplane/forgeplane/controllers/variable"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/egress"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/ids"
	"github.com/forgeplane/forgeplane/internal/orphan"
	"github.com/forgeplane/forgeplane/internal/quota"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/repository"
	moves "github.com/forgeplane/forgeplane/internal/storagemove"
)

// Parts are the dependencies of the controllers.
type Parts struct {
	Client client.Client
	// Secrets reads past the cache, for Secrets of tenants and for content that the cache does not keep.
	Secrets      client.Reader
	Events       events.EventRecorder
	Catalog      *catalog.Catalog
	IDs          *ids.Allocator
	Repositories *repository.Repositories
	Clock        clock.PassiveClock
	// Namespace is the platform's namespace.
	Namespace string
	// AllowFileImport allows file URLs in importURL.
	AllowFileImport bool
	// Egress is the proxy to hosts that users name.
	Egress *egress.Proxy
	// Mirrors limit the pushes of mirrors.
	Mirrors remotemirror.Limits
	// Moves limit the moves of repositories between shards.
	Moves storagemove.Limits
	// History records moves for ever; it may be nil.
	History *moves.History
	// Registry has the images of projects; nil if the container registry is off.
	Registry *registry.Registry
	// Cleanups is the maximum number of cleanups of container repositories that run at once. The default is
	// registrycleanup.DefaultConcurrency.
	Cleanups int
	// CleanupInterval is the time between two looks at a run of a cleanup. The default is registrycleanup.DefaultInterval.
	CleanupInterval time.Duration
	// Retention limits what the deleted projects of a namespace may leave.
	Retention quota.Retention
	// CountLater is the delay from the creation or deletion of a project until the projects of its shard are counted, and from the declaration
	// of an id until it is recorded, so that many changes cause one write.
	CountLater time.Duration
	// MeasureVolume measures the volumes of shards; nil stands for the file system's own answer.
	MeasureVolume repositorystorage.Measure
	// Activity stores the issues, images and other activity in projects; it may be nil.
	Activity project.Activity
	// Audit records the writes of controllers; it may be nil.
	Audit *audit.Log
	// Metrics is the registry for the slots of imports and mirrors; it may be nil.
	Metrics prometheus.Registerer
}

// Controller is the controller of one kind.
type Controller struct {
	Kind       string
	Reconciler reconcile.Reconciler
	setup      func(ctrl.Manager, controller.Options) error
}

// changes is the capacity of the queue of lost and recovered repositories whose projects must be reconciled.
const changes = 1024

// All returns the controllers of all kinds.
func (p Parts) All() []Controller {
	c := p.client()
	base := frame.Base{Client: c, Events: p.Events, Catalog: p.Catalog, IDs: p.IDs}
	store, orphans := credential.NewStore(c, p.Namespace), orphan.NewCollector(c, p.Secrets, p.Clock)
	repositories := p.Repositories.Audited(p.Audit)
	changed := make(chan event.TypedGenericEvent[*v1alpha1.Project], changes)
	return []Controller{
		of(c, user.New(base)),
		of(c, accesstoken.New(base, orphans, p.Clock, p.Namespace)),
		of(c, repositorystorage.New(base, p.Repositories, repositorystorage.Options{
			Live: p.Secrets, Clock: p.Clock, CountLater: p.CountLater, Measure: p.MeasureVolume, Changed: changed,
		})),
		of(c, group.New(base, p.Clock)),
		of(c, project.New(base, p.IDs, repositories, project.Options{
			Secrets: p.Secrets, Live: p.Secrets, Namespace: p.Namespace, Clock: p.Clock, AllowFileImport: p.AllowFileImport, Egress: p.Egress,
			Retention: p.Retention, Activity: p.Activity, Metrics: p.Metrics, Changed: changed,
		})),
		of(c, retainedrepository.New(base, repositories)),
		of(c, storagemove.New(base, repositories, storagemove.Options{
			Live: p.Secrets, Namespace: p.Namespace, History: p.History, Clock: p.Clock, Limits: p.Moves, Metrics: p.Metrics,
		})),
		of(c, membership.New(base, orphans, p.Clock)),
		of(c, deploykey.New(base)),
		of(c, protectedbranch.New(base, p.IDs, p.Repositories, p.Clock)),
		of(c, triggertoken.New(base, store, orphans, p.Clock)),
		of(c, bottoken.New(base, orphans, p.Clock)),
		of(c, badge.New(base)),
		of(c, jobtokenscope.New(base)),
		of(c, remotemirror.New(base, repositories, remotemirror.Options{
			Secrets: p.Secrets, Store: store, Clock: p.Clock, Egress: p.Egress, Limits: p.Mirrors, Metrics: p.Metrics,
		})),
		of(c, label.New(base)),
		of(c, registrycleanup.New(base, registrycleanup.Options{
			Registry: p.Registry, Concurrency: p.Cleanups, Interval: p.CleanupInterval, Audit: p.Audit, Clock: p.Clock, Metrics: p.Metrics,
		})),
		of(c, variable.New(base, variable.Options{Secrets: p.Secrets, Store: store, Namespace: p.Namespace, Clock: p.Clock})),
	}
}

// client returns the client with which controllers write, which records the writes.
func (p Parts) client() client.Client { return p.Audit.Client(p.Client) }

// AddTo adds the controllers of all kinds to a manager.
func (p Parts) AddTo(mgr ctrl.Manager, o controller.Options) error {
	for _, one := range p.All() {
		if err := one.setup(mgr, o); err != nil {
			return fmt.Errorf("setting up the controller of %s: %w", one.Kind, err)
		}
	}
	if err := credentials.New(p.client(), p.Catalog, p.Clock, p.Namespace).SetupWithManager(mgr, o); err != nil {
		return fmt.Errorf("setting up the controller of credentials: %w", err)
	}
	if err := declaredid.New(p.client(), p.IDs, p.CountLater).SetupWithManager(mgr, o); err != nil {
		return fmt.Errorf("setting up the controller of declared ids: %w", err)
	}
	return nil
}

// one is the interface of every controller.
type one[T v1alpha1.Object] interface {
	reconcile.ObjectReconciler[T]
	SetupWithManager(mgr ctrl.Manager, o controller.Options) error
}

func of[T v1alpha1.Object](c client.Client, o one[T]) Controller {
	kind := reflect.TypeFor[T]().Elem().Name()
	return Controller{Kind: kind, Reconciler: reconcile.AsReconciler(c, o), setup: o.SetupWithManager}
}
