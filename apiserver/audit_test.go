package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/ratelimit"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/audit/audittest"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
)

// audited returns the kinds of callers whose requests are sent. Other kinds are logged in the same way.
func audited() map[string]bool {
	names := map[string]bool{}
	for _, name := range []string{"no/tokn", "un-/knwn", "ex-/pird", "re-/vokd", "blo-/ckd", "sid-/er", "all", "read/api", "no/User", "clus/adm"} {
		names[name] = true
	}
	for _, group := range []string{directly, "sud", "Kubernetes"} {
		names[group] = true
	}
	return names
}

// auditor sends the requests of the generated tests through an audited door, and records what the lines must and must not contain.
type auditor struct {
	t       *testing.T
	world   *world
	lines   *audittest.Lines
	sent    map[string]expected
	secrets []string
}

// expected describes a request that was sent, to compare its line with.
type expected struct {
	door   audit.Door
	sample sample
	who    caller
	status int
	target string
	writes bool
	// wrote is true if the request changed something. A write may find that nothing needs to change.
	wrote bool
}

func (a *auditor) send(door audit.Door, s sample, c caller) {
	e := expected{door: door, sample: s, who: c, target: s.target(c.user(s.subject())), writes: changes(s.endpoint)}
	id := fmt.Sprintf("request-%d", len(a.sent))
	handler := a.lines.Handler(audit.At{Door: door, Address: func(*http.Request) string { return "203.0.113.9" }}, a.world.handler)
	r := httptest.NewRequestWithContext(a.t.Context(), s.endpoint.Method(), e.target, strings.NewReader(s.text(c.user(s.subject()))))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Request-Id", id)
	r = c.sign(r, s.subject())
	if value := r.Header.Get("PRIVATE-TOKEN"); value != "" {
		a.secrets = append(a.secrets, value)
		if len(a.sent)%2 == 1 {
			r.Header.Del("PRIVATE-TOKEN")
			r.URL.RawQuery = "private_token=" + value
		}
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, r)
	e.status, e.wrote = answer.Code, a.world.writes() > 0
	a.sent[id] = e
	var made struct {
		Token string `json:"token"`
	}
	if e.writes && answer.Code < 300 {
		_ = json.Unmarshal(answer.Body.Bytes(), &made)
		if made.Token != "" {
			a.secrets = append(a.secrets, made.Token)
		}
		a.world.reset()
	}
	e.writes = e.writes && (!quiet[s.endpoint.String()] || answer.Code >= 300)
	a.sent[id] = e
}

// quiet are the endpoints whose success changes nothing that is worth a line.
var quiet = map[string]bool{"POST /runners/verify": true, "DELETE /runners/managers": true}

// TestAudit_logsEveryWriteOnceAndNoReads calls every endpoint of the table, for callers who are admitted and callers who are refused.
func TestAudit_logsEveryWriteOnceAndNoReads(t *testing.T) {
	t.Parallel()
	a := &auditor{t: t, world: newWorld(t, v1alpha1.VisibilityPrivate), lines: audittest.Open(t), sent: map[string]expected{}}
	a.secrets = []string{"ann:secret", "secret@example.com"}
	names := audited()
	for _, s := range samples(a.world.handler) {
		for _, c := range callers() {
			if !names[c.name] && !names[c.group] || !changes(s.endpoint) && c.name != "all" {
				continue
			}
			door := audit.REST
			if c.group == "Kubernetes" {
				door = audit.Kubernetes
			}
			a.send(door, s, c)
		}
	}
	text := a.lines.Text()
	seen := map[string]int{}
	var said strings.Builder
	for _, e := range audittest.Parse(t, text) {
		seen[e.Request]++
		a.compare(e)
		for i := range e.Objects { // the tokens of the tests are named after their values, which count as secrets
			if e.Objects[i].Kind == "AccessToken" {
				e.Objects[i].Name = ""
			}
		}
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		said.Write(line)
	}
	succeeded := 0
	for id, e := range a.sent {
		want := 0
		if e.writes {
			want = 1
		}
		if seen[id] != want {
			t.Errorf("%s for %s: %d lines, want %d", e.sample, e.who, seen[id], want)
		}
		if e.writes && e.status < 300 {
			succeeded++
		}
	}
	slices.Sort(a.secrets)
	for _, secret := range slices.Compact(a.secrets) {
		if strings.Contains(said.String(), secret) {
			t.Errorf("the lines hold the secret %q", secret)
		}
	}
	t.Logf("%d requests, %d writes that succeeded, %d lines, %d secrets", len(a.sent), succeeded, len(seen), len(a.secrets))
}

// compare compares a line with the request that it describes.
func (a *auditor) compare(got audit.Event) {
	want, ok := a.sent[got.Request]
	if !ok {
		a.t.Errorf("a line of nobody's: %+v", got)
		return
	}
	what := fmt.Sprintf("%s for %s: %d", want.sample, want.who, want.status)
	result := audit.Done
	if want.status >= 400 {
		result = audit.Refused
	}
	if got.Door != want.door || got.Action != want.sample.endpoint.String() || got.Target != want.target || got.Status != want.status ||
		got.Result != result || got.Address != "203.0.113.9" {
		a.t.Errorf("%s: %+v", what, got)
	}
	if !want.sample.endpoint.TakesCredential(endpoint.AccessToken) {
		a.written(what, want, got) // the caller does not matter
		return
	}
	if user := want.who.user(want.sample.subject()); user != 0 && (got.User == nil || got.User.ID != user || got.User.Username == "") {
		a.t.Errorf("%s: the user is %+v, want %d", what, got.User, user)
	}
	switch want.who.group {
	case "Kubernetes":
		if got.Identity == "" || got.Token != 0 {
			a.t.Errorf("%s: the identity is %q, the token %d", what, got.Identity, got.Token)
		}
	case directly, "sud", "adm":
		if got.Token == 0 {
			a.t.Errorf("%s: the token is missing", what)
		}
	}
	if sudo := got.Sudo != nil; sudo != (want.who.group == "sud") {
		a.t.Errorf("%s: sudo is %+v", what, got.Sudo)
	}
	if want.who.name == "re-/vokd" && got.Token != 2002 || want.who.name == "un-/knwn" && (got.Token != 0 || got.User != nil) {
		a.t.Errorf("%s: the token is %d of %+v", what, got.Token, got.User)
	}
	if subject := want.sample.subject(); subject != "instance" && want.status != http.StatusUnauthorized && want.status != 403 && got.About == nil && want.sample.in == "" {
		a.t.Errorf("%s: it is about nothing", what)
	}
	a.written(what, want, got)
}

// written checks that the line of a successful write names the objects and refs that it wrote.
func (a *auditor) written(what string, want expected, got audit.Event) {
	if want.wrote != (len(got.Objects) > 0 || len(got.Refs) > 0) {
		a.t.Errorf("%s: something was written: %v, and named: %+v %+v", what, want.wrote, got.Objects, got.Refs)
	}
	for _, o := range got.Objects {
		if o.Kind == "" || o.Name == "" || o.Verb == "" {
			a.t.Errorf("%s: %+v", what, o)
		}
	}
	for _, r := range got.Refs {
		if r.Name == "" || r.New == "" && r.Old == "" || r.Result != audit.Done {
			a.t.Errorf("%s: %+v", what, r)
		}
	}
}

func TestAudit_namesSubjectAndObject(t *testing.T) {
	w, lines := newWorld(t, v1alpha1.VisibilityPrivate), audittest.Open(t)
	handler := lines.Handler(audit.At{Door: audit.REST, Address: func(*http.Request) string { return "" }}, w.handler)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/projects/above%2Fteam%2Fapp/labels/bug", strings.NewReader(`{"color":"blue"}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("PRIVATE-TOKEN", familytest.Value(member("project", v1alpha1.RoleMaintainer)))
	handler.ServeHTTP(httptest.NewRecorder(), r)
	events := lines.Events()
	if len(events) != 1 || events[0].About == nil || len(events[0].Objects) != 1 {
		t.Fatalf("%+v", events)
	}
	about, object := *events[0].About, events[0].Objects[0]
	if about.Kind != "Project" || about.Namespace != team || about.Name != "app" || about.ID != projectID || about.Path != "above/team/app" || about.UID == "" {
		t.Errorf("about %+v", about)
	}
	if object.Verb != "update" || object.Kind != "Label" || object.Name != "bug" || object.ID != labelID || object.UID == "" {
		t.Errorf("object %+v", object)
	}
}

// A server that has not yet seen the writes of other servers first refuses such a request, and then carries it out.
func TestAudit_logsFinalResultOfRetriedWrite(t *testing.T) {
	w, lines := newWorld(t, v1alpha1.VisibilityPrivate), audittest.Open(t)
	handler := lines.Handler(audit.At{Door: audit.REST, Address: func(*http.Request) string { return "" }}, w.handler)
	guard := &v1alpha1.ProtectedBranch{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "guarded"},
		Spec:       v1alpha1.ProtectedBranchSpec{ID: 51, ProjectRef: &v1alpha1.Reference{Name: "app"}, Branch: "guarded"},
	}
	w.store.world.Put(guard)
	looks := 0
	w.outdated = func() bool {
		looks++
		w.store.world.Remove(guard)
		return true
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/projects/10/repository/branches?branch=guarded&ref=main", http.NoBody)
	r.Header.Set("PRIVATE-TOKEN", familytest.Value(member("project", v1alpha1.RoleDeveloper)))
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, r)
	if answer.Code != http.StatusCreated || looks == 0 {
		t.Fatalf("%d after %d looks: %s", answer.Code, looks, answer.Body)
	}
	events := lines.Events()
	if len(events) != 1 || len(events[0].Refs) != 1 || events[0].Refs[0].Result != audit.Done || events[0].Result != audit.Done {
		t.Errorf("%+v", events)
	}
}

func TestAudit_logsWritesRefusedBeforeTheyAreRead(t *testing.T) {
	w, lines := newWorld(t, v1alpha1.VisibilityPrivate), audittest.Open(t)
	limiter := ratelimit.New(ratelimit.Options{Unauthenticated: 1, Clock: clocktesting.NewFakePassiveClock(noon)})
	handler := lines.Handler(audit.At{Door: audit.REST, Address: func(r *http.Request) string { return limiter.Client(r).String() }}, limiter.Handler(w.handler))
	for _, target := range []string{"/projects", "/projects", "/nothing/fpat-secret"} {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, target, http.NoBody))
	}
	long := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/groups", http.NoBody)
	long.ContentLength = 1 << 40
	handler.ServeHTTP(httptest.NewRecorder(), long)
	var got []string
	for _, e := range lines.Events() {
		got = append(got, fmt.Sprint(e.Action, " ", e.Target, " ", e.Status, " ", e.Address))
	}
	want := "[POST /projects /projects 401 192.0.2.1 POST /projects /projects 429 192.0.2.1 " +
		"POST (no such endpoint)  404 192.0.2.1 POST /groups /groups 413 192.0.2.1]"
	if fmt.Sprint(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// BenchmarkAudit measures a write that is refused because it has no token, with and without a line.
func BenchmarkAudit(b *testing.B) {
	external, err := url.Parse(familytest.WebURL)
	if err != nil {
		b.Fatal(err)
	}
	declared := catalogtest.New(b, declared(v1alpha1.VisibilityPrivate)...)
	cat := declared.Catalog()
	k := newKit(b, cat, auth.NewGuard(auth.NewAuthenticator(cat, clocktesting.NewFakePassiveClock(noon), nil), cat, nil))
	w := newREST(k, external, endpoint.Options{Log: logr.Discard()}, families(k))
	lines := audittest.Open(b)
	for name, log := range map[string]*audit.Log{"without": nil, "with": lines.Log} {
		handler := log.Handler(audit.At{Door: audit.REST, Address: func(*http.Request) string { return "203.0.113.9" }}, w)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/projects/10/labels", http.NoBody)
				r = r.WithContext(auth.WithIdentity(r.Context(), "system:serviceaccount:ci:stranger"))
				handler.ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
}
