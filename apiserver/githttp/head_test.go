package githttp_test

import (
	"crypto/sha1"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/protection"
	"github.com/forgeplane/forgeplane/internal/role"
)

const nothing = "0000000000000000000000000000000000000000"

// line returns a packet line with exactly this text.
func line(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }

// No Git client sends these. git processes the head of a push before it calls the hook, and without a quarantine.
func TestPush_isRefusedIfItsHeadIsMalformed(t *testing.T) {
	f := newForgeOn(t, git.Options{Limits: git.Limits{Repository: 64 << 10}})
	p := f.add(t, "group/project", "sha1")
	c := gittest.New(t, "sha1")
	head := c.Commit(t, "a", "a")
	c.Git(t, "push", "--quiet", f.url(developer, "group/project"), "main")
	f.set(func() { p.rules = []protection.Rule{protect("main", role.Maintainer)} })

	capabilities := "\x00report-status side-band-64k object-format=sha1"
	create := nothing + " " + nothing + " refs/heads/x"
	certificate := func(before string) string {
		var b strings.Builder
		b.WriteString(before + line("push-cert"+capabilities) + line("certificate version 0.1\n") + line("\n") + line(create+"\n") + line("-----BEGIN PGP SIGNATURE-----\n"))
		for noise := random(128 << 10); noise != ""; noise = noise[min(len(noise), 60_000):] {
			b.WriteString(line(strings.ReplaceAll(noise[:min(len(noise), 60_000)], "\x00", "0")))
		}
		return b.String() + line("push-cert-end\n") + flush
	}
	const malformed, signed = "The request is malformed", "Signed pushes are not supported"
	for about, tt := range map[string]struct{ body, want string }{
		"a certificate":                      {certificate(""), signed},
		"a certificate after a shallow line": {certificate(line("shallow " + head)), signed},
		"a certificate after a command":      {line(create+capabilities) + certificate(""), signed},
		"a certificate after many commands":  {line(create+capabilities) + strings.Repeat(line(create), 1000) + certificate(""), signed},
		"a certificate with a line break":    {line("push-cert\n") + flush, signed},
		"another word":                       {line(create+capabilities) + line("hello") + flush, malformed},
		"another delimiter":                  {line(create+capabilities) + "0001" + line(create) + flush, malformed},
		"no end":                             {line(create + capabilities), malformed},
		"many lines, and half a one":         {line(create+capabilities) + strings.Repeat(line(create), 1000) + line(create)[:60], malformed},
		"capabilities twice":                 {line(create+capabilities) + line(create+capabilities) + flush, malformed},
		"half a line":                        {line(create + capabilities)[:60], malformed},
		"an id that is malformed":            {line("shallow "+strings.Repeat("x", 40)) + line(create+capabilities) + flush, malformed},
		"a line that only servers send":      {line(create+capabilities) + line("ERR no") + flush, malformed},
	} {
		before := onDisk(t, p.repository.Dir())
		f.unchanged(t, p, func() {
			answer, text := f.do(t, http.MethodPost, "/group/project.git/git-receive-pack", developer, http.Header{"Content-Type": {pushType}}, tt.body)
			if answer.StatusCode != http.StatusBadRequest || !strings.Contains(text, tt.want) {
				t.Errorf("%s: got %d %.200q, want 400 %q", about, answer.StatusCode, text, tt.want)
			}
		})
		if after := onDisk(t, p.repository.Dir()); after != before {
			t.Errorf("%s: the repository had %d bytes before, and has %d now", about, before, after)
		}
	}
	if len(f.pushed[p.name]) != 1 {
		t.Errorf("told of %v", f.pushed[p.name])
	}
}

// The hook reads one update per line, so a line break in the name of a ref could hide another update.
func TestPush_isRefusedIfRefNameHasLineBreak(t *testing.T) {
	f, p, c := seeded(t, "sha1")
	c.Git(t, "push", "--quiet", "origin", "main:release")
	f.set(func() { p.rules = []protection.Rule{protect("release", role.Maintainer)} })
	head := c.Git(t, "rev-parse", "HEAD")
	pack := "PACK\x00\x00\x00\x02\x00\x00\x00\x00"
	sum := sha1.Sum([]byte(pack))
	for _, name := range []string{"refs/heads/x\n\n", "refs/heads/x\n\ny", "refs/heads/x\ny", "\n"} {
		f.unchanged(t, p, func() {
			answer, text := f.do(t, http.MethodPost, "/group/project.git/git-receive-pack", developer, http.Header{"Content-Type": {pushType}},
				line(nothing+" "+head+" "+name+"\x00report-status")+line(head+" "+nothing+" refs/heads/release")+flush+pack+string(sum[:]))
			if answer.StatusCode != http.StatusBadRequest || !strings.Contains(text, "malformed") {
				t.Errorf("%q: got %d %q", name, answer.StatusCode, text)
			}
		})
	}
}

// A client that can sign pushes must find out that the server does not support it.
func TestPush_cannotBeSigned(t *testing.T) {
	f := newForge(t)
	f.add(t, "group/project", "sha1")
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "a")
	url := f.url(developer, "group/project")
	contains(t, c.Refused(t, "push", "--signed", url, "main"), "the receiving end does not support --signed push")
	c.Git(t, "push", "--quiet", "--signed=if-asked", url, "main")
}
