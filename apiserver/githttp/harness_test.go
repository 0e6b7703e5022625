package githttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/apiserver/githttp"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/internal/git/upkeep"
	"github.com/forgeplane/forgeplane/internal/hook/hooktest"
	"github.com/forgeplane/forgeplane/internal/protection"
	"github.com/forgeplane/forgeplane/internal/role"
)

// TestMain lets the test binary also run as the hook.
func TestMain(m *testing.M) { hooktest.Main(m) }

// forge is a server with the users, tokens and projects that tests define.
type forge struct {
	*httptest.Server
	handler *githttp.Handler
	storage string
	engine  *git.Engine
	hooks   *hooktest.Serving

	mu       sync.Mutex
	inGroup  func(context.Context, int64) (bool, error)
	tokens   map[string]token
	projects map[string]*project
	pushed   map[types.NamespacedName][]update.Ref
	writers  []database.User
	again    []fair.Key // the callers that were checked again
}

type token struct {
	user   int64
	scopes string
	err    error
}

type project struct {
	name       types.NamespacedName
	repository *git.Repository
	public     bool
	roles      map[int64]role.Role
	rules      []protection.Rule
	rulesErr   error
	openErr    error
	opened     atomic.Int32
	readOnly   string
	asked      int
}

// These are the names of users, and also the values of their tokens, which have all scopes.
const (
	developer, maintainer, reporter, guest, stranger, admin = "developer", "maintainer", "reporter", "guest", "stranger", "admin"
)

var userIDs = map[string]int64{developer: 1, maintainer: 2, reporter: 3, guest: 4, stranger: 5, admin: 6}

func newForge(t testing.TB, configure ...func(*githttp.Options)) *forge {
	t.Helper()
	return newForgeWith(t, "git", configure...)
}

// newForgeWith is newForge with another git binary.
func newForgeWith(t testing.TB, binary string, configure ...func(*githttp.Options)) *forge {
	t.Helper()
	return newForgeOn(t, git.Options{Binary: binary}, configure...)
}

// newForgeOn is newForge with another engine.
func newForgeOn(t testing.TB, engine git.Options, configure ...func(*githttp.Options)) *forge {
	t.Helper()
	f := &forge{
		storage: inMemory(t), tokens: map[string]token{}, projects: map[string]*project{}, pushed: map[types.NamespacedName][]update.Ref{},
	}
	for name, id := range userIDs {
		f.tokens[name] = token{user: id, scopes: "api"}
	}
	for name, scopes := range map[string]string{"reads": "read_repository", "writes": "write_repository", "other": "read_api read_user", "none": ""} {
		f.tokens[name] = token{user: userIDs[developer], scopes: scopes}
	}
	f.tokens["blocked"] = token{err: githttp.ErrBlocked}
	f.tokens["broken"] = token{err: errors.New("the secret of the database is 1234")}

	var err error
	if f.engine, err = git.NewEngine(t.Context(), engine); err != nil {
		t.Fatal(err)
	}
	f.hooks = hooktest.Serve(t)
	o := githttp.Options{
		Authenticator: f, Projects: f, Hooks: &f.hooks.Server, HooksDir: f.hooks.Dir, HookSocket: f.hooks.Socket,
		Log: testr.New(t.(*testing.T)), Written: f.written,
	}
	for _, c := range configure {
		c(&o)
	}
	h, err := githttp.New(o)
	if err != nil {
		t.Fatal(err)
	}
	f.handler = h
	f.Server = httptest.NewServer(h)
	t.Cleanup(f.Close)
	return f
}

// inMemory returns a directory in memory if the system has one, because git syncs each ref, which is slow on a disk.
func inMemory(t testing.TB) string {
	t.Helper()
	if strings.HasPrefix(os.TempDir(), "/dev/shm/") {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp("/dev/shm", "githttp-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// add creates a project with an empty repository, in which each user has the role of the same name.
func (f *forge) add(t testing.TB, path, format string) *project {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	p := &project{name: types.NamespacedName{Namespace: "test", Name: fmt.Sprint("project-", len(f.projects)+1)}, roles: map[int64]role.Role{1: role.Developer, 2: role.Maintainer, 3: role.Reporter, 4: role.Guest}}
	var err error
	if p.repository, err = f.engine.Repository(f.storage, path+".git"); err != nil {
		t.Fatal(err)
	}
	if err := p.repository.Init(t.Context(), git.InitOptions{ObjectFormat: format}); err != nil {
		t.Fatal(err)
	}
	f.projects[path] = p
	return p
}

// set changes a project while the server runs.
func (f *forge) set(modify func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	modify()
}

// url returns the URL of a project for a user; user is empty for anonymous requests.
func (f *forge) url(user, path string) string {
	u, _ := url.Parse(f.URL)
	if user != "" {
		u.User = url.UserPassword("whoever", user)
	}
	return u.String() + "/" + path + ".git"
}

func (f *forge) Authenticate(_ context.Context, _, password string) (githttp.Caller, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, ok := f.tokens[password]
	if !ok {
		return githttp.Caller{}, githttp.ErrUnauthenticated
	}
	return githttp.Caller{UserID: t.user, UID: uidOf(t.user), Key: fair.User(t.user), Scopes: strings.Fields(t.scopes), Who: password}, t.err
}

func uidOf(user int64) types.UID { return types.UID(fmt.Sprint("uid-", user)) }

func (f *forge) Again(ctx context.Context, c githttp.Caller) (githttp.Caller, error) {
	f.set(func() { f.again = append(f.again, fair.From(ctx)) })
	return f.Authenticate(ctx, "", c.Who.(string))
}

func (f *forge) Find(_ context.Context, path string, caller githttp.Caller) (*githttp.Project, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.projects[path]
	if p == nil {
		return nil, githttp.ErrNotFound
	}
	p.asked++
	isAdmin := caller.UserID == userIDs[admin]
	member := p.roles[caller.UserID]
	if !p.public && member == role.None && !isAdmin {
		return nil, githttp.ErrNotFound
	}
	rules, rulesErr := p.rules, p.rulesErr
	found := &githttp.Project{
		Name:     p.name,
		ReadOnly: p.readOnly,
		CanFetch: p.public || member >= role.Reporter || isAdmin,
		Actor:    protection.Actor{UserID: caller.UserID, Role: member, Admin: isAdmin, InGroup: f.inGroup},
		Rules:    func(context.Context, []string) ([]protection.Rule, error) { return rules, rulesErr },
	}
	found.Open = func(context.Context) error {
		p.opened.Add(1)
		found.Repository = p.repository
		return p.openErr
	}
	return found, nil
}

func (f *forge) written(e change.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pushed[e.Project] = append(f.pushed[e.Project], e.Updates...)
	f.writers = append(f.writers, e.By)
}

// protect returns a rule that lets a role push.
func protect(name string, level role.Role) protection.Rule {
	return protection.Rule{Name: name, Source: "team/rule", Push: []protection.Grant{{Role: level}}, Merge: []protection.Grant{{Role: level}}}
}

// seeded returns a forge with one project, "group/project", which has a commit on "main", and a client that also has the commit.
func seeded(t *testing.T, format string) (*forge, *project, *gittest.Client) {
	t.Helper()
	f := newForge(t)
	p := f.add(t, "group/project", format)
	c := gittest.New(t, format)
	c.Commit(t, "README.md", "Hello\n")
	c.Git(t, "remote", "add", "origin", f.url(developer, "group/project"))
	c.Git(t, "push", "--quiet", "origin", "main")
	return f, p, c
}

// refs lists the refs of a project as "name id" lines.
func shownRefs(t *testing.T, p *project) string {
	t.Helper()
	var b strings.Builder
	for ref, err := range refs.List(t.Context(), p.repository) {
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(ref.Name + " " + ref.Object + "\n")
	}
	return b.String()
}

// unchanged runs a push that must be refused, and checks that it leaves nothing behind and that no writer is counted afterwards.
func (f *forge) unchanged(t *testing.T, p *project, push func()) {
	t.Helper()
	before := shownRefs(t, p)
	push()
	if after := shownRefs(t, p); after != before {
		t.Errorf("the refs were\n%sand are\n%s", before, after)
	}
	if err := upkeep.Fsck(t.Context(), p.repository, true); err != nil {
		t.Error(err)
	}
	gittest.Eventually(t, "no quarantine is left", func() bool {
		left, _ := filepath.Glob(p.repository.Dir() + "/objects/tmp_*")
		return len(left) == 0
	})
	f.idle(t, p)
}

// idle checks that no writer is counted.
func (f *forge) idle(t *testing.T, p *project) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	open, err := p.repository.Close(ctx)
	if err != nil {
		t.Fatalf("somebody still writes: %v", err)
	}
	open()
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("got\n%s\nwant a part %q", text, p)
		}
	}
}

// do sends a request without a Git client, and returns the response and its body.
func (f *forge) do(t *testing.T, method, path, user string, header http.Header, body string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, f.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range header {
		r.Header[k] = v
	}
	if user != "" {
		r.SetBasicAuth("whoever", user)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(text)
}
