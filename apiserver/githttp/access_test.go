package githttp_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

func TestAccess(t *testing.T) {
	f := newForge(t)
	f.add(t, "team/private", "sha1")
	f.add(t, "team/public", "sha1").public = true
	const fetch, push = "git-upload-pack", "git-receive-pack"
	const signIn, invalid, gone = "Please sign in", "it may be unknown, expired or revoked", "could not be found or you don't have permission to view it."
	for _, c := range []struct {
		user, path, service string
		status              int
		text                string
	}{
		{"", "team/public", fetch, 200, ""},
		{"", "team/public", push, 401, signIn},
		{"", "team/private", fetch, 401, signIn},
		{"", "team/private", push, 401, signIn},
		{"", "team/absent", fetch, 401, signIn},
		{"", "team/absent", push, 401, signIn},
		{"", "team/../private", fetch, 401, signIn},

		{stranger, "team/public", fetch, 200, ""},
		{stranger, "team/public", push, 403, "You are not allowed to push code to this project."},
		{stranger, "team/private", fetch, 404, gone},
		{stranger, "team/private", push, 404, gone},
		{stranger, "team/absent", fetch, 404, gone},
		{stranger, "team/%2e%2e/private", fetch, 404, gone},

		{guest, "team/private", fetch, 403, "You are not allowed to download code from this project."},
		{guest, "team/private", push, 403, "not allowed to push"},
		{guest, "team/public", fetch, 200, ""},
		{reporter, "team/private", fetch, 200, ""},
		{reporter, "team/private", push, 403, "not allowed to push"},
		{developer, "team/private", fetch, 200, ""},
		{developer, "team/private", push, 200, ""},
		{admin, "team/private", fetch, 200, ""},
		{admin, "team/private", push, 200, ""},

		{"unknown", "team/public", fetch, 401, invalid},
		{"unknown", "team/private", fetch, 401, invalid},
		{"unknown", "team/absent", push, 401, invalid},
		{"blocked", "team/public", fetch, 403, "Your account has been blocked."},
		{"broken", "team/public", fetch, 500, "The server failed."},

		{"reads", "team/private", fetch, 200, ""},
		{"reads", "team/private", push, 403, "to push it needs write_repository or api"},
		{"reads", "team/absent", push, 403, "to push it needs write_repository or api"},
		{"writes", "team/private", fetch, 200, ""},
		{"writes", "team/private", push, 200, ""},
		{"other", "team/private", fetch, 403, "to fetch it needs read_repository, write_repository or api"},
		{"other", "team/public", fetch, 403, "to fetch it needs"},
		{"other", "team/absent", fetch, 403, "to fetch it needs"},
		{"none", "team/private", push, 403, "to push it needs"},
	} {
		for _, request := range []struct{ method, path, kind string }{
			{http.MethodGet, "/info/refs?service=" + c.service, ""},
			{http.MethodPost, "/" + c.service, "application/x-" + c.service + "-request"},
		} {
			answer, text := f.do(t, request.method, "/"+c.path+".git"+request.path, c.user, http.Header{"Content-Type": {request.kind}}, "0000")
			if answer.StatusCode != c.status || !strings.Contains(text, c.text) {
				t.Errorf("%q %s %s%s: got %d %q, want %d %q", c.user, request.method, c.path, request.path, answer.StatusCode, text, c.status, c.text)
			}
			if challenge := answer.Header.Get("WWW-Authenticate"); (challenge == `Basic realm="Forgeplane"`) != (c.status == 401) {
				t.Errorf("%q %s: status %d with the challenge %q", c.user, c.path, c.status, challenge)
			}
			if strings.Contains(text, "1234") {
				t.Errorf("the answer tells about the inside: %q", text)
			}
		}
	}
	for _, credentials := range []string{"Bearer " + developer, "Basic !!!", "Negotiate x"} {
		answer, _ := f.do(t, http.MethodGet, "/team/public.git/info/refs?service=git-upload-pack", "", http.Header{"Authorization": {credentials}}, "")
		if answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("%q: got %d", credentials, answer.StatusCode)
		}
	}
}

// The answer must not reveal whether a project is missing or only hidden from the caller.
func TestHiddenProjects_lookLikeAbsentProjects(t *testing.T) {
	f := newForge(t)
	f.add(t, "team/private", "sha1")
	for _, user := range []string{"", stranger} {
		for _, service := range []string{"git-upload-pack", "git-receive-pack"} {
			var seen [2]string
			for i, path := range []string{"team/private", "team/absent"} {
				answer, text := f.do(t, http.MethodGet, "/"+path+".git/info/refs?service="+service, user, nil, "")
				answer.Header.Del("Date")
				var b strings.Builder
				_ = answer.Header.Write(&b)
				seen[i] = answer.Status + b.String() + text
			}
			if seen[0] != seen[1] {
				t.Errorf("%q %s: got\n%s\nand\n%s", user, service, seen[0], seen[1])
			}
		}
	}
}

func TestErrors_areShownOnTheTerminal(t *testing.T) {
	f, p, c := seeded(t, "sha1")
	at := func(user, path string) string { return f.url(user, path) }
	contains(t, c.Refused(t, "ls-remote", at("", "group/project")), "could not read Username")
	contains(t, c.Refused(t, "ls-remote", at("unknown", "group/project")), "Authentication failed")
	contains(t, c.Refused(t, "ls-remote", at(stranger, "group/project")), "remote: The project you were looking for could not be found")
	contains(t, c.Refused(t, "ls-remote", at("other", "group/project")), "remote: The access token lacks a scope: to fetch it needs read_repository")
	contains(t, c.Refused(t, "push", at("reads", "group/project"), "main:x"), "remote: The access token lacks a scope: to push it needs write_repository")
	contains(t, c.Refused(t, "push", at(reporter, "group/project"), "main:x"), "remote: You are not allowed to push code to this project.")
	contains(t, c.Refused(t, "ls-remote", strings.TrimSuffix(at(developer, "group/project"), ".git")), `remote: The URL of a repository must end with ".git": please add it.`)

	f.set(func() { f.tokens[developer] = token{err: nil, user: 0} }) // as if revoked
	contains(t, c.Refused(t, "push", "origin", "main:x"), "Authentication failed")
	f.set(func() { f.tokens[developer] = token{user: 1, scopes: "api"} })

	if err := os.Rename(p.repository.Dir(), p.repository.Dir()+".away"); err != nil {
		t.Fatal(err)
	}
	contains(t, c.Refused(t, "ls-remote", "origin"), "remote: The repository is not available.")
	contains(t, c.Refused(t, "push", "origin", "main:x"), "remote: The repository is not available.")
	if err := os.Rename(f.storage, f.storage+".away"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Rename(f.storage+".away", f.storage) })
	contains(t, c.Refused(t, "ls-remote", "origin"), "remote: The repository is not available.")
}

func TestClone_needsNoCredentialsForPublicProject(t *testing.T) {
	f, p, _ := seeded(t, "sha1")
	f.set(func() { p.public = true })
	clone := &gittest.Client{Dir: t.TempDir()}
	clone.Git(t, "clone", "--quiet", f.url("", "group/project"), ".")
}
