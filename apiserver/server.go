// Package apiserver is what clients of the forge talk to: Git over HTTP and the REST API, on the forge's own listener.
package apiserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/avatar"
	"github.com/forgeplane/forgeplane/apiserver/connection"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/githttp"
	"github.com/forgeplane/forgeplane/apiserver/landing"
	"github.com/forgeplane/forgeplane/apiserver/ratelimit"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/apiserver/v4/storagemoves"
	"github.com/forgeplane/forgeplane/internal/audit"
	stored "github.com/forgeplane/forgeplane/internal/avatar"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/declare"
	"github.com/forgeplane/forgeplane/internal/egress"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/feature"
	"github.com/forgeplane/forgeplane/internal/hook"
	"github.com/forgeplane/forgeplane/internal/ids"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/quota"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/internal/storagemove"
	"github.com/forgeplane/forgeplane/internal/subscription"
	"github.com/forgeplane/forgeplane/internal/tokenuse"
	"github.com/forgeplane/forgeplane/internal/watermark"
)

// Options of a server.
type Options struct {
	// Address to listen on, as host:port.
	Address string
	// RuntimeDir is a directory of this process alone: the hook's socket is in it, and the directory of hooks.
	RuntimeDir string
	// HookBinary is the forgeplane-hook executable.
	HookBinary string

	// ExternalURL is how clients reach the forge.
	ExternalURL *url.URL
	// Version of Forgeplane.
	Version string
	// Namespace is the platform's: the values of tokens are kept there.
	Namespace string
	// Home is the namespace of personal projects, and of objects that are created over REST without a parent group.
	Home string
	// RESTWrites is spec.restWrites of root groups that do not declare it; empty for Allow.
	RESTWrites v1alpha1.RESTWrites
	// Targets says which hosts outside users may name.
	Targets *egress.Policy
	// Features are those that are on.
	Features *feature.Flags

	Catalog      *catalog.Catalog
	Repositories *repository.Repositories
	// Client writes what REST callers declare; it reads its own writes.
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
	IDs  *ids.Allocator
	// Activity is the activity database. Subscriptions, Uses and Moves are in it.
	Activity      *database.DB
	Subscriptions *subscription.Store
	Uses          *tokenuse.Store
	Moves         *storagemove.History
	// Avatars are in the blob store.
	Avatars *stored.Store
	// Registry is the container registry.
	Registry RegistryOptions
	Clock    clock.PassiveClock
	Log      logr.Logger
	// Administrators tells which Kubernetes identities administer the instance; nil where none calls.
	Administrators auth.Administrators
	// RateLimits of the REST API and of Git; the Clock is the server's.
	RateLimits ratelimit.Options
	// Connections are how many a client may have.
	Connections connection.Limits
	// GitSlots are shared by those whose Git requests are served. They have defaults.
	GitSlots fair.Limits
	// Memory is what is held for the requests of REST callers and for their answers, that of the engine of the Repositories, too; nil for
	// any amount.
	Memory *fair.Memory
	// Uploads is the directory for what clients upload, until the request is answered; one in RuntimeDir when it is empty.
	Uploads string
	// Disk is what is in Uploads; nil for any amount.
	Disk *fair.Memory
	// Quotas limit the number of objects that are created over REST.
	Quotas quota.Limits
	// Metrics is where those of the server are registered.
	Metrics []prometheus.Registerer
	// Audit is told of every write; nil for nobody.
	Audit *audit.Log
	// Others has the state of the other servers of the installation; nil if there are none.
	Others *watermark.Watermark
	// Pushed is told of each project whose refs may have changed.
	Pushed func(project types.NamespacedName)
	// Maintain schedules the maintenance of the repository of a project, and reports false if maintenance is turned off.
	Maintain func(project types.NamespacedName) bool
}

// Server serves clients. The manager of the process starts it.
type Server struct {
	*listener
	socket string
	hooks  *hook.Server
	uses   *tokenuse.Recorder
	tasks  []*job.Queue
	images *images
	rest   *endpoint.Handler
}

// New returns a server that is ready to be started. It prepares the directory of hooks. The registry ends with ctx.
func New(ctx context.Context, o Options) (*Server, error) { return newServer(ctx, o, families) }

// newServer is New for other families.
func newServer(ctx context.Context, o Options, families func(restOptions) []endpoint.Table) (*Server, error) {
	directory, err := filepath.Abs(o.RuntimeDir)
	if err != nil {
		return nil, fmt.Errorf("finding the runtime directory: %w", err)
	}
	if err := hook.PrepareDir(directory); err != nil {
		return nil, err
	}
	hooksDir := filepath.Join(directory, "hooks")
	if err := hook.InstallDir(hooksDir, o.HookBinary); err != nil {
		return nil, err
	}
	uses := tokenuse.NewRecorder(o.Uses, o.Log)
	authenticator := auth.NewAuthenticator(o.Catalog, o.Clock, o.Administrators).Noting(uses)
	access := &gitAccess{auth: authenticator, catalog: o.Catalog, repositories: o.Repositories, pushed: o.Pushed}
	s := &Server{listener: newListener(o), socket: filepath.Join(directory, "hook.sock"), hooks: &hook.Server{}, uses: uses}
	gitServer, err := githttp.New(githttp.Options{
		Authenticator: access, Projects: access, Hooks: s.hooks, HooksDir: hooksDir, HookSocket: s.socket,
		Log: o.Log, Slots: o.GitSlots, Outdated: o.Others.Outdated,
	})
	if err != nil {
		return nil, fmt.Errorf("setting up Git over HTTP: %w", err)
	}
	uploads := cmp.Or(o.Uploads, filepath.Join(directory, "uploads"))
	if err := os.MkdirAll(uploads, 0o700); err != nil {
		return nil, fmt.Errorf("creating the directory for uploads: %w", err)
	}
	reference, err := newReference()
	if err != nil {
		return nil, fmt.Errorf("setting up the page of the API: %w", err)
	}
	requests := newRequestMetrics()
	guard := auth.NewGuard(authenticator, o.Catalog, o.Repositories).Featuring(o.Features)
	moves, deletions := moveTasks(o, guard), deletionTasks(o)
	s.tasks = []*job.Queue{moves, deletions}
	if err := register(o.Metrics, requests.seconds, o.Memory, o.Disk, gitServer.Requests(), s.limiter, moves.Slots(), deletions.Slots()); err != nil {
		return nil, err
	}
	rest := restOptions{
		observe: requests.observe, memory: o.Memory, disk: o.Disk, uploads: uploads, stopping: s.stopping,
		external: o.ExternalURL, version: o.Version, guard: guard, features: o.Features, catalog: o.Catalog,
		outdated: o.Others.Outdated,
		writer:   store.NewBackend(declare.NewWriter(o.Client, o.Live, o.IDs).Tell(o.Others).Within(quota.New(o.Catalog, o.Clock, o.Quotas, o.Home)), o.Catalog, o.RESTWrites),
		quotas:   o.Quotas, ids: o.IDs, subscriptions: o.Subscriptions, uses: o.Uses, moves: o.Moves, moveTasks: moves, images: o.Registry, deletions: deletions, log: o.Log,
		clock: o.Clock, repos: o.Repositories, pushed: o.Pushed, maintain: o.Maintain, credentials: credential.NewStore(o.Client, o.Namespace), namespace: o.Namespace, home: o.Home, targets: o.Targets,
		avatars: avatar.New(o.Avatars),
	}
	s.rest = newHandler(rest, families(rest))
	pages := landing.New(landing.Options{Guard: rest.guard, External: o.ExternalURL, Outdated: o.Others.Outdated, Log: o.Log})
	address := func(r *http.Request) string { return s.limiter.Client(r).String() }
	if s.images, err = newImages(ctx, o, authenticator, address); err != nil {
		return nil, err
	}
	s.handler = s.limiter.Handler(s.images.beside(split(
		o.Audit.Handler(audit.At{Door: audit.REST, Address: address}, s.rest), s.rest.Refuse(retired()), reference, pages,
		o.Audit.Handler(audit.At{Door: audit.Git, Address: address, Writes: githttp.Writes}, gitServer),
	)))
	return s, nil
}

// register registers metrics in each registry.
func register(registries []prometheus.Registerer, all ...prometheus.Collector) error {
	for _, registry := range registries {
		for _, c := range all {
			if err := registry.Register(c); err != nil {
				return fmt.Errorf("registering the metrics of the server: %w", err)
			}
		}
	}
	return nil
}

// moveTasks returns the queue of the work of moving all projects of a shard. No request is there to tell the audit log of it.
func moveTasks(o Options, guard *auth.Guard) *job.Queue {
	writer := store.NewBackend(declare.NewWriter(o.Audit.Client(o.Client), o.Live, o.IDs).Tell(o.Others), o.Catalog, o.RESTWrites)
	return job.NewQueue(o.Activity, job.QueueOptions{
		Name: "storage-move-requests", Log: o.Log, Run: storagemoves.New(o.Catalog, guard, writer, o.Moves, nil, o.Namespace).Process,
	})
}

// REST is the tree of the REST API.
func (s *Server) REST() *endpoint.Handler { return s.rest }

// Aggregated serves the tree of the REST API to callers who come through kube-apiserver.
func (s *Server) Aggregated() http.Handler { return s.limiter.Aggregated(s.rest) }

// Start serves until ctx ends, and lets running requests end.
func (s *Server) Start(ctx context.Context) error {
	socket, err := hook.Listen(s.socket)
	if err != nil {
		return err
	}
	clients, err := s.listen(ctx)
	if err != nil {
		return errors.Join(err, socket.Close())
	}
	// Pushes that run when the server is told to stop still need answers for their hooks.
	hooks, stopHooks := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- s.hooks.Serve(hooks, socket) }()
	var background sync.WaitGroup
	background.Go(func() { s.uses.Run(ctx) })
	for _, q := range s.tasks {
		background.Go(func() { _ = q.Start(ctx) })
	}
	background.Go(func() { s.images.run(ctx) })
	err = s.serve(ctx, clients)
	stopHooks()
	background.Wait()
	return errors.Join(err, <-ended, s.images.close())
}
