// Package apiserver serves Git over HTTP, the REST API and the container registry, on Forgeplane's own listener.
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
	"github.com/forgeplane/forgeplane/apiserver/visible"
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
	// RuntimeDir is a directory of this process alone, for the hook's socket and the directory of hooks.
	RuntimeDir string
	// HookBinary is the forgeplane-hook executable.
	HookBinary string

	// Kit has the collaborators of the families, except for those that the server sets: Guard, Writer, Background, IDs, Credentials, Refs,
	// Images, Queue and WebURL.
	family.Kit
	// ExternalURL is the URL of Forgeplane for clients.
	ExternalURL *url.URL
	// RESTWrites is spec.restWrites of root groups that do not declare it. The default is Allow.
	RESTWrites v1alpha1.RESTWrites
	// Client writes the objects of REST callers. It reads its own writes.
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
	IDs  *ids.Allocator
	// Registry is the container registry.
	Registry RegistryOptions
	Log      logr.Logger
	// Administrators decides which Kubernetes identities are administrators. It is nil if no Kubernetes identity can call.
	Administrators auth.Administrators
	// RateLimits are the limits of the REST API and of Git. The server sets their Clock.
	RateLimits ratelimit.Options
	// Connections limits the connections of a client.
	Connections connection.Limits
	// GitSlots limit the Git requests that are served at once. The default is githttp.DefaultSlots.
	GitSlots fair.Limits
	// Memory limits the memory for REST requests and their responses, including the memory of the engine of Repositories. nil means no
	// limit.
	Memory *fair.Memory
	// Uploads is the directory for uploads of clients during a request. The default is a directory in RuntimeDir.
	Uploads string
	// Disk limits the disk space of Uploads. nil means no limit.
	Disk *fair.Memory
	// Metrics registers the metrics of the server.
	Metrics []prometheus.Registerer
	// Others has the state of the other servers of the installation. It is nil without other servers.
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
	// writes has the writes of refs, which families follow.
	writes *change.Feed
}

// New returns a server that is ready to be started. It prepares the directory of hooks. The registry ends with ctx.
func New(ctx context.Context, o Options) (*Server, error) { return newServer(ctx, o, families) }

// newServer is New with other families.
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
	authenticator := auth.NewAuthenticator(o.Catalog, o.Clock, o.Administrators).Noting(uses).Executing(o.Activity.Runners, o.Activity.Pipelines).
		Collaborating(o.Activity.MergeRequests)
	access := &gitAccess{auth: authenticator, catalog: o.Catalog, repositories: o.Repositories}
	s := &Server{
		listener: newListener(o), socket: filepath.Join(directory, "hook.sock"), hooks: &hook.Server{}, uses: uses, writes: change.NewFeed(o.Log),
	}
	written := o.Written
	o.Written = func(e change.Event) {
		written(e)
		s.writes.Publish(e)
	}
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
		o.Audit.Handler(audit.At{Door: audit.REST, Address: address, Reads: auth.CarriesJobToken}, s.rest), s.rest.Refuse(retired()), reference, pages,
		o.Audit.Handler(audit.At{Door: audit.Git, Address: address, Writes: githttp.Writes, Reads: auth.SignsInAsJob}, gitServer),
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
	k.Visible = visible.NewProjects(k.Catalog, k.Clock)
	writer := func(c client.Client) *declare.Writer { return declare.NewWriter(c, o.Live, o.IDs).Tell(o.Others) }
	k.Writer = store.NewBackend(writer(o.Client).Within(quota.New(k.Catalog, k.Clock, k.Quotas, k.Home)), k.Catalog, o.RESTWrites)
	// Handlers record the writes of requests in the audit log, and the client records those of jobs.
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
	k.OnWritten = s.writes.Follow
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

// REST returns the handler of the REST API.
func (s *Server) REST() *endpoint.Handler { return s.rest }

// Aggregated serves the REST API to callers through kube-apiserver.
func (s *Server) Aggregated() http.Handler { return s.limiter.Aggregated(s.rest) }

// Start serves until ctx ends, and then waits for running requests.
func (s *Server) Start(ctx context.Context) error {
	socket, err := hook.Listen(s.socket)
	if err != nil {
		return err
	}
	clients, err := s.listen(ctx)
	if err != nil {
		return errors.Join(err, socket.Close())
	}
	// Hooks of pushes that are running still need answers when the server stops.
	hooks, stopHooks := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- s.hooks.Serve(hooks, socket) }()
	var background sync.WaitGroup
	background.Go(func() { s.uses.Run(ctx) })
	background.Go(func() { s.writes.Run(ctx) })
	for _, q := range s.tasks {
		background.Go(func() { _ = q.Start(ctx) })
	}
	background.Go(func() { s.images.run(ctx) })
	err = s.serve(ctx, clients)
	stopHooks()
	background.Wait()
	return errors.Join(err, <-ended, s.images.close())
}
