// Package aggregated is the door of the REST API that leads through kube-apiserver: /apis/rest.forgeplane.dev/v4, for
// callers with a Kubernetes identity, whom RBAC admits. It serves the same tree of endpoints as the other door. Beside it, the server can
// serve groups of virtual resources.
package aggregated

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/common"

	"github.com/forgeplane/forgeplane/apiserver/aggregated/route"
	"github.com/forgeplane/forgeplane/apiserver/aggregated/virtual"
	"github.com/forgeplane/forgeplane/apiserver/connection"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/certificate"
	"github.com/forgeplane/forgeplane/internal/registration"
)

const (
	// GroupName is the group of the aggregated API.
	GroupName = registration.RESTGroup
	// Version is its version.
	Version = registration.RESTVersion
	// Prefix is the prefix of the paths of endpoints.
	Prefix = "/apis/" + GroupName + "/" + Version

	// readyInterval is the interval of the readiness checks of a starting server.
	readyInterval = 100 * time.Millisecond
)

// GroupVersion is the group of the REST API with its version.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: Version}

// Options of a server.
type Options struct {
	// Address to listen on with TLS, as host:port.
	Address string
	// Connections limits the connections of a client. kube-apiserver needs few.
	Connections connection.Limits
	// Kubeconfig is the file that says how to reach the cluster; the pod's service account when empty.
	Kubeconfig string
	// Config says the same, for clients of this process.
	Config *rest.Config
	// AuditPolicy and AuditLog are the files of an audit policy and its log; no audit when they are empty.
	AuditPolicy, AuditLog string

	// Writes records every write. It is nil if the audit log is off.
	Writes *audit.Log

	// URL is the URL of kube-apiserver for clients. Links in responses begin with it.
	URL *url.URL
	// Tree serves requests whose path is the path of an endpoint. The context has the caller's identity, or for an anonymous caller the key
	// of the address.
	Tree http.Handler
	// Routes are the routes of the tree.
	Routes []route.Pattern
	Known  route.Known
	// Groups are served beside the REST API.
	Groups []virtual.Group

	Certificates *certificate.Source
	// Registration configures the registration of this server. Its Groups are those that are served, its Authorities come from Certificates,
	// and it is ready when the server is. Its Name is the host; the port is added.
	Registration registration.Server
	// Ready says what the tree still waits for; nil when it can serve.
	Ready func(*http.Request) error
	Log   logr.Logger
}

// Server is the aggregated API server. The manager of the process starts it.
type Server struct{ options Options }

// New returns a server that is ready to be started.
func New(o Options) *Server {
	o.Registration.Authorities, o.Registration.Groups = o.Certificates.Authorities, Served(o.Groups...)
	return &Server{options: o}
}

// Served returns the groups that a server with the given groups serves: the group of the REST API comes first.
func Served(groups ...virtual.Group) []schema.GroupVersion {
	all := []schema.GroupVersion{GroupVersion}
	for _, g := range groups {
		all = append(all, g.GroupVersion)
	}
	return all
}

// NeedLeaderElection is false: every replica serves.
func (s *Server) NeedLeaderElection() bool { return false }

// Start serves until ctx ends. It registers the API while it is ready, and continues to answer until the registration was removed.
func (s *Server) Start(ctx context.Context) error {
	if _, err := s.options.Certificates.Load(ctx); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.options.Address)
	if err != nil {
		return fmt.Errorf("listening on %s: %w", s.options.Address, err)
	}
	pair := &keyPair{source: s.options.Certificates}
	listener = s.options.Connections.Listen(listener, false)
	server, err := s.options.build(listener, pair)
	if err != nil {
		return errors.Join(fmt.Errorf("setting up the aggregated API: %w", err), listener.Close())
	}
	loopback, err := rest.HTTPClientFor(server.LoopbackClientConfig)
	if err != nil {
		return errors.Join(fmt.Errorf("setting up the aggregated API: %w", err), listener.Close())
	}
	if err := s.serve(ctx, server, pair, loopback); err != nil {
		return fmt.Errorf("serving the aggregated API: %w", err)
	}
	return nil
}

func (s *Server) serve(ctx context.Context, server *genericapiserver.GenericAPIServer, pair *keyPair, loopback *http.Client) error {
	var all sync.WaitGroup
	defer all.Wait()
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	all.Go(func() { s.options.Certificates.Run(serving, pair.changed) })
	registering, withdraw := context.WithCancel(ctx)
	defer withdraw()
	part := s.options.Registration
	// One process at a time listens at an address: one that follows another there, which may have been killed, goes on with its lease.
	part.Name = fmt.Sprintf("%s-%d", part.Name, server.SecureServingInfo.Listener.Addr().(*net.TCPAddr).Port)
	part.Ready = func(ctx context.Context) bool { return ready(ctx, loopback, server.LoopbackClientConfig.Host) }
	registered := make(chan struct{})
	all.Go(func() {
		defer close(registered)
		if waitReady(registering, loopback, server.LoopbackClientConfig.Host) {
			part.Run(registering)
		}
	})
	ended := make(chan error, 1)
	all.Go(func() { ended <- server.PrepareRun().RunWithContext(serving) })
	select {
	case <-registered:
		// ctx has ended, and kube-apiserver sends no more requests.
		stop()
		return <-ended
	case err := <-ended:
		return err
	}
}

// waitReady waits until a server says that it is ready. It reports false when ctx ends before.
func waitReady(ctx context.Context, client *http.Client, host string) bool {
	defer client.CloseIdleConnections()
	ticker := time.NewTicker(readyInterval)
	defer ticker.Stop()
	for !ready(ctx, client, host) {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
	return true
}

func ready(ctx context.Context, client *http.Client, host string) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, host+"/readyz", http.NoBody)
	if err != nil {
		return false
	}
	answer, err := client.Do(r)
	if err != nil {
		return false
	}
	return answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
}

// mount adds the REST API and the groups to a generic API server.
func (o Options) mount(s *genericapiserver.GenericAPIServer, p proxy, definitions *common.OpenAPIV3Config) error {
	if err := o.discover(s); err != nil {
		return err
	}
	s.Handler.NonGoRestfulMux.HandlePrefix(Prefix+"/", enter(o.Tree, o.URL.JoinPath(Prefix), p))
	for _, g := range o.Groups {
		if err := s.InstallAPIGroups(g.Info()); err != nil {
			return fmt.Errorf("installing the group %s: %w", g.GroupVersion, err)
		}
	}
	return o.describe(s, definitions)
}
