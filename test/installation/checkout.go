// Package installation provides Forgeplane in the way of a user who has just cloned it: a checkout with built programs, and the processes that
// "make run" starts in it.
package installation

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/terminal"
)

// Checkout is a copy of the checkout that contains the tests, including its uncommitted changes, with a history of one commit.
type Checkout struct {
	// Dir is the work tree.
	Dir string

	home string
}

// programs are the programs that "make build" builds.
var programs = []string{"run", "forgeplane", "forgeplane-hook"}

// NewCheckout copies the checkout into a directory that is removed with the spec or suite. It calls "make build" and copies the built programs.
// The programs of the control plane are those that the tests use.
func NewCheckout() *Checkout {
	GinkgoHelper()
	space := GinkgoT().TempDir()
	c := &Checkout{Dir: filepath.Join(space, "forgeplane"), home: filepath.Join(space, "home")}
	Expect(os.Mkdir(c.home, 0o700)).To(Succeed())
	source := root()
	shell := withGo(terminal.New(source, c.home))
	shell.Do("make", "--no-print-directory", "build")
	for path := range strings.SplitSeq(shell.Git("ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00") {
		copyFile(filepath.Join(source, path), filepath.Join(c.Dir, path))
	}
	copied := shell.In(c.Dir).As("somebody", "")
	copied.Git("init", "--quiet", "--initial-branch=main")
	copied.Git("add", ".")
	copied.Git("commit", "--quiet", "--message", "Everything")
	for _, name := range programs {
		copyFile(filepath.Join(source, "bin", name), c.Program(name))
	}
	binaries, err := controlplane.FindBinaries()
	Expect(err).NotTo(HaveOccurred())
	Expect(os.Mkdir(c.Program("k8s"), 0o755)).To(Succeed())
	for _, program := range []string{binaries.Etcd, binaries.APIServer, binaries.Controllers, binaries.Kubectl} {
		Expect(os.Symlink(program, filepath.Join(c.Program("k8s"), filepath.Base(program)))).To(Succeed())
	}
	return c
}

// Developer returns a terminal in the checkout that has Go, with the caches of the tests.
func (c *Checkout) Developer() terminal.Terminal {
	GinkgoHelper()
	return withGo(c.Terminal())
}

func withGo(t terminal.Terminal) terminal.Terminal {
	GinkgoHelper()
	for _, variable := range []string{"GOCACHE", "GOFLAGS", "GOMODCACHE", "GOPATH", "GOPROXY"} {
		value, err := exec.CommandContext(context.Background(), "go", "env", variable).Output()
		Expect(err).NotTo(HaveOccurred())
		t = t.With(variable + "=" + strings.TrimSpace(string(value)))
	}
	return t
}

// Program returns the path of a program in bin.
func (c *Checkout) Program(name string) string { return filepath.Join(c.Dir, "bin", name) }

// Helm builds Helm, and returns the directory of the program.
func Helm(ctx context.Context) string {
	GinkgoHelper()
	build(ctx, "helm")
	return filepath.Join(root(), "bin")
}

// GitOps builds the engines of GitOps tools, and returns the program that runs them.
func GitOps(ctx context.Context) string {
	GinkgoHelper()
	build(ctx, "gitops")
	return filepath.Join(root(), "bin", "gitops")
}

// Runner builds the CI runner, where "make runner" of the checkout finds it, too.
func (c *Checkout) Runner(ctx context.Context) {
	GinkgoHelper()
	build(ctx, runner)
	err := os.Symlink(filepath.Join(root(), "bin", runner), c.Program(runner))
	Expect(err).To(Or(Not(HaveOccurred()), MatchError(fs.ErrExist)))
}

const runner = "gitlab-runner"

func build(ctx context.Context, target string) {
	GinkgoHelper()
	made, err := exec.CommandContext(ctx, "make", "--no-print-directory", "--directory="+root(), target).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(made))
}

// root returns the checkout that contains the working directory.
func root() string {
	GinkgoHelper()
	directory, err := os.Getwd()
	Expect(err).NotTo(HaveOccurred())
	for directory != filepath.Dir(directory) {
		if _, err := os.Stat(filepath.Join(directory, "go.mod")); err == nil {
			return directory
		}
		directory = filepath.Dir(directory)
	}
	Fail("the working directory is in no checkout")
	return ""
}

// copyFile copies a file or link if it exists, because git also lists files that were deleted without a commit. Go's test cache records the files
// of the module that a test opens, so a change of any of them runs the test again.
func copyFile(from, to string) {
	GinkgoHelper()
	info, err := os.Lstat(from)
	if os.IsNotExist(err) || err == nil && info.IsDir() {
		return
	}
	Expect(err).NotTo(HaveOccurred())
	Expect(os.MkdirAll(filepath.Dir(to), 0o755)).To(Succeed())
	if info.Mode()&os.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.Symlink(target, to)).To(Succeed())
		return
	}
	content, err := os.ReadFile(from)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(to, content, info.Mode().Perm())).To(Succeed())
}
