package githttp_test

import (
	"crypto/sha1"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/protection"
	"github.com/forgeplane/forgeplane/internal/role"
)

const nothing = "0000000000000000000000000000000000000000"

// line is a packet line of these bytes as they are.
func line(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }

// The hook hears of updates line by line: none may hide behind what another one is called.
func TestPush_lineBreakInAName(t *testing.T) {
	f, p, c := seeded(t, "sha1")
	c.Git(t, "push", "--quiet", "origin", "main:release")
	f.set(func() { p.rules = []protection.Rule{protect("release", role.Maintainer)} })
	head := c.Git(t, "rev-parse", "HEAD")
	pack := "PACK\x00\x00\x00\x02\x00\x00\x00\x00"
	sum := sha1.Sum([]byte(pack))
	for _, name := range []string{"refs/heads/x\n\n", "refs/heads/x\n\ny", "refs/heads/x\ny", "\n", "refs/heads/x\x7f"} {
		f.unchanged(t, p, func() {
			_, text := f.do(t, http.MethodPost, "/group/project.git/git-receive-pack", developer, http.Header{"Content-Type": {pushType}},
				line(nothing+" "+head+" "+name+"\x00report-status")+line(head+" "+nothing+" refs/heads/release")+flush+pack+string(sum[:]))
			if strings.Contains(text, "ok refs/heads/release") {
				t.Errorf("%q: got %q", name, text)
			}
		})
	}
}
