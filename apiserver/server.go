// Package apiserver is what clients of the forge talk to: Git over HTTP and the REST API, on the forge's own listener.
package apiserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/connection"
	"github.com/forgeplane/forgeplane/apiserver/docs"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/githttp"
	"github.com/forgeplane/forgeplane/apiserver/ratelimit"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/declare"
	"github.com/forgeplane/forgeplane/internal/egress"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/feature"
	"github.com/forgeplane/forgeplane/internal/hook"
	"github.com/forgeplane/forgeplane/internal/ids"
	"github.com/forgeplane/forgeplane/internal/quota"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/internal/subscription"
	"github.com/forgeplane/forgeplane/internal/tokenuse"
	"github.com/forgeplane/forgeplane/internal/watermark"
)

const (
	// headerTimeout is what a client has for its request line and headers, so that slow ones do not pile up.
	headerTimeout = 10 * time.Second
	// idleTimeout is how long a connection is kept that has no request.
	idleTimeout = 2 * time.Minute
	// stopTimeout is what running requests have when the server stops.
	stopTimeout = 20 * time.Second
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
	// Subscriptions and Uses are in the activity database.
	Subscriptions *subscription.Store
	Uses          *tokenuse.Store
	Clock         clock.PassiveClock
	Log           logr.Logger
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
}

// Server serves clients. The manager of the process starts it.
type Server struct {
	address     string
	connections connection.Limits
	socket      string
	hooks       *hook.Server
	handler     http.Handler
	rest        *endpoint.Handler
	limiter     *ratelimit.Limiter
	log         logr.Logger
	serving     atomic.Bool
	// stopping is closed when the server begins to stop.
	stopping chan struct{}
}

// New returns a server that is ready to be started. It prepares the directory of hooks.
func New(o Options) (*Server, error) { return newServer(o, families) }

// newServer is New for other families.
func newServer(o Options, families func(restOptions) []endpoint.Table) (*Server, error) {
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
	authenticator := auth.NewAuthenticator(o.Catalog, o.Clock, o.Administrators)
	access := &gitAccess{auth: authenticator, catalog: o.Catalog, repositories: o.Repositories, pushed: o.Pushed}
	s := &Server{address: o.Address, connections: o.Connections, socket: filepath.Join(directory, "hook.sock"), hooks: &hook.Server{}, log: o.Log, stopping: make(chan struct{})}
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
	page, err := docs.New("Forgeplane", ".."+restPrefix+"/openapi.json")
	if err != nil {
		return nil, fmt.Errorf("setting up the page of the API: %w", err)
	}
	requests := newRequestMetrics()
	o.RateLimits.Clock = o.Clock
	s.limiter = ratelimit.New(o.RateLimits)
	for _, registry := range o.Metrics {
		for _, c := range []prometheus.Collector{requests.seconds, o.Memory, o.Disk, gitServer.Requests(), s.limiter} {
			if err := registry.Register(c); err != nil {
				return nil, fmt.Errorf("registering the metrics of the server: %w", err)
			}
		}
	}
	rest := restOptions{
		observe: requests.observe, memory: o.Memory, disk: o.Disk, uploads: uploads, stopping: s.stopping,
		external: o.ExternalURL, version: o.Version, guard: auth.NewGuard(authenticator, o.Catalog, o.Repositories).Featuring(o.Features), features: o.Features, catalog: o.Catalog,
		outdated: o.Others.Outdated,
		writer:   store.NewWriter(declare.NewWriter(o.Client, o.Live, o.IDs).Tell(o.Others).Within(quota.New(o.Catalog, o.Clock, o.Quotas, o.Home))),
		quotas:   o.Quotas, ids: o.IDs, subscriptions: o.Subscriptions, uses: o.Uses, log: o.Log,
		clock: o.Clock, repos: o.Repositories, pushed: o.Pushed, credentials: credential.NewStore(o.Client, o.Namespace), home: o.Home, targets: o.Targets,
	}
	s.rest = newTree(rest, families(rest))
	address := func(r *http.Request) string { return s.limiter.Client(r).String() }
	s.handler = s.limiter.Handler(split(
		o.Audit.Handler(audit.At{Door: audit.REST, Address: address}, s.rest), s.rest.Refuse(retired()), page,
		o.Audit.Handler(audit.At{Door: audit.Git, Address: address, Writes: githttp.Writes}, gitServer),
	))
	return s, nil
}

// REST is the tree of the REST API.
func (s *Server) REST() *endpoint.Handler { return s.rest }

// Aggregated serves the tree of the REST API to callers who come through kube-apiserver.
func (s *Server) Aggregated() http.Handler { return s.limiter.Aggregated(s.rest) }

// NeedLeaderElection is false: every replica serves.
func (s *Server) NeedLeaderElection() bool { return false }

// Ready is a readiness check: whether the server listens.
func (s *Server) Ready(*http.Request) error {
	if !s.serving.Load() {
		return errors.New("the server is not listening yet")
	}
	return nil
}

// Start serves until ctx ends, and lets running requests end.
func (s *Server) Start(ctx context.Context) error {
	socket, err := hook.Listen(s.socket)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.address)
	if err != nil {
		return errors.Join(fmt.Errorf("listening on %s: %w", s.address, err), socket.Close())
	}
	// Pushes that run when the server is told to stop still need answers for their hooks.
	hooks, stopHooks := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- s.hooks.Serve(hooks, socket) }()
	err = s.serve(ctx, s.connections.Listen(listener, true))
	stopHooks()
	return errors.Join(err, <-ended)
}

func (s *Server) serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: s.handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: 64 << 10}
	s.serving.Store(true)
	defer s.serving.Store(false)
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		close(s.stopping)
		deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		stopped <- errors.Join(server.Shutdown(deadline), server.Close())
	})
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		stop()
		return fmt.Errorf("serving %s: %w", s.address, err)
	}
	if err := <-stopped; err != nil {
		s.log.Error(err, "Requests were cut off when the server stopped")
	}
	return nil
}
