package crash

import (
	"fmt"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/terminal"
)

// hesitant is an update hook of a target. It stops before the branch "second" until the file "go" is written, and then refuses the branch once.
const hesitant = `#!/bin/sh
if [ "$1" = refs/heads/second ] && [ ! -e went ]; then
	: > held
	cat go
	: > went
	exit 1
fi
`

// newTarget serves an empty repository to everybody. It returns the directory and the address of the repository.
func newTarget() (directory, url string) {
	GinkgoHelper()
	root := GinkgoT().TempDir()
	directory = filepath.Join(root, "target.git")
	admin.Git("init", "--quiet", "--bare", "--initial-branch=main", directory)
	git, err := exec.LookPath("git")
	Expect(err).NotTo(HaveOccurred())
	server := httptest.NewServer(&cgi.Handler{
		Path: git, Args: []string{"http-backend"}, Stderr: GinkgoWriter,
		Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=mirror"},
	})
	DeferCleanup(server.Close)
	return directory, server.URL + "/target.git"
}

var _ = Describe("A mirror", func() {
	var target, url string
	var clone terminal.Terminal
	refs := func() string { return admin.Git("ls-remote", "--heads", "--tags", target) }

	BeforeEach(func() {
		target, url = newTarget()
		machine.shard("mirrored")
		create(project("mirrored", "mirrored"))
		expectReady("mirrored")
		DeferCleanup(expectRemoved, "mirrored")
		DeferCleanup(func() { admin.Kubectl("delete", "remotemirror/mirrored", "--namespace=yard", "--ignore-not-found") })
		clone = owner().Clone(machine.url("mirrored"))
	})

	It("is complete in the end if Forgeplane is killed in the middle of a push", func() {
		letGo := filepath.Join(target, "go")
		Expect(syscall.Mkfifo(letGo, 0o600)).To(Succeed())
		DeferCleanup(func() {
			// A hook that still waits for the pipe prevents the server from stopping. Without a reader, the pipe cannot be opened.
			if f, err := os.OpenFile(letGo, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
				_ = f.Close()
			}
		})
		Expect(os.WriteFile(filepath.Join(target, "hooks", "update"), []byte(hesitant), 0o755)).To(Succeed())
		clone.Commit("one.txt", "One.\n")
		clone.Git("push", "--quiet", "origin", "HEAD:refs/heads/main", "HEAD:refs/heads/first", "HEAD:refs/heads/second", "HEAD:refs/tags/v1")
		admin.Apply(fmt.Sprintf(`
apiVersion: forgeplane.dev/v1alpha1
kind: RemoteMirror
metadata: {name: mirrored, namespace: yard}
spec: {projectRef: {name: mirrored}, url: %q}
`, url))
		held := func() string { return filepath.Join(target, "held") }
		Eventually(held).WithPolling(polling).Should(BeAnExistingFile())
		Expect(refs()).To(And(ContainSubstring("refs/heads/first"), Not(ContainSubstring("refs/heads/second"))))

		machine.kill()
		machine.killWorkers()
		Expect(os.WriteFile(letGo, nil, 0o600)).To(Succeed())
		machine.ageLocks()
		machine.start()
		admin.WaitReady("remotemirror/mirrored", "--namespace=yard")
		Expect(refs()).To(And(ContainSubstring("refs/heads/second"), Equal(clone.Git("ls-remote", "--heads", "--tags", "origin"))))

		By("following later pushes")
		clone.Commit("two.txt", "Two.\n")
		clone.Git("push", "--quiet", "origin", "HEAD:refs/heads/main", ":refs/heads/first")
		Eventually(refs).WithPolling(polling).Should(Equal(clone.Git("ls-remote", "--heads", "--tags", "origin")))
	})
})
