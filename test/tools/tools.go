// Package tools builds the programs that tests use and that are Go modules, at the versions that hack pins.
package tools

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// patience is the time limit for a build from sources.
const patience = 15 * time.Minute

// Images returns the path of a program of hack/images. It builds the program unless Go's build cache has it.
func Images(tb testing.TB, program string) string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	root := filepath.Dir(output(ctx, tb, "go", "env", "GOMOD"))
	return output(ctx, tb, "go", "tool", "-C", root, "-modfile=hack/images/go.mod", "-n", program)
}

func output(ctx context.Context, tb testing.TB, name string, args ...string) string {
	tb.Helper()
	command := exec.CommandContext(ctx, name, args...)
	var complaint strings.Builder
	command.Stderr = &complaint
	said, err := command.Output()
	if err != nil {
		tb.Fatalf("%s: %v\n%s", command, err, complaint.String())
	}
	return strings.TrimSpace(string(said))
}
