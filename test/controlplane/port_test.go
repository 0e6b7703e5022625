package controlplane_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/forgeplane/forgeplane/test/controlplane"
)

func TestFreePort_isOfOneProcess(t *testing.T) {
	if os.Getenv("FORGEPLANE_TEST_PORTS") != "" {
		port, err := controlplane.FreePort(t.Context())
		fmt.Fprintln(os.Stdout, "port", port, err)
		return
	}
	t.Setenv("TMPDIR", t.TempDir())
	port, err := controlplane.FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(os.TempDir(), "forgeplane-test-ports"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	// Everything but this port is somebody else's.
	for _, rest := range []syscall.Flock_t{{Start: 0, Len: int64(port)}, {Start: int64(port) + 1}} {
		rest.Type = syscall.F_WRLCK
		if err := syscall.FcntlFlock(file.Fd(), syscall.F_SETLK, &rest); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFreePort_isOfOneProcess$")
	c.Env = append(os.Environ(), "FORGEPLANE_TEST_PORTS=none")
	text, err := c.CombinedOutput()
	if want := "port 0 found no free port"; err != nil || len(text) < len(want) || string(text[:len(want)]) != want {
		t.Errorf("another process got %s (%v), want %q", text, err, want)
	}
}
