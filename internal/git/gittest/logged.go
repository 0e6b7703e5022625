package gittest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
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
	text := fmt.Sprintf("#!/bin/sh\necho \"$1\" >> '%s'\nwhile [ -e '%s'/\"hold-$1\" ]; do sleep 0.02; done\nexec '%s' \"$@\"\n", log, dir, git)
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

// Hold lets a git of Logged wait at each start with a subcommand, until release is called.
func Hold(t testing.TB, binary, subcommand string) (release func()) {
	t.Helper()
	held := filepath.Join(filepath.Dir(binary), "hold-"+subcommand)
	if err := os.WriteFile(held, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() {
		if err := os.Remove(held); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(release)
	return release
}
