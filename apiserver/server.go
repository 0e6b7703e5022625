// Package apiserver is what clients of the forge talk to: Git over HTTP and the REST API, on the forge's own listener.
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
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
	"github.com/forgeplane/forgeplane/internal/activity"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/declare"
	"github.com/forgeplane/forgeplane/internal/egress"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/hook"
	"github.com/forgeplane/forgeplane/internal/ids"
	"github.com/forgeplane/forgeplane/internal/quota"
	"github.com/forgeplane/forgeplane/internal/repository"
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
	// Home is the namespace of personal projects, and of what is made over REST without a group above.
	Home string
	// Targets says which hosts outside users may name.
	Targets *egress.Policy

	Catalog      *catalog.Catalog
	Repositories *repository.Repositories
	// Client writes what REST callers declare; it reads its own writes.
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
	IDs  *ids.Allocator
	// Activity is the activity database.
	Activity *activity.Store
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
	// Quotas are how many objects are made over REST.
	Quotas quota.Limits
	// Metrics is where those of the server are registered.
	Metrics []prometheus.Registerer
	// Audit is told of every write; nil for nobody.
	Audit *audit.Log
	// Others are the other servers of the installation; nil where there are none.
	Others *watermark.Watermark
	// Writers counts who changes repositories.
	Writers *git.Writers
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
}

// New returns a server that is ready to be started. It prepares the directory of hooks.
func New(o Options) (*Server, error) {
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
	s := &Server{address: o.Address, connections: o.Connections, socket: filepath.Join(directory, "hook.sock"), hooks: &hook.Server{}, log: o.Log}
	gitServer, err := githttp.New(githttp.Options{
		Authenticator: access, Projects: access, Hooks: s.hooks, HooksDir: hooksDir, HookSocket: s.socket,
		Writers: o.Writers, Log: o.Log, Slots: o.GitSlots, Outdated: o.Others.Outdated,
	})
	if err != nil {
		return nil, fmt.Errorf("setting up Git over HTTP: %w", err)
	}
	page, err := docs.New("Forgeplane", ".."+restPrefix+"/openapi.json")
	if err != nil {
		return nil, fmt.Errorf("setting up the page of the API: %w", err)
	}
	requests := newRequestMetrics()
	o.RateLimits.Clock = o.Clock
	s.limiter = ratelimit.New(o.RateLimits)
	for _, registry := range o.Metrics {
		for _, c := range []prometheus.Collector{requests.seconds, o.Memory, gitServer.Requests(), s.limiter} {
			if err := registry.Register(c); err != nil {
				return nil, fmt.Errorf("registering the metrics of the server: %w", err)
			}
		}
	}
	s.rest = newREST(restOptions{
		observe: requests.observe, memory: o.Memory,
		external: o.ExternalURL, version: o.Version, guard: auth.NewGuard(authenticator, o.Catalog, o.Repositories), catalog: o.Catalog,
		outdated: o.Others.Outdated,
		writer:   declare.NewWriter(o.Client, o.Live, o.IDs).Tell(o.Others).Within(quota.New(o.Catalog, o.Clock, o.Quotas, o.Home)),
		quotas:   o.Quotas, ids: o.IDs, activity: o.Activity, log: o.Log,
		clock: o.Clock, repos: o.Repositories, writers: o.Writers, pushed: o.Pushed, credentials: credential.NewStore(o.Client, o.Namespace), home: o.Home, targets: o.Targets,
	})
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
		return errors.New("the server does not listen yet")
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
