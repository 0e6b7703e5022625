package audit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/audit/audittest"
)

func TestRestrict_explainsRefusals(t *testing.T) {
	const why = "the scope does not allow it"
	project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "web"}}
	restrict := func(hides bool) func(*audit.Record) {
		return func(r *audit.Record) { r.Restrict(project, "acme/web", why, hides) }
	}
	for name, tt := range map[string]struct {
		do     func(*audit.Record)
		status int
		// read and write are the reasons in the lines of a read and of a write, or "none" without a line.
		read, write string
	}{
		"of a hidden project":                   {restrict(true), 404, why, why},
		"of a visible project":                  {restrict(false), 403, why, why},
		"to anonymous callers":                  {restrict(false), 401, why, why},
		"unless something else is missing":      {restrict(false), 404, "none", ""},
		"unless a parameter is wrong":           {restrict(true), 400, "none", ""},
		"unless there are too many requests":    {restrict(true), 429, "none", ""},
		"unless the server fails":               {restrict(true), 503, "none", ""},
		"unless the request succeeds":           {restrict(false), 200, "none", ""},
		"unless the restriction is removed":     {func(r *audit.Record) { restrict(true)(r); r.Restrict(project, "acme/web", "", false) }, 404, "none", ""},
		"that the status does not show":         {func(r *audit.Record) { restrict(false)(r); r.Refuse() }, 200, why, why},
		"that later decisions do not change":    {func(r *audit.Record) { restrict(false)(r); r.Refuse(); r.Restrict(project, "", "", false) }, 200, why, why},
		"unless the request is served again":    {func(r *audit.Record) { restrict(false)(r); r.Refuse(); r.Again() }, 200, "none", ""},
		"unless Refuse is without restriction":  {func(r *audit.Record) { r.Refuse() }, 200, "none", ""},
		"unless another reason is known":        {func(r *audit.Record) { restrict(true)(r); r.Result(audit.Refused, "other") }, 404, "other", "other"},
		"unless the record is that of no write": {func(*audit.Record) { restrict(true)(nil); (*audit.Record)(nil).Refuse() }, 404, "none", ""},
	} {
		for method, want := range map[string]string{http.MethodGet: tt.read, http.MethodPost: tt.write} {
			t.Run(name+" "+method, func(t *testing.T) {
				g, lines := NewWithT(t), audittest.Open(t)
				at := at
				at.Reads = func(*http.Request) bool { return true }
				lines.Handler(at, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					record := audit.From(r.Context())
					record.Job(7)
					tt.do(record)
					w.WriteHeader(tt.status)
				})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), method, "/", http.NoBody))
				all := lines.Events()
				if want == "none" {
					g.Expect(all).To(BeEmpty())
					return
				}
				g.Expect(all).To(HaveLen(1))
				g.Expect(all[0]).To(And(HaveField("Reason", want), HaveField("Job", int64(7)), HaveField("Status", tt.status)))
				if want == why {
					g.Expect(all[0]).To(And(HaveField("Result", audit.Refused), HaveField("About", HaveValue(HaveField("Path", "acme/web")))))
				}
			})
		}
	}
}

func TestRestrict_isNotRecordedForOtherReads(t *testing.T) {
	read := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	lines := serve(t, read, func(w http.ResponseWriter, r *http.Request) {
		audit.From(r.Context()).Restrict(&v1alpha1.Project{}, "acme/web", "a reason", true)
		w.WriteHeader(http.StatusNotFound)
	})
	NewWithT(t).Expect(lines).To(BeEmpty())
}
