package crash

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"

	. "github.com/onsi/ginkgo/v2"

	"github.com/forgeplane/forgeplane/test/process"
)

// unshare are the arguments that give a program its own mounts.
func unshare() []string {
	if os.Geteuid() == 0 {
		return []string{"--mount"}
	}
	return []string{"--mount", "--user", "--map-root-user"}
}

// needMounts skips the spec if a program cannot have its own mounts.
func needMounts() {
	GinkgoHelper()
	for _, name := range []string{"unshare", "nsenter", "mount"} {
		if _, err := exec.LookPath(name); err != nil {
			Skip(fmt.Sprintf("SKIPPED: a small file system is not available: %v", err))
		}
	}
	directory := GinkgoT().TempDir()
	screen, err := admin.Try("unshare", append(unshare(), "mount", "-t", "tmpfs", "tmpfs", directory)...)
	if err != nil {
		Skip(fmt.Sprintf("SKIPPED: a small file system is not available: %v: %s", err, screen))
	}
}

// inNamespace gives a program its own mounts, and runs a script before the program.
func inNamespace(program process.Program, script string) process.Program {
	program.Args = slices.Concat(unshare(), []string{"sh", "-euc", script + "\nexec \"$@\"", "sh", program.Path}, program.Args)
	program.Path, _ = exec.LookPath("unshare") // see needMounts
	return program
}

// inside runs a shell script with the mounts of Forgeplane.
func (h *host) inside(script string) (screen string, err error) {
	options := []string{"--target", strconv.Itoa(h.process.PID()), "--mount"}
	if os.Geteuid() != 0 {
		options = append(options, "--user", "--preserve-credentials")
	}
	return admin.Try("nsenter", append(options, "sh", "-euc", script)...)
}
