package crash

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/forgeplane"
	"github.com/forgeplane/forgeplane/test/installation"
	"github.com/forgeplane/forgeplane/test/process"
	"github.com/forgeplane/forgeplane/test/terminal"
)

// host is the machine that Forgeplane runs on, with its shards.
type host struct {
	options forgeplane.Options
	shards  string
	process *process.Process
	// prepare is a script of a POSIX shell that sets up what Forgeplane finds when it starts; none when empty. Mounts
	// are seen by Forgeplane only.
	prepare string
}

func newHost(controlPlane *controlplane.ControlPlane) *host {
	GinkgoHelper()
	ports := installation.FreePorts()
	root := GinkgoT().TempDir()
	h := &host{shards: filepath.Join(root, "shards"), options: forgeplane.Options{
		Programs: filepath.Dir(checkout.Program("forgeplane")), Data: filepath.Join(root, "data"), Logs: filepath.Join(root, "logs"),
		HTTPPort: ports.HTTP, TLSPort: ports.TLS, HealthPort: ports.Health, ControlPlane: controlPlane,
	}}
	for _, directory := range []string{h.shards, h.options.Data} {
		Expect(os.Mkdir(directory, 0o700)).To(Succeed())
	}
	return h
}

// shard makes a directory for repositories and declares it. Projects come to it only when they name it.
func (h *host) shard(name string) (directory string) {
	GinkgoHelper()
	directory = filepath.Join(h.shards, name)
	Expect(os.Mkdir(directory, 0o700)).To(Succeed())
	admin.Apply(fmt.Sprintf(`
apiVersion: forgeplane.dev/v1alpha1
kind: RepositoryStorage
metadata: {name: %s}
spec: {path: %q, weight: 0}
`, name, directory))
	return directory
}

// start starts Forgeplane as make run does, and returns when it is ready, with how long that took.
func (h *host) start() time.Duration {
	GinkgoHelper()
	begun := time.Now()
	program, err := h.options.Program()
	Expect(err).NotTo(HaveOccurred())
	if h.prepare != "" {
		program = inNamespace(program, h.prepare)
	}
	h.process, err = process.Start(program)
	Expect(err).NotTo(HaveOccurred())
	Expect(h.options.AwaitReady(h.process, soon)).To(Succeed(), func() string { return h.process.Tail() })
	return time.Since(begun)
}

// stop ends Forgeplane in good order.
func (h *host) stop() {
	GinkgoHelper()
	if h.process != nil {
		Expect(h.process.Stop()).To(Succeed())
	}
}

// kill is kill -9 of Forgeplane, and of nothing that it has started.
func (h *host) kill() {
	GinkgoHelper()
	Expect(h.process.Kill()).To(Succeed())
}

// killWorkers kills what Forgeplane has started, as the kernel does when a container ends.
func (h *host) killWorkers() {
	GinkgoHelper()
	Eventually(func() []int {
		pids := h.workers()
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself
		}
		return pids
	}).WithTimeout(soon).WithPolling(polling).Should(BeEmpty())
}

// locks are those that git holds in repositories, or that a killed git has left.
func (h *host) locks() (paths []string) {
	GinkgoHelper()
	Expect(filepath.WalkDir(h.shards, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && filepath.Ext(path) == ".lock" {
			paths = append(paths, path)
		}
		return err
	})).To(Succeed())
	return paths
}

// ageLocks lets more than a day go by for the locks.
func (h *host) ageLocks() {
	GinkgoHelper()
	past := time.Now().Add(-25 * time.Hour)
	for _, path := range h.locks() {
		Expect(os.Chtimes(path, past, past)).To(Succeed())
	}
}

// workers are the processes that work in a repository: git and hooks.
func (h *host) workers() (pids []int) {
	GinkgoHelper()
	all, err := filepath.Glob("/proc/[0-9]*/cwd")
	Expect(err).NotTo(HaveOccurred())
	for _, link := range all {
		// A process that ends meanwhile has no working directory.
		directory, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(directory, h.shards+"/") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		Expect(err).NotTo(HaveOccurred())
		pids = append(pids, pid)
	}
	return pids
}

// orphans are the workers that Forgeplane, as it runs now, has not started.
func (h *host) orphans() []int {
	GinkgoHelper()
	return slices.DeleteFunc(h.workers(), func(pid int) bool {
		for pid > 1 && pid != h.process.PID() {
			pid = parent(pid)
		}
		return pid != 1
	})
}

// parent is the process that has started another one, and 0 for one that has ended.
func parent(pid int) int {
	GinkgoHelper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The second field is the program's name in brackets, which may hold anything.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	number, err := strconv.Atoi(fields[1])
	Expect(err).NotTo(HaveOccurred())
	return number
}

// url is the address of a project in "yard".
func (h *host) url(project string) string {
	return fmt.Sprintf("http://127.0.0.1:%d/yard/%s.git", h.options.HTTPPort, project)
}

// owner returns a terminal of Max.
func owner() terminal.Terminal {
	GinkgoHelper()
	return admin.As("max", admin.Kubectl("get", "secret", "max", "--namespace="+forgeplane.Namespace,
		"--output=go-template={{.data.token | base64decode}}"))
}
