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
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/connection"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/githttp"
	"github.com/forgeplane/forgeplane/apiserver/landing"
	"github.com/forgeplane/forgeplane/apiserver/ratelimit"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/declare"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/hook"
	"github.com/forgeplane/forgeplane/internal/ids"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/quota"
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

	// Kit has the collaborators of the families, except for those that the server sets: Guard, Writer, Background, IDs, Credentials, Refs,
	// Images, Queue and WebURL.
	family.Kit
	// ExternalURL is how clients reach the forge.
	ExternalURL *url.URL
	// RESTWrites is spec.restWrites of root groups that do not declare it; empty for Allow.
	RESTWrites v1alpha1.RESTWrites
	// Client writes what REST callers declare; it reads its own writes.
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
	IDs  *ids.Allocator
	// Registry is the container registry.
	Registry RegistryOptions
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
	// Metrics is where those of the server are registered.
	Metrics []prometheus.Registerer
	// Audit is told of every write; nil for nobody.
	Audit *audit.Log
	// Others has the state of the other servers of the installation; nil if there are none.
	Others *watermark.Watermark
	// Written is called after each write of refs. It must not block.
	Written func(change.Event)
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
func newServer(ctx context.Context, o Options, families func(family.Kit) []endpoint.Table) (*Server, error) {
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
	uses := tokenuse.NewRecorder(o.Activity.Uses, o.Log)
	authenticator := auth.NewAuthenticator(o.Catalog, o.Clock, o.Administrators).Noting(uses)
	access := &gitAccess{auth: authenticator, catalog: o.Catalog, repositories: o.Repositories}
	s := &Server{listener: newListener(o), socket: filepath.Join(directory, "hook.sock"), hooks: &hook.Server{}, uses: uses}
	gitServer, err := githttp.New(githttp.Options{
		Authenticator: access, Projects: access, Hooks: s.hooks, HooksDir: hooksDir, HookSocket: s.socket,
		Log: o.Log, Slots: o.GitSlots, Outdated: o.Others.Outdated, Written: o.Written,
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
	k := s.kit(o, authenticator)
	s.rest = newREST(k, o.ExternalURL, endpoint.Options{
		Log: o.Log, Observe: requests.observe, Outdated: o.Others.Outdated, Memory: o.Memory, Spool: uploads, Disk: o.Disk, Stopping: s.stopping,
	}, families(k))
	if err := register(o.Metrics, append(s.slots(), requests.seconds, o.Memory, o.Disk, gitServer.Requests(), s.limiter)...); err != nil {
		return nil, err
	}
	pages := landing.New(landing.Options{Guard: k.Guard, External: o.ExternalURL, Outdated: o.Others.Outdated, Log: o.Log})
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

// kit completes the kit of the options. The server runs the queues of the kit.
func (s *Server) kit(o Options, a *auth.Authenticator) family.Kit {
	k := o.Kit
	k.Guard = auth.NewGuard(a, k.Catalog, k.Repositories).Featuring(k.Features)
	writer := func(c client.Client) *declare.Writer { return declare.NewWriter(c, o.Live, o.IDs).Tell(o.Others) }
	k.Writer = store.NewBackend(writer(o.Client).Within(quota.New(k.Catalog, k.Clock, k.Quotas, k.Home)), k.Catalog, o.RESTWrites)
	// The audit log gets the writes of requests from the handlers, and those of jobs from the client.
	k.Background = store.NewBackend(writer(o.Audit.Client(o.Client)), k.Catalog, o.RESTWrites)
	k.IDs, k.Credentials = o.IDs, credential.NewStore(o.Client, k.Namespace)
	k.Refs = ref.NewUpdater(k.Guard, k.Repositories, o.Written)
	k.Images, k.ImagesHost = o.Registry.Registry, o.Registry.host()
	k.Queue = func(options job.QueueOptions) family.Tasks {
		options.Log = o.Log
		q := job.NewQueue(k.Activity.Database, options)
		s.tasks = append(s.tasks, q)
		return q
	}
	k.WebURL = strings.TrimSuffix(o.ExternalURL.String(), "/")
	return k
}

// slots returns the metrics of the queues.
func (s *Server) slots() (all []prometheus.Collector) {
	for _, q := range s.tasks {
		all = append(all, q.Slots())
	}
	return all
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
