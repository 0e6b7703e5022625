// Package familytest serves endpoint tables over declared objects in memory, for tests of families at the level of HTTP.
package familytest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/endpoint/endpointtest"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/apiserver/visible"
	"github.com/forgeplane/forgeplane/internal/activity"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/declare"
	"github.com/forgeplane/forgeplane/internal/feature"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/ids"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/quota"
)

const (
	// Namespace is the namespace of the platform.
	Namespace = "forgeplane-system"
	// WebURL is the address of the installation.
	WebURL = "https://forge.example"
)

// Forge serves declared objects.
type Forge struct {
	t       testing.TB
	handler http.Handler

	// Kit has the collaborators of the families. A test can change it before it calls New of a family.
	family.Kit
	Client client.Client
	IDs    *ids.Allocator
	// Clock stands still at noon of 15 June 2026 until a test sets it.
	Clock *clocktesting.FakePassiveClock
	// Authenticator identifies the callers of requests.
	Authenticator *auth.Authenticator
	// Uses records when tokens are used in requests.
	Uses *Uses
	// Work are the options of the queues of the families by their names, and Tasks the tasks that were added to them.
	Work  map[string]job.QueueOptions
	Tasks []job.Task
	// Before, unless nil, is called before each write with its verb, such as "create", "patch", "patch status" or "delete". Its error is
	// the result of the write.
	Before func(verb string, o client.Object) error
	// Header is sent with each request, beside the token.
	Header http.Header

	// cached has what Client has, as the cache of a server does.
	cached  *catalogtest.World
	caching sync.Mutex
	created time.Time
}

// New returns a forge that holds the objects, each younger than the one before, and for each user a token of scope api.
func New(t testing.TB, objects ...client.Object) *Forge {
	t.Helper()
	f := &Forge{
		t: t, Clock: clocktesting.NewFakePassiveClock(time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)),
		created: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Uses: &Uses{last: map[database.Subject]time.Time{}},
		Work: map[string]job.QueueOptions{},
	}
	for _, o := range objects {
		f.stamp(o)
	}
	for _, o := range objects {
		if u, ok := o.(*v1alpha1.User); ok {
			objects = append(objects, f.token(u))
		}
	}
	f.Client, f.cached = f.fake(t, objects), catalogtest.New(t)
	for _, o := range objects {
		if err := f.cache(t.Context(), f.Client, o); err != nil {
			t.Fatal(err)
		}
	}
	f.IDs = ids.New(f.cached.Reader(), f.Client, f.Client, Namespace, ids.Range{First: 100})
	f.Kit = family.Kit{
		IDs: f.IDs, Credentials: credential.NewStore(f.Client, Namespace),
		Maintain: func(types.NamespacedName) bool { return true }, Activity: activity.Stores{Uses: f.Uses}, Queue: f.queue,
		OnWritten: func(string, func(context.Context, change.Event) error) {},
		Features:  feature.New(f.cached.Reader(), Namespace, nil), Quotas: quota.DefaultLimits(), Clock: f.Clock,
		WebURL: WebURL, Version: "test", Namespace: Namespace, Home: "home",
	}
	f.Catalog = f.cached.Catalog()
	f.Visible = visible.NewProjects(f.Catalog, f.Clock)
	f.Writer = f.WriterReading(f.Client)
	f.Background = f.Writer
	f.Authenticator = auth.NewAuthenticator(f.Catalog, f.Clock, nil).Noting(f.Uses)
	f.Guard = auth.NewGuard(f.Authenticator, f.Catalog, nil).Featuring(f.Features)
	return f
}

// queue is for family.Kit.
func (f *Forge) queue(o job.QueueOptions) family.Tasks {
	f.Work[o.Name] = o
	return tasks{f}
}

// tasks adds tasks to a forge.
type tasks struct{ *Forge }

func (q tasks) Add(_ context.Context, t job.Task) error {
	q.Tasks = append(q.Tasks, t)
	return nil
}

// AddAfter implements family.Tasks.
func (q tasks) AddAfter(ctx context.Context, t job.Task, _ time.Duration) error { return q.Add(ctx, t) }

// WriterReading returns a writer that reads from live what the cache does not keep.
func (f *Forge) WriterReading(live client.Reader) store.Backend {
	return store.NewBackend(declare.NewWriter(f.Client, live, f.IDs), f.Catalog, "")
}

// Feature turns a feature on or off.
func (f *Forge) Feature(name string, on bool) {
	f.t.Helper()
	values := f.Features.Values()
	values.Data = map[string]string{name: feature.Value(on)}
	err := f.Client.Create(f.t.Context(), values)
	if apierrors.IsAlreadyExists(err) {
		values.ResourceVersion = ""
		err = f.Client.Update(f.t.Context(), values)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// Serve makes the forge serve tables.
func (f *Forge) Serve(tables ...endpoint.Table) *Forge {
	base, err := url.Parse(WebURL + "/api/v4")
	if err != nil {
		f.t.Fatal(err)
	}
	f.handler = endpoint.NewHandler(endpoint.Options{
		Guard: f.Guard, Log: testr.New(f.t.(*testing.T)), BaseURL: base, Refused: store.AnswerLimit, Exceeded: git.LimitReached,
	}, tables...)
	return f
}

// ServeHTTP serves a request as it is.
func (f *Forge) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.handler.ServeHTTP(w, r) }

// Identified is an object of a kind that references can name by id.
type Identified interface {
	client.Object
	IDs() (spec, status *int64)
	RESTID() int64
}

// Refer returns the reference that REST writes to the object with this name. o determines the kind.
func (f *Forge) Refer(o Identified, name string) v1alpha1.Reference {
	f.t.Helper()
	f.read(o, name)
	return catalog.Refer(o)
}

// Named returns the reference that REST writes into an object of the project or group o, by the namespace and name of o.
func (f *Forge) Named(o Identified, name string) v1alpha1.Reference {
	f.t.Helper()
	f.read(o, name)
	return catalog.ReferNamed(o)
}

func (f *Forge) read(o client.Object, name string) {
	f.t.Helper()
	key := client.ObjectKey{Name: name}
	if namespace, rest, ok := strings.Cut(name, "/"); ok {
		key = client.ObjectKey{Namespace: namespace, Name: rest}
	}
	if err := f.Client.Get(f.t.Context(), key, o); err != nil {
		f.t.Fatal(err)
	}
}

// Recreate deletes the object that Refer refers to, and creates another object with the same declaration, including its id.
func (f *Forge) Recreate(o Identified, name string) {
	f.t.Helper()
	f.read(o, name)
	again := o.DeepCopyObject().(client.Object)
	again.SetResourceVersion("")
	again.SetUID("")
	again.SetCreationTimestamp(metav1.Time{})
	f.stamp(again)
	if err := errors.Join(f.Client.Delete(f.t.Context(), o), f.Client.Create(f.t.Context(), again)); err != nil {
		f.t.Fatal(err)
	}
}

// Move puts a project, by its namespace and name, into another group of the namespace.
func (f *Forge) Move(project, group string) {
	f.t.Helper()
	p := &v1alpha1.Project{}
	f.read(p, project)
	p.Spec.GroupRef = v1alpha1.Reference{Name: group}
	if err := f.Client.Update(f.t.Context(), p); err != nil {
		f.t.Fatal(err)
	}
}

// Value is the value of the token that New made for a user.
func Value(username string) string { return "fpat-of-the-user-called-" + username }

func (f *Forge) token(u *v1alpha1.User) *v1alpha1.AccessToken {
	t := &v1alpha1.AccessToken{
		ObjectMeta: metav1.ObjectMeta{Name: "of-" + u.Name},
		Spec: v1alpha1.AccessTokenSpec{
			ID: 1000 + u.Spec.ID, UserRef: v1alpha1.Reference{Name: u.Name}, Description: "test",
			Scopes: []v1alpha1.TokenScope{v1alpha1.ScopeAPI}, SecretRef: &v1alpha1.SecretKeyReference{Name: "of-" + u.Name, Key: "token"},
		},
		Status: v1alpha1.AccessTokenStatus{ID: 1000 + u.Spec.ID, Digest: credential.Digest(Value(u.Spec.Username))},
	}
	f.stamp(t)
	return t
}

// stamp sets the UID and the time of creation, as the API server does.
func (f *Forge) stamp(o client.Object) {
	f.created = f.created.Add(time.Second)
	if o.GetUID() == "" {
		o.SetUID(types.UID(f.created.Format(time.RFC3339)))
	}
	if at := o.GetCreationTimestamp(); at.IsZero() {
		o.SetCreationTimestamp(metav1.Time{Time: f.created})
	}
}

// During lets the catalog cache its answers, as a server does, and calls do when the catalog checks for the nth time whether its cache
// is up to date. After a request, changed reports whether that has happened.
func (f *Forge) During(nth int, do func()) (changed func() bool) {
	r := &revisions{change: do, left: nth}
	f.Catalog.Remember(r)
	return func() bool { return r.left <= 0 }
}

// revisions has one revision before a change, and another revision from then on.
type revisions struct {
	change func()
	left   int
}

func (r *revisions) Revision([]string) (catalog.Revision, bool) {
	if r.left--; r.left == 0 {
		r.change()
	}
	if r.left > 0 {
		return catalog.Revision{"before"}, true
	}
	return catalog.Revision{"after"}, true
}

// Reached returns the highest resource version: the cache is never behind.
func (r *revisions) Reached(string) (int64, bool) { return math.MaxInt64, true }

// BeforePatch calls do before the first patch of the spec of an object with a name, as another request that is faster.
func (f *Forge) BeforePatch(name string, do func()) {
	done := false
	f.Before = func(verb string, o client.Object) error {
		if verb == "patch" && o.GetName() == name && !done {
			done = true
			do()
		}
		return nil
	}
}

// Answer is the answer to a request.
type Answer struct {
	Code   int
	Header http.Header
	Body   string
}

// String returns the code and the body, without what only people read.
func (a Answer) String() string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", a.Code, endpointtest.Undescribed(a.Body)))
}

// Decode reads the body.
func Decode[T any](t testing.TB, a Answer) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.Body), &v); err != nil {
		t.Fatalf("%v in %s", err, a)
	}
	return v
}

// As sends a request as a user, or anonymously if username is empty. The request is a method and a target, such as "GET /users?search=a".
// The body is JSON, or empty.
func (f *Forge) As(username, request, body string) Answer {
	f.t.Helper()
	value := ""
	if username != "" {
		value = Value(username)
	}
	return f.With(value, request, body)
}

// With is As with the value of a token instead of a user.
func (f *Forge) With(value, request, body string) Answer {
	f.t.Helper()
	method, target, ok := strings.Cut(request, " ")
	if !ok {
		f.t.Fatalf("%q has no target", request)
	}
	r := httptest.NewRequestWithContext(f.t.Context(), method, target, bytes.NewBufferString(body))
	r.Header.Set("Content-Type", "application/json")
	return f.send(value, r)
}

// Upload is As with a form that has one file.
func (f *Forge) Upload(username, request, name, content string) Answer {
	f.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile(name, "picture.bin")
	if err == nil {
		_, err = part.Write([]byte(content))
	}
	if err = errors.Join(err, form.Close()); err != nil {
		f.t.Fatal(err)
	}
	method, target, _ := strings.Cut(request, " ")
	r := httptest.NewRequestWithContext(f.t.Context(), method, target, &body)
	r.Header.Set("Content-Type", form.FormDataContentType())
	return f.send(Value(username), r)
}

// send sends a request with the value of a token.
func (f *Forge) send(value string, r *http.Request) Answer {
	for name, values := range f.Header {
		r.Header[name] = values
	}
	if value != "" {
		r.Header.Set("PRIVATE-TOKEN", value)
	}
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	return Answer{Code: w.Code, Header: w.Header(), Body: w.Body.String()}
}
