package endpoint_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

func TestObserve_seesEveryAnswerOfAnEndpoint(t *testing.T) {
	g := NewWithT(t)
	type request struct {
		Outcome string `param:"outcome"`
	}
	var seen []string
	h := endpoint.NewHandler(endpoint.Options{
		Guard: open{}, Log: logr.Discard(), BaseURL: &url.URL{Path: "/api/v4"},
		Observe: func(e *endpoint.Endpoint, status int, took time.Duration) {
			g.Expect(took).To(BeNumerically(">", 0))
			seen = append(seen, fmt.Sprint(e.Method(), " ", e.Path(), " ", status))
		},
	}, endpoint.Table{endpoint.Post("/things/{outcome}", func(_ context.Context, _ endpoint.None, r *request) (string, error) {
		switch r.Outcome {
		case "missing":
			return "", endpoint.NotFound("Thing")
		case "broken":
			return "", errors.New("broken")
		case "panic":
			panic("at the disco")
		default:
			return "made", nil
		}
	})})
	for _, path := range []string{"/things/new", "/things/missing", "/things/broken", "/things/panic", "/nothing"} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, http.NoBody))
	}
	const route = "POST /things/{outcome} "
	g.Expect(seen).To(Equal([]string{route + "201", route + "404", route + "500", route + "500"}))
}
