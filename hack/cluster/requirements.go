package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// packages are the programs of the distribution that a node needs, with their packages in Debian.
var packages = map[string]string{
	"containerd": "containerd", "ctr": "containerd", "runc": "runc", "nft": "nftables", "ip": "iproute2", "unshare": "util-linux", "nsenter": "util-linux",
	"mount": "mount", "tar": "tar",
}

// tried are the commands that the kernel can refuse.
const tried = `ip link set lo up
ip link add node type veth peer name wire
echo 1 >/proc/sys/net/ipv4/ip_forward
nft add table ip node`

// limitsMemory reports whether the control groups at a directory have the memory controller, in their first or second version.
func limitsMemory(groups string) bool {
	if _, err := os.Stat(filepath.Join(groups, "memory", "cgroup.procs")); err == nil {
		return true
	}
	controllers, err := os.ReadFile(filepath.Join(groups, "cgroup.controllers"))
	return err == nil && slices.Contains(strings.Fields(string(controllers)), "memory")
}

// requirements returns an error that says why this machine cannot run a node, or nil.
func requirements(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return errors.New("only root can start containers")
	}
	if !limitsMemory("/sys/fs/cgroup") {
		return errors.New("/sys/fs/cgroup has no memory controller")
	}
	var absent []error
	for program, from := range packages {
		if _, err := exec.LookPath(program); err != nil {
			absent = append(absent, fmt.Errorf("%w: install the package %s", err, from))
		}
	}
	if len(absent) > 0 {
		return errors.Join(absent...)
	}
	output, err := exec.CommandContext(ctx, "unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "sh", "-euc", tried).CombinedOutput()
	if err != nil {
		return fmt.Errorf("it refuses namespaces, or a network in them: %w: %s", err, bytes.TrimSpace(output))
	}
	return nil
}
