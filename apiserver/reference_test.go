package apiserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/docs"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
)

// marks matches the tags of a page.
var marks = regexp.MustCompile(`<[^>]*>`)

func TestReference_triesOperationsInBrowser(t *testing.T) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("SKIPPED: chromium is not installed, so the reference is not rendered")
	}
	reference, err := newReference()
	if err != nil {
		t.Fatal(err)
	}
	nothing := http.NotFoundHandler()
	handler := split(newWorld(t, v1alpha1.VisibilityPrivate).handler, nothing, reference, nothing, nothing)
	script := fmt.Sprintf(`<script src="/try.js" data-token=%q defer></script></head>`, familytest.Value("admin"))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case docs.Path:
			page := httptest.NewRecorder()
			handler.ServeHTTP(page, r)
			w.Header().Set("Content-Security-Policy", page.Header().Get("Content-Security-Policy"))
			_, _ = io.WriteString(w, strings.Replace(page.Body.String(), "</head>", script, 1))
		case "/try.js":
			http.ServeFile(w, r, "testdata/try.js")
		default:
			handler.ServeHTTP(w, r)
		}
	}))
	defer server.Close()
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
	shown := marks.ReplaceAllString(page.String(), "")
	for _, want := range []string{
		"Get a project.", "x-scopes", server.URL + "/api/v4/projects/above%2Fteam%2Fapp", `"path_with_namespace": "above/team/app"`,
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
