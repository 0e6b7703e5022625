package audit_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1 "k8s.io/api/core/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/audit/audittest"
)

var at = audit.At{Door: audit.REST, Address: func(*http.Request) string { return "203.0.113.7" }}

// serve sends a request through a door to a handler, and returns the lines.
func serve(t *testing.T, r *http.Request, h http.HandlerFunc) []audit.Event {
	t.Helper()
	lines := audittest.Open(t)
	func() {
		defer func() { _ = recover() }()
		lines.Handler(at, h).ServeHTTP(httptest.NewRecorder(), r)
	}()
	return lines.Events()
}

func post(t *testing.T) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/things?private_token=secret", http.NoBody)
	r.RemoteAddr = "192.0.2.1:1234"
	return r
}

func TestHandler_logsWritesAndNoReads(t *testing.T) {
	g := NewWithT(t)
	lines := serve(t, post(t), func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", "abc")
		record := audit.From(r.Context())
		record.Action("POST /things", r.URL.EscapedPath())
		for range 2 { // as after a body that arrived slowly
			record.User(&v1alpha1.User{Spec: v1alpha1.UserSpec{ID: 1, Username: "root", Admin: true}})
			record.Sudo(&v1alpha1.User{Spec: v1alpha1.UserSpec{ID: 2, Username: "ann"}})
		}
		w.WriteHeader(http.StatusCreated)
	})
	g.Expect(lines).To(HaveLen(1))
	e := lines[0]
	g.Expect(e.Time.IsZero()).To(BeFalse())
	e.Time = metav1.Time{}.Time
	g.Expect(e).To(Equal(audit.Event{
		Door: audit.REST, Action: "POST /things", Target: "/things", Result: audit.Done, Status: 201, Request: "abc",
		Address: "203.0.113.7", Peer: "192.0.2.1", User: &audit.User{ID: 2, Username: "ann"}, Sudo: &audit.User{ID: 1, Username: "root", Admin: true},
	}))
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions} {
		r := httptest.NewRequestWithContext(t.Context(), method, "/things", http.NoBody)
		g.Expect(serve(t, r, func(_ http.ResponseWriter, r *http.Request) {
			audit.From(r.Context()).Action("nobody listens", "") // must not panic
		})).To(BeEmpty())
	}
}

func TestHandler_logsOutcomeOfWrite(t *testing.T) {
	gone, leave := context.WithCancel(t.Context())
	leave()
	for name, tt := range map[string]struct {
		r           *http.Request
		handler     http.HandlerFunc
		result      audit.Result
		status      int
		interrupted bool
	}{
		"without an answer":          {post(t), func(http.ResponseWriter, *http.Request) {}, audit.Failed, 0, false},
		"with a body, but no status": {post(t), func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(nil) }, audit.Done, 200, false},
		"refused":                    {post(t), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) }, audit.Refused, 429, false},
		"failed":                     {post(t), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, audit.Failed, 503, false},
		"after an early hint":        {post(t), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(204) }, audit.Done, 204, false},
		"with a panic":               {post(t), func(http.ResponseWriter, *http.Request) { panic("at the disco") }, audit.Failed, 0, true},
		"cut off":                    {post(t), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200); panic(http.ErrAbortHandler) }, audit.Done, 200, true},
		"when the client leaves":     {post(t).WithContext(gone), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201) }, audit.Done, 201, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			lines := serve(t, tt.r, tt.handler)
			g.Expect(lines).To(HaveLen(1))
			g.Expect(lines[0]).To(And(HaveField("Result", tt.result), HaveField("Status", tt.status), HaveField("Interrupted", tt.interrupted)))
		})
	}
}

func TestClient_logsWrittenObjects(t *testing.T) {
	g := NewWithT(t)
	attempts := 0
	scheme := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if attempts++; attempts == 1 {
				return errors.New("somebody else was faster")
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
	c := audit.Client(scheme.Build())
	g.Expect(audit.Client(nil)).To(BeNil())
	lines := serve(t, post(t), func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "s", UID: "u1"}, StringData: map[string]string{"token": "secret"}}
		g.Expect(c.Create(ctx, s)).To(Succeed())
		before := s.DeepCopy()
		s.Labels = map[string]string{"a": "b"}
		g.Expect(c.Patch(ctx, s, client.MergeFrom(before))).NotTo(Succeed())
		s.Labels = map[string]string{"a": "b"}
		g.Expect(c.Patch(ctx, s, client.MergeFrom(before))).To(Succeed())
		g.Expect(c.Delete(ctx, s)).To(Succeed())
		g.Expect(c.Delete(ctx, s)).NotTo(Succeed())
		w.WriteHeader(http.StatusNoContent)
	})
	object := func(verb string, failed bool) audit.Object {
		return audit.Object{Verb: verb, Kind: "Secret", Namespace: "acme", Name: "s", UID: "u1", Failed: failed}
	}
	g.Expect(lines[0].Objects).To(Equal([]audit.Object{object("create", false), object("update", false), object("delete", false), object("delete", true)}))
	g.Expect(c.Get(t.Context(), client.ObjectKey{Name: "s"}, &corev1.Secret{})).NotTo(Succeed())
}

func TestClient_logsStatusUpdates(t *testing.T) {
	g := NewWithT(t)
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "s", UID: "u1"}}
	c := audit.Client(fake.NewClientBuilder().WithObjects(s).WithStatusSubresource(s).Build())
	lines := serve(t, post(t), func(w http.ResponseWriter, r *http.Request) {
		g.Expect(c.Get(r.Context(), client.ObjectKeyFromObject(s), s)).To(Succeed())
		before := s.DeepCopy()
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: "a"}}
		g.Expect(c.Status().Patch(r.Context(), s, client.MergeFrom(before))).To(Succeed())
		w.WriteHeader(http.StatusNoContent)
	})
	g.Expect(lines[0].Objects).To(Equal([]audit.Object{{Verb: "update-status", Kind: "Service", Namespace: "acme", Name: "s", UID: "u1"}}))
}
