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
	"github.com/forgeplane/forgeplane/test/terminal"
)

// host is the machine that Forgeplane runs on, with its shards. Forgeplane runs in one process, and in some specs in a second one.
type host struct {
	server
	shards string
	// second is a further server, without controllers, or nil.
	second *server
}

func newHost(controlPlane *controlplane.ControlPlane) *host {
	GinkgoHelper()
	root := GinkgoT().TempDir()
	h := &host{shards: filepath.Join(root, "shards"), server: newServer(root, controlPlane)}
	Expect(os.Mkdir(h.shards, 0o700)).To(Succeed())
	return h
}

// addServer starts a second server, which stops with the spec.
func (h *host) addServer() {
	GinkgoHelper()
	second := newServer(GinkgoT().TempDir(), h.options.ControlPlane)
	second.options.Part, second.options.ServicePort = forgeplane.APIServer, h.options.TLSPort
	second.options.Activity = filepath.Join(h.options.Data, "activity.db")
	h.second = &second
	DeferCleanup(func() {
		second.stop()
		h.second = nil
	})
	second.start()
}

// servers returns all servers.
func (h *host) servers() []*server {
	if h.second == nil {
		return []*server{&h.server}
	}
	return []*server{&h.server, h.second}
}

// shard creates a directory for repositories and declares it. Only projects that name the shard use it.
func (h *host) shard(name string) (directory string) {
	GinkgoHelper()
	directory = h.directory(name)
	h.declare(name, directory)
	return directory
}

// volume is shard for a directory at which a script mounts a volume. The script finds the directory in $directory. The volume is lost when the
// specs end.
func (h *host) volume(name, script string) (directory string) {
	GinkgoHelper()
	needMounts()
	directory = h.directory(name)
	h.stop()
	h.prepare = "directory='" + directory + "'\n" + script
	h.start()
	DeferCleanup(func() {
		h.stop()
		h.prepare = ""
		h.start()
	})
	h.declare(name, directory)
	DeferCleanup(func() { admin.Kubectl("delete", "repositorystorage", name, "--timeout=60s") })
	return directory
}

func (h *host) directory(name string) string {
	GinkgoHelper()
	directory := filepath.Join(h.shards, name)
	Expect(os.Mkdir(directory, 0o700)).To(Succeed())
	return directory
}

func (h *host) declare(name, directory string) {
	GinkgoHelper()
	admin.Apply(fmt.Sprintf(`
apiVersion: forgeplane.dev/v1alpha1
kind: RepositoryStorage
metadata: {name: %s}
spec: {path: %q, weight: 0, allowedNamespaces: {from: All}}
`, name, directory))
}

// killWorkers kills the processes that killed servers have started, as the kernel does when a container ends.
func (h *host) killWorkers() {
	GinkgoHelper()
	Eventually(func() []int {
		pids := h.orphans()
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself
		}
		return pids
	}).WithPolling(polling).Should(BeEmpty())
}

// locks returns the locks that git holds in repositories, or that a killed git has left.
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

// ageLocks makes the locks more than a day old.
func (h *host) ageLocks() {
	GinkgoHelper()
	past := time.Now().Add(-25 * time.Hour)
	for _, path := range h.locks() {
		Expect(os.Chtimes(path, past, past)).To(Succeed())
	}
}

// tidy removes the locks that killed processes have left, after all work has stopped.
func (h *host) tidy() {
	GinkgoHelper()
	Eventually(h.orphans).WithPolling(polling).Should(BeEmpty(), "processes that outlived Forgeplane")
	if len(h.locks()) == 0 {
		return
	}
	h.stop()
	h.ageLocks()
	h.start()
}

// workers returns the processes that work in a repository: git and hooks.
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

// orphans returns the workers that no running server has started.
func (h *host) orphans() []int {
	GinkgoHelper()
	var running []int
	for _, s := range h.servers() {
		running = append(running, s.process.PID())
	}
	return slices.DeleteFunc(h.workers(), func(pid int) bool {
		for pid > 1 && !slices.Contains(running, pid) {
			pid = parent(pid)
		}
		return pid != 1
	})
}

// parent returns the parent of a process, or 0 if the process has ended.
func parent(pid int) int {
	GinkgoHelper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The second field is the program's name in parentheses, which can contain any characters.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	number, err := strconv.Atoi(fields[1])
	Expect(err).NotTo(HaveOccurred())
	return number
}

// owner returns a terminal of Max.
func owner() terminal.Terminal {
	GinkgoHelper()
	return admin.As("max", tokenOf("max"))
}

// tokenOf returns the token in a Secret of the platform.
func tokenOf(secret string) string {
	GinkgoHelper()
	return admin.Kubectl("get", "secret", secret, "--namespace="+forgeplane.Namespace, "--output=go-template={{.data.token | base64decode}}")
}
