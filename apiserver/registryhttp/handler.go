package registryhttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/distribution/distribution/v3"
	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/manifest/manifestlist"
	"github.com/distribution/distribution/v3/manifest/schema2"
	"github.com/distribution/distribution/v3/registry/api/errcode"
	registryauth "github.com/distribution/distribution/v3/registry/auth"
	"github.com/distribution/distribution/v3/registry/handlers" // it has no list of referrers, which is in front of it here
	registrymiddleware "github.com/distribution/distribution/v3/registry/middleware/registry"
	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/distribution/distribution/v3/registry/storage/driver/factory"
	"github.com/go-logr/logr"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/token"
)

const (
	// Prefix is the path of the registry.
	Prefix = "/v2"
	// maxCatalog is the maximum number of names in a response of the catalog.
	maxCatalog = 1000
	// maxTags is the maximum number of tags in a response if the client limits their number.
	maxTags = 10_000
)

// Options are the options of a Handler.
type Options struct {
	Registry *registry.Registry
	Keys     *token.Keys
	// Realm is the URL at which clients get tokens.
	Realm string
	// External is the URL of the registry as clients see it.
	External *url.URL
	// Authenticator knows the callers of tokens, and Catalog has the projects.
	Authenticator *auth.Authenticator
	Catalog       *catalog.Catalog
	// KeepTags refuses to delete tags by their name; the specification lets a registry do so.
	KeepTags bool
	// Slots are shared by the callers whose requests are served. They have defaults.
	Slots fair.Limits
	// Outdated reports whether a refusal may be older than what a client has written before; nil where that cannot be.
	Outdated func(ctx context.Context) (bool, error)
	Log      logr.Logger
}

// DefaultSlots are the default limits of simultaneous requests.
func DefaultSlots() fair.Limits {
	const total, share, reserved = 256, 25, 25
	return fair.Of(total, share, reserved)
}

// Handler serves the API of the registry below Prefix.
type Handler struct {
	app      *handlers.App
	access   *access
	registry *registry.Registry
	catalog  *catalog.Catalog
	slots    *fair.Slots
	keepTags bool
	log      logr.Logger
}

// Slots returns the slots of requests, which are a collector of metrics.
func (h *Handler) Slots() *fair.Slots { return h.slots }

// component is the name under which the parts of this package are known to the library, which knows them by names alone.
const component = "forgeplane"

// connectOnce registers them.
var connectOnce sync.Once //nolint:gochecknoglobals // the library has one list for the process

// opened is a factory of storages that are open already.
type opened struct{}

// Create implements factory.StorageDriverFactory.
func (opened) Create(_ context.Context, parameters map[string]any) (driver.StorageDriver, error) {
	return parameters[component].(driver.StorageDriver), nil
}

func connect() (err error) {
	connectOnce.Do(func() {
		factory.Register(component, opened{})
		err = errors.Join(
			registryauth.Register(component, func(options map[string]any) (registryauth.AccessController, error) {
				return options[component].(registryauth.AccessController), nil
			}),
			registrymiddleware.Register(component, func(_ context.Context, inner distribution.Namespace, _ driver.StorageDriver, options map[string]any) (distribution.Namespace, error) {
				return options[component].(*registry.Registry).Named(inner), nil
			}),
		)
	})
	return err
}

// New returns a handler. The keys must have been loaded. The handler ends with ctx.
func New(ctx context.Context, o Options) (h *Handler, err error) {
	registry.ConnectLog(o.Log)
	if err := connect(); err != nil {
		return nil, fmt.Errorf("setting up the registry: %w", err)
	}
	secret, err := o.Keys.UploadSecret()
	if err != nil {
		return nil, fmt.Errorf("setting up the registry: %w", err)
	}
	decides := &access{keys: o.Keys, rights: rights{o.Authenticator, o.Catalog, o.Registry.Names}, realm: o.Realm, outdated: o.Outdated}
	c := &configuration.Configuration{
		Storage: configuration.Storage{
			component: {component: o.Registry.Storage()},
			"delete":  {"enabled": true},
			// Clients cannot reach the storage.
			"redirect":    {"disable": true},
			"maintenance": {"uploadpurging": map[any]any{"enabled": false}},
		},
		// Clients use the URLs of layers, and the registry does not.
		Validation: configuration.Validation{Manifests: configuration.ValidationManifests{URLs: configuration.URLs{Allow: []string{"^https?://"}}}},
		Auth:       configuration.Auth{component: {component: decides}},
		Middleware: map[string][]configuration.Middleware{"registry": {{Name: component, Options: configuration.Parameters{component: o.Registry}}}},
	}
	c.HTTP.Secret, c.HTTP.Host = secret, (&url.URL{Scheme: o.External.Scheme, Host: o.External.Host}).String()
	c.Catalog.MaxEntries, c.Tags.MaxTags = maxCatalog, maxTags
	defer func() {
		// The library panics about what it cannot use.
		if r := recover(); r != nil {
			err = fmt.Errorf("setting up the registry: %v", r)
		}
	}()
	if o.Slots == (fair.Limits{}) {
		o.Slots = DefaultSlots()
	}
	return &Handler{
		app: handlers.NewApp(ctx, c), access: decides, registry: o.Registry, catalog: o.Catalog,
		slots: fair.New("registry", "requests of the container registry", o.Slots), keepTags: o.KeepTags, log: o.Log,
	}, nil
}

// Close releases what the handler uses.
func (h *Handler) Close() error { return h.app.Shutdown() }

// ServeHTTP serves a request of the registry's API.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w, r, done := paced(w, r)
	defer done()
	if !readable(w, r) {
		return
	}
	r = h.identify(r)
	leave, err := h.slots.Enter(r.Context())
	if err != nil {
		busy(w, err)
		return
	}
	defer leave()
	h.serve(w, r)
}

// readable makes the library read only the parameters of the URL: it also looks for some in a form in the body, and stores the files of the form
// on disk, before it knows who the client is. It answers requests with such files, and reports false.
func readable(w http.ResponseWriter, r *http.Request) bool {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case r.Header.Get("Content-Type") == "":
	case strings.HasPrefix(mediaType, "multipart/"):
		w.Header().Set("Connection", "close")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnsupportedMediaType)
		_ = json.NewEncoder(w).Encode(errcode.Errors{errcode.ErrorCodeUnsupported.WithMessage("send the content itself as the body, and not a form")}) // the client may have gone
		return false
	case err != nil, mediaType == "application/x-www-form-urlencoded":
		r.Header = r.Header.Clone()
		r.Header.Set("Content-Type", "application/octet-stream")
	}
	return true
}

// manifestTypes are the types of manifests that the registry has.
var manifestTypes = []string{v1.MediaTypeImageManifest, v1.MediaTypeImageIndex, schema2.MediaTypeManifest, manifestlist.MediaTypeManifestList} //nolint:gochecknoglobals // a constant

// accepting makes the library understand the header of a client that accepts every type.
func accepting(r *http.Request) *http.Request {
	all := strings.Join(r.Header.Values("Accept"), ",")
	if all != "" && !strings.Contains(all, "*/*") && !strings.Contains(all, "application/*") {
		return r
	}
	inner := r.Clone(r.Context())
	for _, t := range manifestTypes {
		inner.Header.Add("Accept", t)
	}
	return inner
}

// busy answers a request that has no slot.
func busy(w http.ResponseWriter, err error) {
	code := errcode.ErrorCodeUnavailable.WithMessage("the registry is stopping: try again later")
	var full *fair.Busy
	if errors.As(err, &full) {
		w.Header().Set("Retry-After", strconv.Itoa(int((full.RetryAfter+time.Second-1)/time.Second)))
		code = errcode.ErrorCodeTooManyRequests.WithMessage(full.Error())
	}
	refuse(w, code)
}

// serve answers a request that has a slot.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request) {
	if name, subject, ok := cut(r.URL.Path, "/referrers/"); ok {
		h.referrers(w, r, name, subject)
		return
	}
	if name, tag, ok := cut(r.URL.Path, "/tags/reference/"); ok {
		if r.Method != http.MethodDelete {
			w.Header().Set("Allow", http.MethodDelete)
			_ = errcode.ServeJSON(w, errcode.ErrorCodeUnsupported)
			return
		}
		if strings.Contains(tag, ":") { // a digest, which would delete the image with all of its tags
			_ = errcode.ServeJSON(w, errcode.ErrorCodeManifestUnknown.WithDetail(map[string]string{"tag": tag})) // the client may have gone
			return
		}
		// The deprecated form of the deletion of a tag.
		r = aboutManifest(r, name, tag)
	}
	w = saying(w, r)
	if name, named, ok := cut(r.URL.Path, "/manifests/"); ok {
		if h.keepTags && r.Method == http.MethodDelete && !strings.Contains(named, ":") {
			_ = errcode.ServeJSON(w, errcode.ErrorCodeUnsupported.WithMessage("this registry does not delete tags by their name: use the REST API, or delete the image by its digest")) // the client may have gone
			return
		}
		r = accepting(r)
		if d := digest.Digest(named); alias(d) && r.Method == http.MethodPut {
			if r, ok = h.aliased(w, r, name, d); !ok {
				return
			}
		}
	}
	ctx, refusal := registry.WithRefusal(r.Context())
	r = r.WithContext(ctx)
	o := &outcome{ResponseWriter: w, refusal: refusal}
	if _, _, ok := cut(r.URL.Path, "/manifests/"); ok && r.Method == http.MethodPut {
		o.manifest = &manifestBody{ReadCloser: r.Body}
		r.Body = o.manifest
	}
	h.app.ServeHTTP(o, r)
	o.end(r, h.log)
}

// aboutManifest returns a request like another one, about the manifest with a tag or digest.
func aboutManifest(r *http.Request, name, reference string) *http.Request {
	about := r.Clone(r.Context())
	about.URL.Path, about.URL.RawPath = Prefix+"/"+name+"/manifests/"+reference, ""
	about.RequestURI = about.URL.RequestURI()
	return about
}

// cut returns the name of a repository, and what follows a marker in a path.
func cut(path, marker string) (name, rest string, ok bool) {
	below, ok := strings.CutPrefix(path, Prefix+"/")
	at := strings.LastIndex(below, marker)
	if !ok || at <= 0 {
		return "", "", false
	}
	rest = below[at+len(marker):]
	return below[:at], rest, rest != "" && !strings.Contains(rest, "/")
}
