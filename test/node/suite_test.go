// Package node_test runs the image in a pod: on a node with the kubelet of the control plane's release, and containerd and runc of the distribution.
package node_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/suite"
)

func TestNode(t *testing.T) {
	suite.Run(t, "Node")
}

// requirements skips the specs on a machine that cannot run pods.
func requirements() {
	GinkgoHelper()
	if os.Geteuid() != 0 {
		Skip("SKIPPED: the node is not tried, because only root can start containers")
	}
	if _, err := os.Stat("/sys/fs/cgroup/memory/cgroup.procs"); err != nil {
		if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil {
			Skip("SKIPPED: the node is not tried, because /sys/fs/cgroup has no memory controller")
		}
	}
	for _, program := range []string{"containerd", "ctr", "runc", "unshare", "nsenter", "apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(program); err != nil {
			Skip("SKIPPED: the node is not tried: " + err.Error() + "; containerd and runc are packages of the distribution")
		}
	}
}

// build builds a program of hack/node into a directory, and returns its path.
func build(ctx context.Context, program, directory string) string {
	GinkgoHelper()
	path := filepath.Join(directory, program)
	command := exec.CommandContext(ctx, "go", "build", "-C", "../../hack/node", "-o", path, "./"+program)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false", "GOWORK=off")
	output, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))
	return path
}
