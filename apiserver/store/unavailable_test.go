package store_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/git"
)

type open struct{}

func (open) Admit(r *http.Request, _ *endpoint.Endpoint, _ endpoint.Sent) (context.Context, any, error) {
	return r.Context(), endpoint.None{}, nil
}

func (open) Check(*endpoint.Endpoint) error { return nil }

func TestAnswerLimit_logsUnavailableRepositoryOnce(t *testing.T) {
	var lines []string
	log := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	away := fmt.Errorf("opening the repository of acme/web: %w", git.ErrStorageMissing)
	handler := endpoint.NewHandler(endpoint.Options{Guard: open{}, Log: log, BaseURL: &url.URL{Path: "/"}, Refused: store.AnswerLimit}, endpoint.Table{
		endpoint.Get("/branches", func(context.Context, endpoint.None, *endpoint.None) (endpoint.None, error) {
			return endpoint.None{}, away
		}),
	})
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/branches", http.NoBody))
	if answer.Code != http.StatusServiceUnavailable || strings.Contains(answer.Body.String(), "acme/web") {
		t.Errorf("got %d %s", answer.Code, answer.Body)
	}
	if len(lines) != 1 || !strings.Contains(lines[0], "acme/web") {
		t.Errorf("the log has %q", lines)
	}
}
