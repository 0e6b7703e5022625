package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain runs the command itself if a test has started this program.
func TestMain(m *testing.M) {
	if os.Getenv("FORGEPLANE_HOOK_TEST") != "" {
		main()
	}
	os.Exit(m.Run())
}

func TestHook_isChosenByTheNameOfTheProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		code int
		text string
	}{
		"pre-receive":     {1, "The server could not check this push, so nothing was changed"},
		"post-receive":    {2, "this is a Git hook"},
		"forgeplane-hook": {2, "this is a Git hook"},
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.Symlink(self, path); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(context.Background(), path)
		cmd.Env = []string{"FORGEPLANE_HOOK_TEST=1"}
		out, err := cmd.CombinedOutput()
		exit := (*exec.ExitError)(nil)
		if !errors.As(err, &exit) || exit.ExitCode() != want.code || !strings.Contains(string(out), want.text) {
			t.Errorf("%s: got %v, %q", name, err, out)
		}
	}
}
