package terminal

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// As returns a terminal of a person with a name and credentials for git. If the token is empty, the person has no credentials.
func (t Terminal) As(username, token string) Terminal {
	GinkgoHelper()
	t = t.With("GIT_AUTHOR_NAME="+username, "GIT_AUTHOR_EMAIL="+username+"@example.com",
		"GIT_COMMITTER_NAME="+username, "GIT_COMMITTER_EMAIL="+username+"@example.com")
	if token == "" {
		return t
	}
	file := filepath.Join(t.Space(), "credentials")
	Expect(os.WriteFile(file, fmt.Appendf(nil, "username=%s\npassword=%s\n", username, token), 0o600)).To(Succeed())
	// Unlike the helpers of git, this helper keeps credentials that a server has refused.
	return t.With("GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_1=credential.helper", "GIT_CONFIG_VALUE_1=!f() { cat '"+file+"'; }; f")
}

// Git runs git, which must succeed, and returns its standard output without the last newline.
func (t Terminal) Git(args ...string) string {
	GinkgoHelper()
	return t.Do("git", args...)
}

// Clone clones a repository, with options of git clone before its address, and returns a terminal in the work tree.
func (t Terminal) Clone(args ...string) Terminal {
	GinkgoHelper()
	tree := filepath.Join(t.Space(), "clone")
	t.Git(append(append([]string{"clone", "--quiet"}, args...), tree)...)
	return t.In(tree)
}

// Commit writes a file, commits it, and returns the id of the commit.
func (t Terminal) Commit(path, content string) string {
	GinkgoHelper()
	file := filepath.Join(t.Dir, path)
	Expect(os.MkdirAll(filepath.Dir(file), 0o755)).To(Succeed())
	Expect(os.WriteFile(file, []byte(content), 0o644)).To(Succeed())
	t.Git("add", "--", path)
	t.Git("commit", "--quiet", "--message", "Change "+path)
	return t.Git("rev-parse", "HEAD")
}

// Push pushes HEAD to a branch of origin, with options of git push before it.
func (t Terminal) Push(branch string, options ...string) (screen string, err error) {
	return t.Try("git", t.push(branch, options)...)
}

// MustPush is Push for a push that must succeed.
func (t Terminal) MustPush(branch string, options ...string) {
	GinkgoHelper()
	t.Git(t.push(branch, options)...)
}

// RefusedPush is Push for a push that must fail. It returns the output.
func (t Terminal) RefusedPush(branch string, options ...string) (screen string) {
	GinkgoHelper()
	return Readable(t.Fail("git", t.push(branch, options)...))
}

func (t Terminal) push(branch string, options []string) []string {
	return append(append([]string{"push"}, options...), "origin", "HEAD:refs/heads/"+branch)
}

// Readable removes the trailing spaces with which git pads each line of the server.
func Readable(screen string) string {
	lines := strings.Split(screen, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n")
}
