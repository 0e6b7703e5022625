package familytest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/test/soak"
)

// Shop is a forge with three public projects in the group acme: web (20), whose repository has the refs of a client, empty (21), whose
// repository is empty, and new (22), which has no shard yet.
type Shop struct {
	*Forge

	// Git is the repository of web.
	Git *git.Repository
}

// NewShop returns a shop, with more objects.
func NewShop(t testing.TB, c *gittest.Client, more ...client.Object) *Shop {
	t.Helper()
	project := func(name string, id int64) *v1alpha1.Project {
		return Project("acme", name, id, "acme", v1alpha1.VisibilityPublic)
	}
	web, empty := project("web", 20), project("empty", 21)
	f := New(t, append([]client.Object{
		Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic), Shard(t, web, empty), web, empty, project("new", 22),
	}, more...)...)
	repos := Repositories(t, f.Catalog)
	Init(t, repos, empty, "sha1")
	f.Keep(repos)
	return &Shop{Forge: f, Git: Push(t, repos, web, c)}
}

// Asks is an anonymous request and its expected answer, code and body.
type Asks [2]string

// Expect sends the requests and compares their answers.
func (f *Forge) Expect(t testing.TB, all ...Asks) {
	t.Helper()
	for _, a := range all {
		if got := f.As("", a[0], "").String(); got != a[1] {
			t.Errorf("%s\ngot  %.900s\nwant %.900s", a[0], got, a[1])
		}
	}
}

// counted discards and counts the bytes that are written to it.
type counted struct {
	header http.Header
	bytes  int
}

func (c *counted) Header() http.Header { return c.header }
func (c *counted) WriteHeader(int)     {}
func (c *counted) Write(p []byte) (int, error) {
	c.bytes += len(p)
	return len(p), nil
}

// Stream sends an anonymous request and discards the body of the answer. It returns the size of the body and, in "make soak", of the
// memory that was allocated meanwhile, both in bytes.
func (f *Forge) Stream(t testing.TB, request string) (header http.Header, size int, memory uint64) {
	t.Helper()
	method, target, _ := strings.Cut(request, " ")
	w := &counted{header: http.Header{}}
	memory = soak.Allocated(func() { f.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, target, http.NoBody)) })
	return w.header, w.bytes, memory
}
