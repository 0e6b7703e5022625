package controlplane_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/test/controlplane"
)

// Two callers must not get the same port, neither in one process nor in two.
func TestFreePort_isGivenToOneCaller(t *testing.T) {
	const ports, variable = 200, "FORGEPLANE_TEST_PORTS"
	taken := map[int]bool{}
	for range ports {
		port, err := controlplane.FreePort(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if taken[port] {
			t.Errorf("port %d was given twice", port)
		}
		taken[port] = true
	}
	if os.Getenv(variable) != "" {
		for port := range taken {
			fmt.Fprintln(os.Stdout, "port", port)
		}
		return
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFreePort_isGivenToOneCaller$")
	c.Env = append(os.Environ(), variable+"=more")
	text, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("another process: %v\n%s", err, text)
	}
	others := 0
	for line := range strings.Lines(string(text)) {
		var port int
		if _, err := fmt.Sscanf(line, "port %d", &port); err == nil {
			others++
			if taken[port] {
				t.Errorf("port %d was given to another process as well", port)
			}
		}
	}
	if others != ports {
		t.Errorf("another process got %d ports, want %d:\n%s", others, ports, text)
	}
}
