package endpoint_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

// behind is a guard and a handler that learn of a project, and of its label, only after another server wrote them.
type behind struct {
	known, labelled bool
	asked, admitted int
}

// Admit implements endpoint.Guard.
func (b *behind) Admit(r *http.Request, _ *endpoint.Endpoint, _ endpoint.Sent) (context.Context, any, error) {
	b.admitted++
	if !b.known {
		return nil, nil, endpoint.NotFound("Project")
	}
	return r.Context(), endpoint.None{}, nil
}

func (*behind) Check(*endpoint.Endpoint) error { return nil }

type titled struct {
	Title string `param:"title"`
}

func (b *behind) label(_ context.Context, _ endpoint.None, r *titled) (string, error) {
	if !b.labelled {
		return "", endpoint.NotFound("Label")
	}
	return r.Title, nil
}

func TestOutdated_makesServerRetryOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		before, after   behind
		outdated        bool
		behind          error
		status          int
		asked, admitted int
	}{
		"both are known, so nothing is asked": {before: behind{known: true, labelled: true}, outdated: true, status: 201, admitted: 1},
		"the project was made elsewhere":      {before: behind{labelled: true}, after: behind{known: true, labelled: true}, outdated: true, status: 201, asked: 1, admitted: 2},
		"the label was made elsewhere":        {before: behind{known: true}, after: behind{known: true, labelled: true}, outdated: true, status: 201, asked: 1, admitted: 2},
		"the project was deleted elsewhere":   {before: behind{known: true}, outdated: true, status: 404, asked: 1, admitted: 2},
		"neither was made elsewhere":          {outdated: true, status: 404, asked: 1, admitted: 2},
		"no server has written anything":      {status: 404, asked: 1, admitted: 1},
		"this server is still behind":         {behind: endpoint.Unavailable("behind"), status: 503, asked: 1, admitted: 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := tt.before
			h := endpoint.NewHandler(endpoint.Options{
				Guard: &b, Log: logr.Discard(),
				Outdated: func(context.Context) (bool, error) {
					b.asked++
					b.known, b.labelled = tt.after.known, tt.after.labelled
					return tt.outdated, tt.behind
				},
			}, endpoint.Table{endpoint.Post("/labels", b.label)})
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodPost, "/labels", strings.NewReader(`{"title":"bug"}`))
			r.Header.Set("Content-Type", "application/json")
			h.ServeHTTP(w, r)
			g.Expect(w.Code).To(Equal(tt.status))
			if tt.status == http.StatusCreated {
				g.Expect(w.Body.String()).To(Equal(`"bug"`), "the body is there for both")
			}
			g.Expect(b.asked).To(Equal(tt.asked))
			g.Expect(b.admitted).To(Equal(tt.admitted))
		})
	}
}
