package gittest

import (
	"context"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/refs"
)

// Exists reports whether there is something at a path.
func Exists(path string) bool { _, err := os.Lstat(path); return err == nil }

// Incompressible returns a text that compression does not make smaller.
func Incompressible(n int) string {
	b, x := make([]byte, n), uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return string(b)
}

// Password is the password of the user "ann" of remote.
const Password = "s3cret/with@signs"

// Remote serves the repositories in a directory over HTTP, and returns its URL. "/public/" needs no password, and "/moved/" redirects there.
func Remote(t *testing.T, root string) string {
	t.Helper()
	path, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{Path: path, Args: []string{"http-backend"}, Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, given, _ := r.BasicAuth()
		switch {
		case strings.HasPrefix(r.URL.Path, "/moved/"):
			http.Redirect(w, r, "/public/"+strings.TrimPrefix(r.URL.RequestURI(), "/moved/"), http.StatusMovedPermanently)
		case strings.HasPrefix(r.URL.Path, "/public/"):
			http.StripPrefix("/public", backend).ServeHTTP(w, r)
		case user == "ann" && given == Password:
			backend.ServeHTTP(w, r)
		default:
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// RefNames returns the names of the refs below the prefixes.
func RefNames(t *testing.T, r *git.Repository, prefixes ...string) []string {
	t.Helper()
	var all []string
	for ref, err := range refs.List(t.Context(), r, prefixes...) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ref.Name)
	}
	return all
}

// Mount returns a small file system with options of tmpfs, such as size=1m. It skips the test if it cannot mount one.
func Mount(t testing.TB, options string) string {
	t.Helper()
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("SKIPPED: only root can mount a file system")
	}
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", options, "none", dir).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: mounting is not allowed here: %s", out)
	}
	// An idle process of git can still be in it.
	t.Cleanup(func() { _ = exec.CommandContext(context.WithoutCancel(t.Context()), "umount", "--lazy", dir).Run() })
	return dir
}
