package apiserver

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/githttp"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/hook/hooktest"
)

// TestMain lets the test binary also run as the hook.
func TestMain(m *testing.M) { hooktest.Main(m) }

// pushing is a server of pushes to a project among declared objects.
type pushing struct {
	declared *catalogtest.World
	clock    *clocktesting.FakePassiveClock
	handler  http.Handler
	repo     *git.Repository
	client   *gittest.Client // has the content of the repository
}

func newPushing(t *testing.T) *pushing {
	t.Helper()
	objects := declared(v1alpha1.VisibilityPrivate)
	app := project(objects, "app")
	p := &pushing{declared: catalogtest.New(t, append(objects, familytest.Shard(t, app))...), clock: clocktesting.NewFakePassiveClock(noon)}
	cat := p.declared.Catalog()
	repos := familytest.Repositories(t, cat)
	p.client = history(t)
	p.repo = familytest.Push(t, repos, app, p.client)
	hooks := hooktest.Serve(t)
	access := &gitAccess{
		auth: auth.NewAuthenticator(cat, p.clock, nil), catalog: cat, repositories: repos,
	}
	var err error
	p.handler, err = githttp.New(githttp.Options{
		Authenticator: access, Projects: access, Hooks: &hooks.Server, HooksDir: hooks.Dir, HookSocket: hooks.Socket,
		Log: testr.New(t), Written: func(change.Event) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// held is a body that pauses after some bytes until the test resumes it.
type held struct {
	io.ReadCloser
	left   int
	paused chan<- struct{}
	resume <-chan struct{}
}

func (h *held) Read(b []byte) (int, error) {
	if h.left == 0 {
		h.left = -1
		h.paused <- struct{}{}
		<-h.resume
	}
	if h.left > 0 {
		b = b[:min(len(b), h.left)]
	}
	n, err := h.ReadCloser.Read(b)
	if h.left > 0 {
		h.left -= n
	}
	return n, err
}

// Changes while a push is sent must count when the server decides on the push.
func TestPush_isAuthorizedWhenAllOfItHasArrived(t *testing.T) {
	who := member("project", v1alpha1.RoleDeveloper)
	for about, tt := range map[string]struct {
		change func(p *pushing)
		want   string
	}{
		"nothing": {func(*pushing) {}, ""},
		"the token is revoked": {func(p *pushing) {
			p.token(t, who, func(a *v1alpha1.AccessToken) { a.Spec.Revoked = true })
		}, "The access token has expired or was revoked since this push began."},
		"the token is deleted": {func(p *pushing) {
			p.declared.Remove(p.find(t, &v1alpha1.AccessToken{}, client.ObjectKey{Name: tokenName(who)}))
		}, "The access token has expired or was revoked since this push began."},
		"the token expires": {func(p *pushing) {
			p.token(t, who, func(a *v1alpha1.AccessToken) { a.Spec.ExpiresAt = &metav1.Time{Time: noon.Add(time.Minute)} })
			p.clock.SetTime(noon.Add(time.Hour))
		}, "The access token has expired or was revoked since this push began."},
		"the token loses its scope": {func(p *pushing) {
			p.token(t, who, func(a *v1alpha1.AccessToken) { a.Spec.Scopes = []v1alpha1.TokenScope{v1alpha1.ScopeReadRepository} })
		}, "The access token lacks a scope"},
		"the user is blocked": {func(p *pushing) {
			u := p.find(t, &v1alpha1.User{}, client.ObjectKey{Name: who}).(*v1alpha1.User)
			u.Spec.State = v1alpha1.UserBlocked
			p.declared.Put(u)
		}, "Your account has been blocked since this push began."},
		"the membership expires": {func(p *pushing) {
			p.membership(t, who, func(m *v1alpha1.Membership) { m.Spec.ExpiresAt = &metav1.Time{Time: noon.Add(time.Minute)} })
			p.clock.SetTime(noon.Add(time.Hour))
		}, "The project has been moved or removed."},
		"the role is lost": {func(p *pushing) {
			p.membership(t, who, func(m *v1alpha1.Membership) { m.Spec.Role = v1alpha1.RoleReporter })
		}, "You are not allowed to push code to this project."},
		"the branch is protected": {func(p *pushing) {
			p.declared.Put(&v1alpha1.ProtectedBranch{
				ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "topic"},
				Spec:       v1alpha1.ProtectedBranchSpec{ID: 51, ProjectRef: &v1alpha1.Reference{Name: "app"}, Branch: "topic"},
			})
		}, `Branch "topic" is protected`},
		"the project is archived": {func(p *pushing) {
			app := p.find(t, &v1alpha1.Project{}, client.ObjectKey{Namespace: team, Name: "app"}).(*v1alpha1.Project)
			app.Spec.Archived = true
			p.declared.Put(app)
		}, archived},
	} {
		t.Run(about, func(t *testing.T) {
			p := newPushing(t)
			paused, resume := make(chan struct{}, 1), make(chan struct{})
			let := sync.OnceFunc(func() { close(resume) })
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost && r.ContentLength > 100 {
					r.Body = &held{r.Body, int(r.ContentLength / 2), paused, resume}
				}
				p.handler.ServeHTTP(w, r)
			}))
			defer server.Close()
			defer let()
			u, err := url.Parse(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			u.User, u.Path = url.UserPassword("git", familytest.Value(who)), "/above/team/app.git"
			c := p.client
			c.Git(t, "checkout", "--quiet", "topic")
			c.Commit(t, "new", strings.Repeat("new\n", 100))
			before := refFiles(t, p.repo.Dir())
			result := make(chan string, 1)
			go func() { result <- try(c, "push", u.String(), "topic") }()
			select {
			case <-paused:
			case said := <-result:
				t.Fatalf("it did not get half-way: %s", said)
			}
			tt.change(p)
			let()
			said := <-result
			moved := !bytes.Equal(refFiles(t, p.repo.Dir())["heads/topic"], before["heads/topic"])
			if moved != (tt.want == "") || !strings.Contains(said, tt.want) {
				t.Errorf("moved: %v, said:\n%s\nwant %q", moved, said, tt.want)
			}
		})
	}
}

// try returns the output of git, whether it succeeds or fails.
func try(c *gittest.Client, args ...string) string {
	out, err := c.Try(args...)
	if err != nil {
		return out + err.Error()
	}
	return out
}

func tokenName(who string) string { return strings.ReplaceAll(familytest.Value(who), "_", "-") }

// find returns a copy of an object.
func (p *pushing) find(t *testing.T, into client.Object, key client.ObjectKey) client.Object {
	t.Helper()
	if err := p.declared.Reader().Get(t.Context(), key, into); err != nil {
		t.Fatal(err)
	}
	return into
}

func (p *pushing) token(t *testing.T, who string, modify func(*v1alpha1.AccessToken)) {
	t.Helper()
	a := p.find(t, &v1alpha1.AccessToken{}, client.ObjectKey{Name: tokenName(who)}).(*v1alpha1.AccessToken)
	modify(a)
	p.declared.Put(a)
}

func (p *pushing) membership(t *testing.T, who string, modify func(*v1alpha1.Membership)) {
	t.Helper()
	var all v1alpha1.MembershipList
	if err := p.declared.Reader().List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for i := range all.Items {
		m := &all.Items[i]
		if (m.Spec.UserRef.Name == who || m.Spec.UserRef.Path == who) && m.Spec.ProjectRef != nil && m.Spec.ProjectRef.Name == "app" {
			modify(m)
			p.declared.Put(m)
			return
		}
	}
	t.Fatalf("%s has no membership", who)
}
