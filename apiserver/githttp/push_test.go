package githttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/githttp"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/protection"
	"github.com/forgeplane/forgeplane/internal/role"
)

func TestPush_reportsItsWriter(t *testing.T) {
	f, _, c := seeded(t, "sha1")
	c.Git(t, "push", "--quiet", f.url(maintainer, "group/project"), "main:topic")
	f.mu.Lock()
	defer f.mu.Unlock()
	var want []database.User
	for _, user := range []string{developer, maintainer} {
		want = append(want, database.User{ID: userIDs[user], UID: uidOf(userIDs[user])})
	}
	if !slices.Equal(f.writers, want) {
		t.Errorf("got %v, want %v", f.writers, want)
	}
}

func TestProtectedBranches_refusePushes(t *testing.T) {
	f, p, c := seeded(t, "sha1")
	c.Git(t, "push", "--quiet", "origin", "main:release/1", "main:open")
	f.set(func() {
		open := protect("open", role.Developer)
		open.AllowForcePush = true
		p.rules = []protection.Rule{protect("main", role.Maintainer), protect("release/*", role.None), open}
	})
	c.Git(t, "remote", "add", "maintainer", f.url(maintainer, "group/project"))
	first := c.Git(t, "rev-parse", "main")
	c.Commit(t, "a", "1")
	forward := c.Git(t, "rev-parse", "main")
	c.Git(t, "commit", "--quiet", "--amend", "-m", "Other")
	c.Git(t, "commit", "--quiet", "--amend", "--allow-empty", "-m", "Rewritten")
	rewritten := c.Git(t, "commit-tree", "-m", "Unrelated", "HEAD^{tree}")

	for _, x := range []struct {
		about, remote string
		refspecs      []string
		want          []string // parts of the refusal on the terminal
	}{
		{"update", "origin", []string{forward + ":main"}, []string{
			"remote: The push is refused, and nothing was changed.",
			`remote: Branch "main" is protected by "main" (team/rule): only Maintainers may push to it. You have the Developer role.`,
			"! [remote rejected] " + forward + " -> main (pre-receive hook declined)"}},
		{"update together with an unprotected branch", "origin", []string{forward + ":main", forward + ":refs/heads/topic"}, []string{
			`Branch "main" is protected`, forward + " -> topic (pre-receive hook declined)"}},
		{"force", "maintainer", []string{"+" + rewritten + ":main"}, []string{"nobody may rewrite its history"}},
		{"delete", "maintainer", []string{":main"}, []string{`Branch "main" is protected by "main" (team/rule), so Git cannot delete it.`}},
		{"create a branch that a wildcard matches", "maintainer", []string{forward + ":refs/heads/release/2"}, []string{
			`Branch "release/2" is protected by "release/*" (team/rule): no one may push to it. You have the Maintainer role.`}},
		{"update a branch that a wildcard matches", "maintainer", []string{forward + ":refs/heads/release/1"}, []string{"no one may push to it"}},
		{"delete a protected branch together with a push", "origin", []string{forward + ":refs/heads/topic", ":release/1"}, []string{"so Git cannot delete it"}},
	} {
		t.Run(x.about, func(t *testing.T) {
			f.unchanged(t, p, func() {
				contains(t, c.Refused(t, append([]string{"push", x.remote}, x.refspecs...)...), x.want...)
			})
		})
	}

	c.Git(t, "push", "--quiet", "origin", "+"+rewritten+":open", forward+":refs/heads/topic")
	c.Git(t, "push", "--quiet", "origin", "+"+first+":topic", first+":refs/tags/v1")
	c.Git(t, "push", "--quiet", "origin", ":topic")
	c.Git(t, "push", "--quiet", "maintainer", forward+":main")
	want := "refs/heads/main " + forward + "\nrefs/heads/open " + rewritten + "\nrefs/heads/release/1 " + first + "\nrefs/tags/v1 " + first + "\n"
	if got := shownRefs(t, p); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	f.idle(t, p)
}

// A change of the rules applies to the next push without notifying the server.
func TestPush_readsCurrentRules(t *testing.T) {
	f, p, c := seeded(t, "sha1")
	c.Commit(t, "a", "1")
	f.set(func() { p.rules = []protection.Rule{protect("*", role.Maintainer)} })
	c.Refused(t, "push", "origin", "main")
	f.set(func() { p.rules = []protection.Rule{protect("*", role.Developer)} })
	c.Git(t, "push", "--quiet", "origin", "main")
	f.set(func() { p.roles[1] = role.Reporter })
	c.Refused(t, "push", "origin", "main:other")
}

// The pusher can lose their role while the server receives the pack.
func TestPush_isAuthorizedAgainInTheHook(t *testing.T) {
	for about, x := range map[string]struct {
		change func(f *forge, p *project)
		want   string
	}{
		"role":      {func(_ *forge, p *project) { p.roles[1] = role.Reporter }, "remote: You are not allowed to push code to this project."},
		"token":     {func(f *forge, _ *project) { delete(f.tokens, developer) }, "remote: The access token has expired or was revoked since this push began."},
		"scope":     {func(f *forge, _ *project) { f.tokens[developer] = token{user: 1, scopes: "read_repository"} }, "remote: The access token lacks a scope"},
		"blocked":   {func(f *forge, _ *project) { f.tokens[developer] = token{err: githttp.ErrBlocked} }, "remote: Your account has been blocked since this push began."},
		"rules":     {func(_ *forge, p *project) { p.rules = []protection.Rule{protect("main", role.Maintainer)} }, "remote: "},
		"removed":   {func(f *forge, _ *project) { delete(f.projects, "group/project") }, "remote: The project has been moved or removed."},
		"read-only": {func(_ *forge, p *project) { p.readOnly = githttp.ReadOnly }, "remote: " + githttp.ReadOnly},
	} {
		t.Run(about, func(t *testing.T) {
			f, p, c := seeded(t, "sha1")
			c.Commit(t, "a", "1")
			server := f.Config.Handler
			f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost { // the change happens after the request was admitted, when its body is read
					r.Body = afterwards{r.Body, func() { f.set(func() { x.change(f, p) }) }}
				}
				server.ServeHTTP(w, r)
			})
			f.unchanged(t, p, func() { contains(t, c.Refused(t, "push", "origin", "main"), x.want) })
		})
	}
}

// afterwards is a body that calls a function when it is first read.
type afterwards struct {
	io.ReadCloser
	do func()
}

func (a afterwards) Read(p []byte) (int, error) { a.do(); return a.ReadCloser.Read(p) }

func TestReadOnlyProject_refusesPushes(t *testing.T) {
	f, p, c := seeded(t, "sha1")
	c.Commit(t, "a", "1")
	f.set(func() { p.readOnly = "The project is archived." })
	f.unchanged(t, p, func() {
		contains(t, c.Refused(t, "push", "origin", "main"), "fatal: remote error: The project is archived.")
	})
	c.Git(t, "fetch", "--quiet", "origin")
	f.set(func() { p.readOnly = "" })

	open, err := p.repository.Close(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	contains(t, c.Refused(t, "push", "origin", "main"), "fatal: remote error: The repository is temporarily read-only. Please try again later.")
	open()
	c.Git(t, "push", "--quiet", "origin", "main")
}

// If a repository is closed during a push, the hook refuses the push with the same message.
func TestPush_isRefusedIfRepositoryIsClosedMeanwhile(t *testing.T) {
	f, p, c := seeded(t, "sha1")
	c.Commit(t, "a", "1")
	server := f.Config.Handler
	f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			open, err := p.repository.Close(r.Context())
			if err != nil {
				t.Error(err)
				return
			}
			defer open()
		}
		server.ServeHTTP(w, r)
	})
	f.unchanged(t, p, func() {
		contains(t, c.Refused(t, "push", "origin", "main"), "remote: The repository is temporarily read-only. Please try again later.")
	})
}

func TestRefNames_areChecked(t *testing.T) {
	f, p, c := seeded(t, "sha1")
	id := c.Git(t, "rev-parse", "HEAD")
	for name, want := range map[string]string{
		"refs/heads/-x":                          `"refs/heads/-x" is not a valid ref name: it begins with "-".`,
		"refs/tags/--upload-pack=x":              `it begins with "-"`,
		"refs/heads/\xff":                        `"refs/heads/\xff" is not a valid ref name: it is not valid UTF-8.`,
		"refs/heads/a\u0085b":                    `it contains a control character`,
		"refs/heads/" + strings.Repeat("x", 251): "is longer than 250 bytes",
		"refs/merge-requests/1/head":             `"refs/merge-requests/1/head" is managed by the server: only branches, tags and notes can be changed.`,
		"refs/keep-around/x":                     "is managed by the server",
		object.InternalRefs + "x":                "deny updating a hidden ref",
		"refs/x":                                 "is managed by the server",
		"refs/heads/../x":                        `it contains ".."`,
		"refs/heads/a..b":                        `it contains ".."`,
		"refs/heads/a\x01b":                      "it contains a control character",
		"refs/heads/a b":                         `it contains ' '`,
		"refs/heads/.a":                          `a part of it begins with "."`,
		"refs/heads/a.lock":                      `a part of it ends with ".lock"`,
		"HEAD":                                   `it has no "/"`,
		"refs/heads/" + strings.Repeat("0a", 20): "stands for an object",
		"refs/heads/" + strings.Repeat("0a", 32): "stands for an object",
		"../../x":                                `it contains ".."`,
		"main":                                   `it has no "/"`,
	} {
		f.unchanged(t, p, func() {
			if got := f.push(t, p, id, name); !strings.Contains(got, want) {
				t.Errorf("%q: got %q, want %q", name, got, want)
			}
		})
	}
	before := shownRefs(t, p)
	for _, name := range []string{"refs/heads/größe", "refs/heads/a/b", "refs/notes/x", "refs/heads/" + strings.Repeat("0a", 19), "refs/tags/" + strings.Repeat("0a", 20)} {
		if got := f.push(t, p, id, name); !strings.Contains(got, "ok "+name) {
			t.Errorf("%q: got %q", name, got)
		}
	}
	if shownRefs(t, p) == before {
		t.Error("nothing was pushed")
	}
	// Deletions do not bypass the check.
	f.unchanged(t, p, func() {
		line := id + " " + strings.Repeat("0", 40) + " refs/heads/x/../main\x00report-status side-band-64k"
		_, text := f.do(t, http.MethodPost, "/group/project.git/git-receive-pack", developer, http.Header{"Content-Type": {pushType}},
			fmt.Sprintf("%04x%s"+flush, len(line)+4, line))
		contains(t, demultiplex(t, text), "funny refname")
	})
	// A ref with an invalid name that was created in another way can be deleted.
	bad := "refs/heads/\xff"
	if err := os.WriteFile(filepath.Join(p.repository.Dir(), bad), []byte(id+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := f.push(t, p, "", bad); !strings.Contains(got, "ok "+bad) || strings.Contains(shownRefs(t, p), bad) {
		t.Errorf("got %q", got)
	}
}

func TestMergeRequestRefs_canOnlyBeFetched(t *testing.T) {
	f, p, c := seeded(t, "sha1")
	const name = "refs/merge-requests/1/head"
	head := c.Git(t, "rev-parse", "HEAD")
	(&gittest.Client{Dir: p.repository.Dir()}).Git(t, "update-ref", name, head)
	c.Git(t, "fetch", "--quiet", "origin", name)
	if got := c.Git(t, "rev-parse", "FETCH_HEAD"); got != head {
		t.Errorf("fetched %s, want %s", got, head)
	}
	next := c.Commit(t, "a", "another\n")
	f.unchanged(t, p, func() {
		for _, refspec := range []string{":" + name, next + ":" + name, next + ":refs/merge-requests/2/head", next + ":refs/merge-requests/1/merge"} {
			contains(t, c.Refused(t, "push", "--force", "origin", refspec), "is managed by the server")
		}
	})
}

// push sends a push of one ref without the checks that Git clients make, and returns the answer. The server must already have the object.
// Without an id, the push deletes the ref.
func (f *forge) push(t *testing.T, p *project, id, name string) string {
	t.Helper()
	before, after := strings.Repeat("0", 40), id
	if id == "" {
		before, after = strings.Repeat("0", 40), strings.Repeat("0", 40)
		for ref, err := range refs.List(t.Context(), p.repository) {
			if err == nil && ref.Name == name {
				before = ref.Object
			}
		}
	}
	line := before + " " + after + " " + name + "\x00report-status side-band-64k"
	body := fmt.Sprintf("%04x%s", len(line)+4, line) + flush
	if id != "" {
		body += emptyPack
	}
	answer, text := f.do(t, http.MethodPost, "/group/project.git/git-receive-pack", developer, http.Header{"Content-Type": {pushType}}, body)
	if answer.StatusCode != http.StatusOK {
		t.Errorf("%q: got %d %q", name, answer.StatusCode, text)
	}
	return demultiplex(t, text)
}

// demultiplex returns the text in all side bands of an answer, without the packet headers.
func demultiplex(t *testing.T, answer string) string {
	t.Helper()
	var all strings.Builder
	for len(answer) >= 4 {
		size, err := strconv.ParseUint(answer[:4], 16, 16)
		if err != nil || int(size) > len(answer) {
			t.Fatalf("malformed answer %q", answer)
		}
		if size = max(size, 4); size > 4 {
			all.WriteString(answer[5:size])
		}
		answer = answer[size:]
	}
	return all.String()
}

// emptyPack is a pack without objects, and its SHA-1.
const emptyPack = "PACK\x00\x00\x00\x02\x00\x00\x00\x00\x02\x9d\x08\x82\x3b\xd8\xa8\xea\xb5\x10\xad\x6a\xc7\x5c\x82\x3c\xfd\x3e\xd3\x1e"

// pushMany sends a push that creates many branches. A Git client would take half a minute to prepare it.
func (f *forge) pushMany(t *testing.T, n int, id string) string {
	t.Helper()
	var body strings.Builder
	capabilities := "\x00report-status side-band-64k"
	for i := range n {
		line := fmt.Sprintf("%s %s refs/heads/many/%03d/%02d%s", strings.Repeat("0", 40), id, i/100, i%100, capabilities)
		fmt.Fprintf(&body, "%04x%s", len(line)+4, line)
		capabilities = ""
	}
	body.WriteString(flush + emptyPack)
	_, text := f.do(t, http.MethodPost, "/group/project.git/git-receive-pack", developer, http.Header{"Content-Type": {pushType}}, body.String())
	return demultiplex(t, text)
}

func TestPush_canChangeFiveThousandRefs(t *testing.T) {
	f, p, c := seeded(t, "sha1")
	id := c.Git(t, "rev-parse", "HEAD")
	f.set(func() { p.rules = []protection.Rule{protect("many/*", role.Maintainer)} })
	f.unchanged(t, p, func() {
		got := f.pushMany(t, 5000, id)
		contains(t, got, `Branch "many/000/00" is protected`, `Branch "many/000/19" is protected`, "and 4980 more.")
		if strings.Contains(got, `Branch "many/000/20"`) {
			t.Error("more than 20 refs are explained")
		}
	})
	asked := p.asked
	f.set(func() { p.rules = nil })
	f.pushMany(t, 5000, id)
	if got := strings.Count(shownRefs(t, p), "refs/heads/many/"); got != 5000 {
		t.Errorf("got %d refs", got)
	}
	if n := p.asked - asked; n > 3 { // once when the push is admitted, and twice when it is checked
		t.Errorf("the project was asked for %d times", n)
	}
	f.idle(t, p)
}

func TestPush_refusesTooManyRefs(t *testing.T) {
	f, p, c := seeded(t, "sha1")
	f.unchanged(t, p, func() {
		contains(t, f.pushMany(t, 10_001, c.Git(t, "rev-parse", "HEAD")), "a push may change at most 10000 refs. Nothing was changed.")
	})
}

// The terminal shows only the first refs that are refused, and the number of the others.
func TestPush_listsSomeRefusedRefs(t *testing.T) {
	f, p, c := seeded(t, "sha1")
	for i := range 100 {
		c.Git(t, "update-ref", fmt.Sprintf("refs/heads/many/%02d", i), "HEAD")
	}
	f.set(func() { p.rules = []protection.Rule{protect("many/*", role.Maintainer)} })
	f.unchanged(t, p, func() {
		contains(t, c.Refused(t, "push", "origin", "refs/heads/many/*:refs/heads/many/*"),
			`remote: Branch "many/19" is protected`, "remote: and 80 more.", "many/99 -> many/99 (pre-receive hook declined)")
	})
}

// A client can claim any old value. A false value must not turn a forbidden update into one that is allowed.
func TestPush_doesNotTrustOldValues(t *testing.T) {
	f, p, c := seeded(t, "sha1")
	unrelated := c.Git(t, "commit-tree", "-m", "Unrelated", "HEAD^{tree}")
	c.Git(t, "push", "--quiet", "origin", unrelated+":refs/heads/side")
	f.set(func() { p.rules = []protection.Rule{protect("main", role.Developer)} })
	for _, before := range []string{strings.Repeat("0", 40), unrelated, strings.Repeat("1", 40)} {
		f.unchanged(t, p, func() {
			line := before + " " + unrelated + " refs/heads/main\x00report-status side-band-64k"
			_, text := f.do(t, http.MethodPost, "/group/project.git/git-receive-pack", developer, http.Header{"Content-Type": {pushType}},
				fmt.Sprintf("%04x%s"+flush, len(line)+4, line)+emptyPack)
			if strings.Contains(text, "ok refs/heads/main") {
				t.Errorf("claiming %s: got %q", before, text)
			}
		})
	}
}

func TestPush_isRefusedIfItCannotBeChecked(t *testing.T) {
	c0 := func(t *testing.T) (*forge, *project, *gittest.Client) {
		t.Helper()
		f, p, c := seeded(t, "sha1")
		c.Commit(t, "a", "1")
		return f, p, c
	}
	t.Run("the hook cannot reach the server", func(t *testing.T) {
		f, p, c := c0(t)
		f.hooks.Stop()
		f.unchanged(t, p, func() {
			contains(t, c.Refused(t, "push", "origin", "main"), "remote: The server could not check this push, so nothing was changed", "pre-receive hook declined")
		})
	})
	t.Run("the rules cannot be found", func(t *testing.T) {
		f, p, c := c0(t)
		f.set(func() { p.rulesErr = errors.New("the password is 1234") })
		f.unchanged(t, p, func() {
			got := c.Refused(t, "push", "origin", "main")
			contains(t, got, "remote: The server could not check this push, so nothing was changed")
			if strings.Contains(got, "1234") {
				t.Error("the terminal shows the inside")
			}
		})
	})
	t.Run("the check panics", func(t *testing.T) {
		f, p, c := c0(t)
		f.set(func() { p.rules = []protection.Rule{{Name: "*", Push: []protection.Grant{{GroupID: 1}}}} })
		f.set(func() { f.inGroup = func(context.Context, int64) (bool, error) { panic("nobody expects this") } })
		f.unchanged(t, p, func() { contains(t, c.Refused(t, "push", "origin", "main"), "could not check this push") })
	})
	t.Run("the hook is gone", func(t *testing.T) {
		f, p, c := c0(t)
		f.set(func() { _ = os.Remove(f.hooks.Dir + "/pre-receive") })
		f.unchanged(t, p, func() { contains(t, c.Refused(t, "push", "origin", "main"), "The server failed.") })
	})
	t.Run("the hook cannot be executed", func(t *testing.T) {
		f, p, c := c0(t)
		_ = os.Remove(f.hooks.Dir + "/pre-receive")
		if err := os.WriteFile(f.hooks.Dir+"/pre-receive", []byte("nonsense"), 0o755); err != nil {
			t.Fatal(err)
		}
		f.unchanged(t, p, func() { contains(t, c.Refused(t, "push", "origin", "main"), "pre-receive hook declined") })
	})
}

func TestPush_refusesDamagedObjects(t *testing.T) {
	f, p, c := seeded(t, "sha1")
	tree := c.Git(t, "-c", "alias.bad=!printf '100644 .git\\0aaaaaaaaaaaaaaaaaaaa' | git hash-object -w -t tree --literally --stdin", "bad")
	commit := c.Git(t, "commit-tree", "-m", "Bad", tree)
	f.unchanged(t, p, func() {
		c.Refused(t, "push", "origin", commit+":refs/heads/bad")
	})
}

// The check of a push can take long. Changes during the check must count too.
func TestPush_isAuthorizedAgainAfterItsCheck(t *testing.T) {
	for about, x := range map[string]struct {
		change func(f *forge, p *project)
		want   string
	}{
		"token":   {func(f *forge, _ *project) { delete(f.tokens, developer) }, "remote: The access token has expired or was revoked since this push began."},
		"blocked": {func(f *forge, _ *project) { f.tokens[developer] = token{err: githttp.ErrBlocked} }, "remote: Your account has been blocked since this push began."},
		"role":    {func(_ *forge, p *project) { p.roles[1] = role.Reporter }, "remote: You are not allowed to push code to this project."},
		"rules":   {func(_ *forge, p *project) { p.rules = []protection.Rule{protect("main", role.Maintainer)} }, "is protected"},
	} {
		t.Run(about, func(t *testing.T) {
			f, p, c := seeded(t, "sha1")
			c.Commit(t, "a", "1")
			f.set(func() {
				p.rules = []protection.Rule{{Name: "*", Push: []protection.Grant{{GroupID: 1}}}}
				f.inGroup = func(context.Context, int64) (bool, error) {
					f.set(func() { x.change(f, p) })
					return true, nil
				}
			})
			f.unchanged(t, p, func() { contains(t, c.Refused(t, "push", "origin", "main"), x.want) })
		})
	}
}
