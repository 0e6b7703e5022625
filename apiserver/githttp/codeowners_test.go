package githttp_test

import (
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/protection"
	"github.com/forgeplane/forgeplane/internal/role"
)

func TestCodeOwners_mustApproveFiles(t *testing.T) {
	f, p, c := seeded(t, "sha1")
	rule := protect("main", role.Developer)
	rule.CodeOwnerApprovalRequired = true
	created := protect("release/*", role.Developer)
	created.CodeOwnerApprovalRequired = true
	f.set(func() { p.rules = []protection.Rule{rule, created} })
	c.Commit(t, "docs/CODEOWNERS", "/owned/ @ann\n^[Style]\n*.css @ben\n")
	c.Git(t, "push", "--quiet", "origin", "main") // this commit introduces the code owners
	base := c.Git(t, "rev-parse", "HEAD")

	c.Commit(t, "free", "1")
	c.Commit(t, "a.css", "1")
	c.Git(t, "push", "--quiet", "origin", "main", "main:release/1")

	refused := func(refspec string) {
		t.Helper()
		f.unchanged(t, p, func() {
			contains(t, c.Refused(t, "push", "origin", refspec),
				`protected by "`, `and these files have code owners: "owned/x". Change them in a merge request that the owners approve.`)
		})
	}
	c.Commit(t, "owned/x", "1")
	refused("main")
	refused("main:release/2")
	c.Git(t, "push", "--quiet", "origin", "main:topic")
	refused("main") // although the server already has the commits

	// A push cannot remove the code owners who must approve it.
	c.Commit(t, "docs/CODEOWNERS", "# nobody\n")
	refused("main")

	// A change that the same push reverts does not count.
	c.Git(t, "reset", "--quiet", "--hard", base)
	c.Git(t, "pull", "--quiet", "origin", "main")
	c.Commit(t, "owned/y", "1")
	c.Git(t, "rm", "--quiet", "owned/y")
	c.Git(t, "commit", "--quiet", "-m", "Take back")
	c.Git(t, "push", "--quiet", "origin", "main")

	// The push is refused if the code owners cannot be read.
	c.Commit(t, "docs/CODEOWNERS", strings.Repeat("#", 2<<20))
	c.Git(t, "push", "--quiet", "origin", "main")
	c.Commit(t, "free", "2")
	f.unchanged(t, p, func() {
		contains(t, c.Refused(t, "push", "origin", "main"), "The CODEOWNERS file of the branch is too large to determine who must approve.")
	})
}
