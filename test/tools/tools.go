// Package tools builds the programs that tests use and that are Go modules, at the versions that hack pins.
package tools

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is the time limit for a build from sources.
const patience = 15 * time.Minute

// images has the paths of the programs that this process has looked up.
var images sync.Map

// Images returns the path of a program of hack/images. It builds the program unless Go's build cache has it.
func Images(tb testing.TB, program string) string {
	tb.Helper()
	if path, ok := images.Load(program); ok {
		return path.(string)
	}
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	path := output(ctx, tb, "go", "tool", "-C", root(ctx, tb), "-modfile=hack/images/go.mod", "-n", program)
	images.Store(program, path)
	return path
}

// Client generates a client of the API that an OpenAPI document describes, and returns the output of a program of hack/client/testdata that
// uses it.
func Client(tb testing.TB, document []byte, program string, args ...string) string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	module, work := filepath.Join(root(ctx, tb), "hack", "client"), tb.TempDir()
	described, generated, overlay := filepath.Join(work, "openapi.json"), filepath.Join(work, "client.go"), filepath.Join(work, "overlay.json")
	write(tb, described, document)
	output(ctx, tb, "go", "tool", "-C", module, "oapi-codegen", "-generate", "client,models", "-package", "client", "-o", generated, described)
	replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(module, "client.go"): generated}})
	if err != nil {
		tb.Fatal(err)
	}
	write(tb, overlay, replaced)
	return output(ctx, tb, "go", append([]string{"run", "-C", module, "-overlay", overlay, "./testdata/" + program}, args...)...)
}

func write(tb testing.TB, file string, content []byte) {
	tb.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		tb.Fatal(err)
	}
}

func root(ctx context.Context, tb testing.TB) string {
	tb.Helper()
	return filepath.Dir(output(ctx, tb, "go", "env", "GOMOD"))
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
