package docs_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/forgeplane/forgeplane/apiserver/docs"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

type open struct{}

func (open) Admit(r *http.Request, _ *endpoint.Endpoint, _ endpoint.Sent) (context.Context, any, error) {
	return r.Context(), endpoint.None{}, nil
}

func (open) Check(*endpoint.Endpoint) error { return nil }

type getTree struct {
	ID string `param:"id"`
}

// serveDocs serves the page and an API of one family.
func serveDocs(t *testing.T) *httptest.Server {
	t.Helper()
	api := endpoint.NewHandler(endpoint.Options{
		Guard: open{}, Log: logr.Discard(), BaseURL: &url.URL{Path: "/api/v4"},
		Info: endpoint.Info{Title: "A forge", Version: "1.2.3", Server: "../v4"},
	}, endpoint.Table{
		endpoint.Get("/orchards/{id}/tree", func(_ context.Context, _ endpoint.None, r *getTree) (*getTree, error) { return r, nil }).Doc("Shows the tallest tree."),
	}.Named("Orchards"),
		endpoint.Table{endpoint.Get("/sheds", func(context.Context, endpoint.None, *endpoint.None) (endpoint.None, error) {
			return endpoint.None{}, nil
		})}.Named("Sheds"))
	page, err := docs.New("Reference", "../api/v4/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/api/v4/", http.StripPrefix("/api/v4", api))
	mux.Handle(docs.Path, page)
	mux.Handle(docs.Path+"/", page)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

func TestPage_isServedWithItsFiles(t *testing.T) {
	server := serveDocs(t)
	tests := []struct {
		method, path, encoding string
		status                 int
		contentType, holds     string
	}{
		{"GET", "/-/docs", "", 200, "text/html; charset=utf-8", `data-document="../api/v4/openapi.json"`},
		{"GET", "/-/docs/", "", 200, "text/html; charset=utf-8", `data-document="../api/v4/openapi.json"`},
		{"GET", "/-/docs/page.js", "", 200, "text/javascript; charset=utf-8", "SwaggerUIBundle"},
		{"GET", "/-/docs/swagger-ui.css", "", 200, "text/css; charset=utf-8", ".swagger-ui"},
		{"GET", "/-/docs/swagger-ui-bundle.js", "", 200, "text/javascript; charset=utf-8", "SwaggerUIBundle"},
		{"GET", "/-/docs/swagger-ui-bundle.js", "gzip, br", 200, "text/javascript; charset=utf-8", "\x1f\x8b"},
		{"GET", "/-/docs/page.html", "", 404, "text/plain; charset=utf-8", ""},
		{"GET", "/-/docs/../docs.go", "", 404, "text/plain; charset=utf-8", ""},
		{"POST", "/-/docs", "", 405, "text/plain; charset=utf-8", ""},
	}
	client := http.Client{Transport: &http.Transport{DisableCompression: true}}
	for _, tt := range tests {
		r, err := http.NewRequestWithContext(t.Context(), tt.method, server.URL+tt.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept-Encoding", tt.encoding)
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var body bytes.Buffer
		_, err = body.ReadFrom(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != tt.status || answer.Header.Get("Content-Type") != tt.contentType || !strings.Contains(body.String(), tt.holds) {
			t.Errorf("%s %s: got %d %v %.300s", tt.method, tt.path, answer.StatusCode, answer.Header, body.String())
		}
		if got := answer.Header.Get("Content-Security-Policy"); tt.status == 200 && (!strings.HasPrefix(got, "default-src 'none'; ") || strings.Contains(got, "unsafe")) {
			t.Errorf("%s: the policy is %q", tt.path, got)
		}
	}
}

// tags are what is around the text of a page.
var tags = regexp.MustCompile(`<[^>]*>`)

func TestPage_triesOperationsInBrowser(t *testing.T) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("SKIPPED: chromium is not installed, so the reference is not rendered")
	}
	server := serveDocs(t)
	handler := server.Config.Handler
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case docs.Path:
			page := httptest.NewRecorder()
			handler.ServeHTTP(page, r)
			w.Header().Set("Content-Security-Policy", page.Header().Get("Content-Security-Policy"))
			_, _ = io.WriteString(w, strings.Replace(page.Body.String(), "</head>", `<script src="/try.js" defer></script></head>`, 1))
		case "/try.js":
			http.ServeFile(w, r, "testdata/try.js")
		default:
			handler.ServeHTTP(w, r)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+t.TempDir(),
		"--enable-logging=stderr", "--virtual-time-budget=20000", "--dump-dom", server.URL+docs.Path)
	var page, said bytes.Buffer
	command.Stdout, command.Stderr = &page, &said
	// A helper process of the browser may outlive it and keep the pipes open.
	command.WaitDelay = 5 * time.Second
	if err := command.Run(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		t.Fatalf("running chromium: %v\n%s", err, said.String())
	}
	shown := tags.ReplaceAllString(page.String(), "")
	for _, want := range []string{
		"A forge", "Orchards", "Shows the tallest tree.", "x-scopes", server.URL + "/api/v4/orchards/apples/tree", `"ID": "apples"`,
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	// The console reports requests that the content security policy blocked.
	for line := range strings.Lines(said.String()) {
		if strings.Contains(line, "CONSOLE") {
			t.Errorf("the console says %s", line)
		}
	}
	if t.Failed() {
		t.Logf("%s\n%s", page.String(), said.String())
	}
}
