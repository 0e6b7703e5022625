package transfer_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
	"github.com/forgeplane/forgeplane/internal/git/upkeep"
)

// mirror is a repository that is pushed, and the repository that it is pushed to.
type mirror struct {
	client *gittest.Client
	here   *git.Repository
	there  *git.Repository
	server string
	argv   string
}

func newMirror(t *testing.T, format string) *mirror {
	t.Helper()
	m := &mirror{client: gittest.New(t, format), argv: filepath.Join(t.TempDir(), "argv")}
	m.client.Commit(t, "README", "hello")
	m.client.Git(t, "branch", "topic/x")
	m.client.Git(t, "branch", "release/1")
	m.client.Git(t, "tag", "-a", "-m", "One", "v1")
	m.client.Git(t, "update-ref", "refs/merge-requests/1/head", "HEAD")
	storage, root := t.TempDir(), t.TempDir()
	m.here = gittest.Repository(t, gittest.EngineWith(t, `echo "$@" >>`+m.argv), storage, "here.git")
	m.there = gittest.Repository(t, gittest.NewEngine(t), root, "there.git")
	for _, r := range []*git.Repository{m.here, m.there} {
		if err := r.Init(t.Context(), git.InitOptions{ObjectFormat: format}); err != nil {
			t.Fatal(err)
		}
	}
	m.client.Git(t, "push", "--quiet", "--mirror", m.here.Dir())
	m.client.Git(t, "-C", m.there.Dir(), "config", "http.receivepack", "true")
	m.server = gittest.Remote(t, root)
	return m
}

func (m *mirror) push(t *testing.T, change func(o *transfer.PushOptions)) (transfer.PushResult, error) {
	t.Helper()
	o := transfer.PushOptions{URL: m.server + "/there.git", Username: "ann", Password: gittest.Password, Timeout: time.Minute}
	if change != nil {
		change(&o)
	}
	return transfer.Push(t.Context(), m.here, o)
}

func (m *mirror) pushed(t *testing.T, change func(o *transfer.PushOptions)) transfer.PushResult {
	t.Helper()
	result, err := m.push(t, change)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// refs returns the refs of a repository, as "object name".
func listedRefs(t *testing.T, r *git.Repository, prefixes ...string) (all []string) {
	t.Helper()
	for ref, err := range refs.List(t.Context(), r, prefixes...) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ref.Object+" "+ref.Name)
	}
	return all
}

func (m *mirror) same(t *testing.T) {
	t.Helper()
	here, there := listedRefs(t, m.here, "refs/heads/", "refs/tags/"), listedRefs(t, m.there, "refs/")
	if !slices.Equal(here, there) {
		t.Errorf("here:\n%s\nthere:\n%s", strings.Join(here, "\n"), strings.Join(there, "\n"))
	}
}

func TestPush_makesTheOtherSideIdentical(t *testing.T) {
	for _, format := range gittest.Formats {
		t.Run(format, func(t *testing.T) {
			m := newMirror(t, format)
			if r := m.pushed(t, nil); r.Updated != 4 || len(r.Refused) > 0 {
				t.Errorf("got %+v", r)
			}
			m.same(t)
			if r := m.pushed(t, nil); r.Updated != 0 {
				t.Errorf("again: %+v", r)
			}

			m.client.Commit(t, "README", "more")
			m.client.Git(t, "commit", "--quiet", "--amend", "--message", "Rewritten")
			m.client.Git(t, "branch", "--delete", "--force", "topic/x")
			m.client.Git(t, "branch", "topic")
			m.client.Git(t, "tag", "--force", "v1")
			m.client.Git(t, "push", "--quiet", "--mirror", m.here.Dir())
			m.client.Git(t, "push", "--quiet", m.there.Dir(), "HEAD~1:refs/heads/extra", "HEAD~1:refs/tags/extra")
			m.pushed(t, nil)
			m.same(t)
			if err := upkeep.Fsck(t.Context(), m.there, true); err != nil {
				t.Error(err)
			}
			if argv, _ := os.ReadFile(m.argv); strings.Contains(string(argv), "s3cret") || !strings.Contains(string(argv), "remote-http") {
				t.Errorf("arguments:\n%s", argv)
			}
		})
	}
}

func TestPush_leavesOtherBranchesAlone(t *testing.T) {
	m := newMirror(t, "sha1")
	m.client.Git(t, "push", "--quiet", m.there.Dir(), "HEAD:refs/heads/release/0", "HEAD:refs/heads/theirs")
	m.pushed(t, func(o *transfer.PushOptions) {
		o.Branch = func(name string) bool { return strings.HasPrefix(name, "release/") }
	})
	if got, want := gittest.RefNames(t, m.there), []string{"refs/heads/release/1", "refs/heads/theirs", "refs/tags/v1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPush_keepsRefsOfTheOtherSide(t *testing.T) {
	m := newMirror(t, "sha1")
	keep := func(o *transfer.PushOptions) { o.Keep = true }
	m.pushed(t, keep)
	m.same(t)
	theirs := gittest.New(t, "sha1")
	theirs.Git(t, "pull", "--quiet", m.there.Dir(), "main")
	ahead := theirs.Commit(t, "README", "theirs")
	theirs.Git(t, "push", "--quiet", m.there.Dir(), "HEAD:refs/heads/main", "HEAD:refs/heads/theirs", "+HEAD:refs/tags/v1")
	m.client.Commit(t, "README", "ours")
	m.client.Git(t, "branch", "--force", "topic/x")
	m.client.Git(t, "push", "--quiet", "--mirror", m.here.Dir())
	result := m.pushed(t, keep)
	want := []transfer.RefusedRef{{Name: "refs/heads/main", Reason: "it has diverged", Diverged: true}, {Name: "refs/tags/v1", Reason: "it has diverged", Diverged: true}}
	if !slices.Equal(result.Refused, want) || result.Updated != 1 {
		t.Errorf("got %+v", result)
	}
	there := listedRefs(t, m.there, "refs/")
	for _, ref := range []string{ahead + " refs/heads/main", ahead + " refs/heads/theirs", m.client.Git(t, "rev-parse", "HEAD") + " refs/heads/topic/x"} {
		if !slices.Contains(there, ref) {
			t.Errorf("%s is not in %q", ref, there)
		}
	}
}

func TestPush_namesRefusedRefs(t *testing.T) {
	m := newMirror(t, "sha1")
	hook := "#!/bin/sh\ncase $1 in */release/*) echo 'ask ann:" + gittest.Password + "' >&2; exit 1;; esac\n"
	if err := os.MkdirAll(m.there.Dir()+"/hooks", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(m.there.Dir()+"/hooks/update", []byte(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	result := m.pushed(t, nil)
	if want := []transfer.RefusedRef{{Name: "refs/heads/release/1", Reason: "hook declined"}}; !slices.Equal(result.Refused, want) || result.Updated != 3 {
		t.Errorf("got %+v", result)
	}
}

func TestPush_handlesManyRefs(t *testing.T) {
	m := newMirror(t, "sha1")
	var lines strings.Builder
	head := m.client.Git(t, "rev-parse", "HEAD")
	const many = 2000
	for i := range many {
		fmt.Fprintf(&lines, "%s refs/heads/%s/%05d\n", head, strings.Repeat("long", 10), i)
	}
	packed := m.here.Dir() + "/packed-refs"
	if err := os.WriteFile(packed, []byte(lines.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := m.pushed(t, nil); r.Updated != many+4 {
		t.Errorf("got %d", r.Updated)
	}
	m.same(t)
}

func TestPush_removesNothingIfRepositoryIsEmpty(t *testing.T) {
	m := newMirror(t, "sha1")
	m.pushed(t, nil)
	before := listedRefs(t, m.there, "refs/")
	m.here = gittest.Repository(t, gittest.NewEngine(t), t.TempDir(), "empty.git")
	if _, err := m.push(t, nil); !errors.Is(err, git.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if err := m.here.Init(t.Context(), git.InitOptions{}); err != nil {
		t.Fatal(err)
	}
	if r := m.pushed(t, func(o *transfer.PushOptions) { o.URL = "http://127.0.0.1:1/" }); r.Updated != 0 {
		t.Errorf("got %+v", r)
	}
	if got := listedRefs(t, m.there, "refs/"); !slices.Equal(got, before) {
		t.Errorf("got %q", got)
	}
}

func TestPushFailures(t *testing.T) {
	m := newMirror(t, "sha1")
	other := newMirror(t, "sha256")
	vanishing := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer vanishing.Close()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "<html>Hello</html>") }))
	defer page.Close()
	for about, c := range map[string]struct {
		change func(o *transfer.PushOptions)
		want   error
		text   string
	}{
		"no credentials":    {func(o *transfer.PushOptions) { o.Username, o.Password = "", "" }, transfer.ErrCredentials, ""},
		"wrong credentials": {func(o *transfer.PushOptions) { o.Password = "wr0ng" }, transfer.ErrCredentials, ""},
		"moved":             {func(o *transfer.PushOptions) { o.URL = m.server + "/moved/there.git" }, nil, "301"},
		"absent":            {func(o *transfer.PushOptions) { o.URL = m.server + "/absent.git" }, nil, "not found"},
		"nobody there":      {func(o *transfer.PushOptions) { o.URL = "http://127.0.0.1:1/o.git" }, nil, "Failed to connect"},
		"vanishing":         {func(o *transfer.PushOptions) { o.URL = vanishing.URL }, nil, "Empty reply from server"},
		"a page":            {func(o *transfer.PushOptions) { o.URL = page.URL }, nil, "git"},
		"ftp":               {func(o *transfer.PushOptions) { o.URL = "ftp://example.com/o.git" }, transfer.ErrURL, "ftp"},
		"file":              {func(o *transfer.PushOptions) { o.URL = "file://" + m.there.Dir() }, transfer.ErrURL, "file"},
		"option":            {func(o *transfer.PushOptions) { o.URL = "--receive-pack=true" }, transfer.ErrURL, ""},
		"another format":    {func(o *transfer.PushOptions) { o.URL = other.server + "/there.git" }, nil, ""},
	} {
		t.Run(about, func(t *testing.T) {
			_, err := m.push(t, c.change)
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %v %q", err, c.want, c.text)
			}
			for _, secret := range []string{"wr0ng", gittest.Password, "s3cret", "YW5u"} {
				if strings.Contains(fmt.Sprint(err), secret) {
					t.Errorf("the error tells the password: %v", err)
				}
			}
		})
	}
}

func TestPush_endsInTime(t *testing.T) {
	m := newMirror(t, "sha1")
	path, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{Path: path, Args: []string{"http-backend"}, Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(m.there.Dir()), "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=ann"}}
	// The server answers the listing, but never the push.
	hanging := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice that the client disconnects
			<-r.Context().Done()
			return
		}
		backend.ServeHTTP(w, r)
	}))
	defer hanging.Close()
	_, err = m.push(t, func(o *transfer.PushOptions) { o.URL, o.Timeout = hanging.URL+"/there.git", 500*time.Millisecond })
	if !errors.Is(err, transfer.ErrTimeout) {
		t.Errorf("got %v", err)
	}
	_, err = m.push(t, func(o *transfer.PushOptions) { o.URL, o.Stall = hanging.URL+"/there.git", time.Second })
	if err == nil || !strings.Contains(err.Error(), "too slow") {
		t.Errorf("got %v", err)
	}
	if got := listedRefs(t, m.there, "refs/"); len(got) > 0 {
		t.Errorf("got %q", got)
	}
}
