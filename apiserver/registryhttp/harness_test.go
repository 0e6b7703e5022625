package registryhttp_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"github.com/google/go-containerregistry/pkg/authn" // a client of registries that many tools are made of
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/registryhttp"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/record"
	"github.com/forgeplane/forgeplane/internal/registry/registrytest"
	"github.com/forgeplane/forgeplane/internal/registry/token"
)

// world is a registry with its clients: mary is the Maintainer, dan a Developer, rita a Reporter and gus a Guest of the private project acme/app,
// and sue is not a member. acme/open is public, and root administers all.
type world struct {
	*familytest.Forge
	host string
	// server serves the registry.
	server *httptest.Server
	// database is the name of the activity database.
	database string
	storage  *registrytest.Storage
	records  *record.Store
	registry *registry.Registry
	keys     *token.Keys
	clock    *clocktesting.FakeClock
	tokens   *registryhttp.TokenServer
	images   *registryhttp.Handler
	// jobs are the jobs by their tokens.
	jobs familytest.Jobs
	// outdated is the result of isOutdated. Without it, the cache is up to date.
	outdated func() (bool, error)
}

func (w *world) isOutdated(context.Context) (bool, error) {
	if w.outdated == nil {
		return false, nil
	}
	return w.outdated()
}

func newWorld(t *testing.T, more ...client.Object) *world {
	t.Helper()
	return newWorldAt(t, httptest.NewServer, more...)
}

// newWorldAt is newWorld at a server of some kind.
func newWorldAt(t *testing.T, serve func(http.Handler) *httptest.Server, more ...client.Object) *world {
	t.Helper()
	directory, err := registry.OpenDirectory(t.TempDir())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return newWorldOn(t, directory, serve, more...)
}

// newWorldOn is newWorldAt with the images in a storage.
func newWorldOn(t *testing.T, in driver.StorageDriver, serve func(http.Handler) *httptest.Server, more ...client.Object) *world {
	t.Helper()
	g := NewWithT(t)
	f := familytest.New(t, append([]client.Object{
		familytest.User("root", 1, familytest.Admin), familytest.User("mary", 2), familytest.User("dan", 3), familytest.User("rita", 4),
		familytest.User("gus", 5), familytest.User("sue", 6), familytest.User("bill", 7, familytest.Blocked),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic),
		project("app", 20, v1alpha1.VisibilityPrivate, v1alpha1.FeatureEnabled), project("open", 21, v1alpha1.VisibilityPublic, v1alpha1.FeatureEnabled),
		project("members", 22, v1alpha1.VisibilityPublic, v1alpha1.FeaturePrivate), project("off", 23, v1alpha1.VisibilityPublic, v1alpha1.FeatureDisabled),
		familytest.InGroup("acme", "acme", "mary", v1alpha1.RoleMaintainer), familytest.InGroup("acme", "acme", "dan", v1alpha1.RoleDeveloper),
		familytest.InGroup("acme", "acme", "rita", v1alpha1.RoleReporter), familytest.InGroup("acme", "acme", "gus", v1alpha1.RoleGuest),
	}, more...)...)
	w := &world{Forge: f, clock: clocktesting.NewFakeClock(f.Clock.Now()), jobs: familytest.Jobs{}}
	w.database = databasetest.SQLite(t)
	w.records = record.New(databasetest.Open(t, w.database, record.Migrations()), f.Clock)
	w.storage = registrytest.NewStorage(in)
	var err error
	w.registry, err = registry.New(t.Context(), w.storage, w.records, registry.NewNames(f.Catalog), w.clock)
	g.Expect(err).NotTo(HaveOccurred())
	w.keys = token.NewKeys(token.Options{Client: f.Client, Namespace: "forgeplane-system", Clock: w.clock, Log: testr.New(t)})
	g.Expect(w.keys.Load(t.Context())).To(Succeed())

	mux := http.NewServeMux()
	server := serve(mux)
	w.server = server
	t.Cleanup(server.Close)
	external, err := url.Parse(server.URL)
	g.Expect(err).NotTo(HaveOccurred())
	w.host = external.Host
	authenticator := auth.NewAuthenticator(f.Catalog, f.Clock, nil).Executing(nil, w.jobs)
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	slots := registryhttp.DefaultSlots()
	slots.Wait = 100 * time.Millisecond // only a caller who holds all slots waits
	w.images, err = registryhttp.New(ctx, registryhttp.Options{
		Registry: w.registry, Keys: w.keys, Realm: server.URL + registryhttp.TokenPath, External: external, Authenticator: authenticator, Catalog: f.Catalog,
		Slots: slots, Outdated: w.isOutdated, Log: logr.Discard(), // the library has one log for the process
	})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(w.images.Close()).To(Succeed()) })
	w.tokens = registryhttp.NewTokenServer(registryhttp.TokenOptions{
		Authenticator: authenticator, Catalog: f.Catalog, Names: w.registry.Names, Records: w.records, Keys: w.keys, Slots: slots, Outdated: w.isOutdated, Log: testr.New(t),
	})
	mux.Handle("/v2/", w.images)
	mux.Handle(registryhttp.TokenPath, w.tokens)
	return w
}

// another starts another process that serves the same images, and returns its URL.
func (w *world) another(t *testing.T, o registryhttp.Options) string {
	t.Helper()
	g := NewWithT(t)
	images, err := registry.New(t.Context(), w.storage, w.records, w.registry.Names, w.clock)
	g.Expect(err).NotTo(HaveOccurred())
	external, err := url.Parse(w.server.URL)
	g.Expect(err).NotTo(HaveOccurred())
	o.Registry, o.Keys, o.External, o.Catalog, o.Log = images, w.keys, external, w.Catalog, logr.Discard()
	o.Authenticator = auth.NewAuthenticator(w.Catalog, w.Clock, nil)
	handler, err := registryhttp.New(t.Context(), o)
	g.Expect(err).NotTo(HaveOccurred())
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func project(path string, id int64, v v1alpha1.Visibility, images v1alpha1.FeatureAccess) *v1alpha1.Project {
	p := familytest.Project("acme", path, id, "acme", v)
	p.Spec.Features.ContainerRegistry = images
	return p
}

// ref is a reference to an image of the registry.
func (w *world) ref(t *testing.T, image string) name.Reference {
	t.Helper()
	r, err := name.ParseReference(w.host + "/" + image)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// as returns the option of a client to sign in as a user, or not to sign in with "".
func as(username string) remote.Option {
	if username == "" {
		return remote.WithAuth(authn.Anonymous)
	}
	return remote.WithAuth(&authn.Basic{Username: username, Password: familytest.Value(username)})
}

// image returns a new image with two layers.
func image(t *testing.T) v1.Image {
	t.Helper()
	i, err := random.Image(1024, 2)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// push pushes a new image as dan.
func (w *world) push(t *testing.T, to string) v1.Image {
	t.Helper()
	i := image(t)
	if err := remote.Write(w.ref(t, to), i, as("dan")); err != nil {
		t.Fatal(err)
	}
	return i
}

// bearer asks for a token, and returns its claims.
func (w *world) bearer(t *testing.T, username string, scopes ...string) (text string, claims token.Claims) {
	t.Helper()
	status, body := w.ask(t, username, familytest.Value(username), url.Values{"service": {token.Service}, "scope": scopes})
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	var said struct{ Token string }
	if err := json.Unmarshal([]byte(body), &said); err != nil {
		t.Fatal(err)
	}
	claims, err := w.keys.Verify(said.Token)
	if err != nil {
		t.Fatal(err)
	}
	return said.Token, claims
}

// ask requests a token.
func (w *world) ask(t *testing.T, username, password string, query url.Values) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+w.host+registryhttp.TokenPath+"?"+query.Encode(), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if username != "" {
		r.SetBasicAuth(username, password)
	}
	status, _, body = send(t, r)
	return status, body
}

// do sends a request to the registry with a token.
func (w *world) do(t *testing.T, bearer, method, path string, body io.Reader, header http.Header) (status int, got http.Header, answer string) {
	t.Helper()
	target := path
	if !strings.HasPrefix(path, "http") {
		target = "http://" + w.host + path
	}
	r, err := http.NewRequestWithContext(t.Context(), method, target, body)
	if err != nil {
		t.Fatal(err)
	}
	for key, values := range header {
		r.Header[key] = values
	}
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	return send(t, r)
}

func send(t *testing.T, r *http.Request) (status int, header http.Header, body string) {
	t.Helper()
	c := &http.Client{Timeout: time.Minute}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, strings.TrimSpace(string(content))
}

func clientKey(namespace, object string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: object}
}
