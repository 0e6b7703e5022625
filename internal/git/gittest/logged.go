package gittest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Logged returns the path of a git that records each start, and a function that returns how often it was started with a subcommand so far.
func Logged(t testing.TB) (binary string, starts func(subcommand string) int) {
	t.Helper()
	dir := t.TempDir()
	binary, log := filepath.Join(dir, "git.sh"), filepath.Join(dir, "log")
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("#!/bin/sh\necho \"$1\" >> '%s'\nexec '%s' \"$@\"\n", log, git)
	if err := os.WriteFile(binary, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return binary, func(subcommand string) int {
		t.Helper()
		noted, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for line := range strings.Lines(string(noted)) {
			if line == subcommand+"\n" {
				count++
			}
		}
		return count
	}
}
