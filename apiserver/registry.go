package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/registryhttp"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/registry"
	registrytoken "github.com/forgeplane/forgeplane/internal/registry/token"
)

// RegistryOptions are the options of the container registry.
type RegistryOptions struct {
	// Registry has the images. It is nil if the container registry is off.
	Registry *registry.Registry
	// Keys sign the tokens of the clients. They must be loaded.
	Keys *registrytoken.Keys
	// URL is the URL of the registry for clients.
	URL *url.URL
	// Elsewhere says that another process serves the registry at URL.
	Elsewhere bool
	// Lifetime of a token; 0 for the default.
	Lifetime time.Duration
	// KeepTags refuses to delete tags by their name at the registry.
	KeepTags bool
	// Slots limit the requests that are served at once. registryhttp has the default.
	Slots fair.Limits
}

// host returns the host of the registry's URL, or "" without a registry.
func (o RegistryOptions) host() string {
	if o.URL == nil {
		return ""
	}
	return o.URL.Host
}

// images has the handlers of the registry.
type images struct {
	keys *registrytoken.Keys
	// served and tokens are the handlers of the images, and of the tokens of clients.
	served, tokens http.Handler
	// registry is the handler of the images in this process. It is nil if they are served elsewhere or the registry is off.
	registry *registryhttp.Handler
}

// newImages returns the handlers of a server that also serves tokens.
func newImages(ctx context.Context, o Options, authenticator *auth.Authenticator, address func(*http.Request) string) (*images, error) {
	r := o.Registry
	if r.Registry == nil {
		off := unavailable("registry not enabled")
		return &images{served: off, tokens: off}, nil
	}
	tokens := registryhttp.NewTokenServer(registryhttp.TokenOptions{
		Authenticator: authenticator, Catalog: o.Catalog, Names: r.Registry.Names, Records: r.Registry.Records, Keys: r.Keys,
		Lifetime: r.Lifetime, Slots: r.Slots, Outdated: o.Others.Outdated, Log: o.Log,
	})
	if err := register(o.Metrics, tokens.Slots()); err != nil {
		return nil, err
	}
	audited := o.Audit.Handler(audit.At{Door: audit.Registry, Address: address, Writes: func(*http.Request) bool { return false }, Reads: auth.SignsInAsJob}, tokens)
	if r.Elsewhere {
		return &images{keys: r.Keys, served: unavailable("the container registry is at " + r.URL.String()), tokens: audited}, nil
	}
	served, err := servedImages(ctx, o, authenticator, address)
	if err != nil {
		return nil, err
	}
	served.tokens = audited
	return served, nil
}

// servedImages returns the handler of the images without that of the tokens.
func servedImages(ctx context.Context, o Options, authenticator *auth.Authenticator, address func(*http.Request) string) (*images, error) {
	r := o.Registry
	handler, err := registryhttp.New(ctx, registryhttp.Options{
		Registry: r.Registry, Keys: r.Keys, Realm: o.ExternalURL.JoinPath(registryhttp.TokenPath).String(), External: r.URL,
		Authenticator: authenticator, Catalog: o.Catalog, Slots: r.Slots, KeepTags: r.KeepTags, Outdated: o.Others.Outdated, Log: o.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("setting up the container registry: %w", err)
	}
	if err := register(o.Metrics, handler.Slots()); err != nil {
		return nil, errors.Join(err, handler.Close())
	}
	served := o.Audit.Handler(audit.At{Door: audit.Registry, Address: address, Writes: registryhttp.Writes, Reads: registryhttp.IsOfJob}, handler)
	return &images{keys: r.Keys, served: served, tokens: http.NotFoundHandler(), registry: handler}, nil
}

// run keeps the keys up to date until ctx ends.
func (i *images) run(ctx context.Context) {
	if i.keys != nil {
		i.keys.Run(ctx)
	}
}

// close releases the handlers. Call it when no request runs.
func (i *images) close() error {
	if i.registry == nil {
		return nil
	}
	return i.registry.Close()
}

// unavailable responds to requests if the registry is off (API behaviour, section 2.11).
func unavailable(message string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(map[string]any{ // the client may have disconnected
			"errors": []map[string]string{{"code": "UNAVAILABLE", "message": message}}, "http_status": http.StatusNotFound,
		})
	}
}

// beside passes requests to the registry to its handlers, and all other requests to next.
func (i *images) beside(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case path == registryhttp.Prefix, strings.HasPrefix(path, registryhttp.Prefix+"/"):
			i.served.ServeHTTP(w, r)
		case path == registryhttp.TokenPath:
			i.tokens.ServeHTTP(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// RegistryServer serves the container registry alone. It refers its clients to a Server for their tokens. The manager of the process starts
// it.
type RegistryServer struct {
	*listener
	images *images
}

// NewRegistryServer returns a server that is ready to be started. It uses the Address, Connections, RateLimits, ExternalURL, Catalog, Activity,
// Registry, Others, Audit, Metrics, Clock and Log of its options. The registry ends with ctx.
func NewRegistryServer(ctx context.Context, o Options) (*RegistryServer, error) {
	s := &RegistryServer{listener: newListener(o)}
	if err := register(o.Metrics, s.limiter); err != nil {
		return nil, err
	}
	var err error
	if s.images, err = servedImages(ctx, o, auth.NewAuthenticator(o.Catalog, o.Clock, nil).Executing(o.Activity.Runners, o.Activity.Pipelines), func(r *http.Request) string { return s.limiter.Client(r).String() }); err != nil {
		return nil, err
	}
	s.handler = s.limiter.Handler(s.images.beside(http.NotFoundHandler()))
	return s, nil
}

// Start serves until ctx ends, and then waits for running requests.
func (s *RegistryServer) Start(ctx context.Context) error {
	clients, err := s.listen(ctx)
	if err != nil {
		return err
	}
	var background sync.WaitGroup
	background.Go(func() { s.images.run(ctx) })
	err = s.serve(ctx, clients)
	background.Wait()
	return errors.Join(err, s.images.close())
}
