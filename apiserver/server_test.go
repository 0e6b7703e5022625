package apiserver

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/test/patience"
)

// toyServer is a server with test endpoints instead of the endpoints of the forge.
type toyServer struct {
	url   string
	stop  func()
	ended chan error
}

func serveToys(t *testing.T, o Options, table endpoint.Table) toyServer {
	t.Helper()
	program, err := os.Executable() // a placeholder: without pushes, no hook is called
	if err != nil {
		t.Fatal(err)
	}
	external, err := url.Parse(familytest.WebURL)
	if err != nil {
		t.Fatal(err)
	}
	cat := catalogtest.New(t).Catalog()
	o.HookBinary, o.ExternalURL, o.Version, o.Log = program, external, "test", testr.New(t)
	o.Written = func(change.Event) {}
	o.Catalog, o.Repositories, o.Clock = cat, familytest.Limited(t, cat, git.Options{}), clocktesting.NewFakePassiveClock(noon)
	server, err := newServer(t.Context(), o, func(family.Kit) []endpoint.Table { return []endpoint.Table{table} })
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	toys := toyServer{url: "http://" + listener.Addr().String() + restPrefix, stop: stop, ended: make(chan error, 1)}
	go func() { toys.ended <- server.serve(ctx, listener) }()
	t.Cleanup(stop)
	return toys
}

// post sends a body, and returns the status and the answer.
func (s toyServer) post(t *testing.T, path, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/octet-stream")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Error(err)
	}
	return fmt.Sprintf("%d %s", answer.StatusCode, text)
}

func TestPoll_endsWhenServerStops(t *testing.T) {
	waits := make(chan struct{})
	toys := serveToys(t, Options{RuntimeDir: t.TempDir()}, endpoint.Table{
		endpoint.Post("/jobs/request", func(ctx context.Context, _ auth.Instance, _ *endpoint.None) (string, error) {
			never := func() <-chan struct{} { return nil }
			what, _, err := endpoint.Poll(ctx, never, func(context.Context) (string, bool, error) { close(waits); return "nothing", false, nil })
			return "there is " + what, err
		}).Polls(time.Hour).Anybody().Anonymous(endpoint.Served),
	})
	answered := make(chan string, 1)
	go func() { answered <- toys.post(t, "/jobs/request", "") }()
	<-waits
	toys.stop()
	if got := <-answered; got != `201 "there is "` {
		t.Errorf("got %s", got)
	}
	if err := <-toys.ended; err != nil {
		t.Error(err)
	}
}

type upload struct {
	File endpoint.File `body:"application/octet-stream"`
}

// opened returns the files in a directory that this process has open.
func opened(t *testing.T, directory string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && filepath.Dir(name) == directory {
			names = append(names, name)
		}
	}
	return names
}

func TestUploads_areStoredInTheirDirectoryAndCounted(t *testing.T) {
	runtime, other := t.TempDir(), filepath.Join(t.TempDir(), "a", "b")
	for chosen, directory := range map[string]string{"": filepath.Join(runtime, "uploads"), other: other} {
		t.Run(directory, func(t *testing.T) {
			const size = 4 << 20
			disk := fair.NewMemory("upload-disk", fair.Limits{Total: 8 << 20, Share: 8 << 20})
			held := func(ctx context.Context, _ auth.Instance, r *upload) (string, error) {
				return fmt.Sprintf("%d bytes in %d files, held %t", r.File.Size, len(opened(t, directory)), disk.OverShare(ctx, size+1)), nil
			}
			toys := serveToys(t, Options{RuntimeDir: runtime, Uploads: chosen, Disk: disk}, endpoint.Table{
				endpoint.Post("/artifacts", held).MaxBody(size).Anybody().Anonymous(endpoint.Served),
			})
			for range 2 {
				if got, want := toys.post(t, "/artifacts", strings.Repeat("a", size)), fmt.Sprintf("201 %q", fmt.Sprintf("%d bytes in 1 files, held true", size)); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
			// A client can receive the answer before the server has finished the request.
			NewWithT(t).Eventually(func() []string { return opened(t, directory) }).WithTimeout(patience.Wait).Should(BeEmpty())
			if left, err := os.ReadDir(directory); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}
