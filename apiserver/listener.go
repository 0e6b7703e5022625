package apiserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/forgeplane/forgeplane/apiserver/connection"
	"github.com/forgeplane/forgeplane/apiserver/ratelimit"
)

const (
	// headerTimeout limits the time for the request line and headers, so that slow clients do not pile up.
	headerTimeout = 10 * time.Second
	// idleTimeout is the time after which a connection without a request is closed.
	idleTimeout = 2 * time.Minute
	// stopTimeout limits the time for running requests when the server stops.
	stopTimeout = 20 * time.Second
)

// listener serves the connections of clients.
type listener struct {
	address     string
	connections connection.Limits
	handler     http.Handler
	limiter     *ratelimit.Limiter
	log         logr.Logger
	serving     atomic.Bool
	// stopping is closed when the server begins to stop.
	stopping chan struct{}
}

// newListener returns a listener without a handler.
func newListener(o Options) *listener {
	o.RateLimits.Clock = o.Clock
	return &listener{
		address: o.Address, connections: o.Connections, limiter: ratelimit.New(o.RateLimits), log: o.Log, stopping: make(chan struct{}),
	}
}

// NeedLeaderElection is false: every replica serves.
func (l *listener) NeedLeaderElection() bool { return false }

// Ready is a readiness check. It fails until the server listens.
func (l *listener) Ready(*http.Request) error {
	if !l.serving.Load() {
		return errors.New("the server is not listening yet")
	}
	return nil
}

func (l *listener) listen(ctx context.Context) (net.Listener, error) {
	all, err := (&net.ListenConfig{}).Listen(ctx, "tcp", l.address)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", l.address, err)
	}
	return l.connections.Listen(all, true), nil
}

// serve serves clients until ctx ends, and then waits for running requests.
func (l *listener) serve(ctx context.Context, clients net.Listener) error {
	server := &http.Server{
		Handler: l.handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(l.log), slog.LevelError),
	}
	l.serving.Store(true)
	defer l.serving.Store(false)
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		close(l.stopping)
		deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		stopped <- errors.Join(server.Shutdown(deadline), server.Close())
	})
	if err := server.Serve(clients); !errors.Is(err, http.ErrServerClosed) {
		stop()
		return fmt.Errorf("serving %s: %w", l.address, err)
	}
	if err := <-stopped; err != nil {
		l.log.Error(err, "Failed to complete all requests before the server stopped")
	}
	return nil
}
