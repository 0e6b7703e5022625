// Command forgeplane-hook is the Git hook of Forgeplane. Git runs it by the name of the hook, and it supports pre-receive. It only talks to the
// server that has started git: see package hook.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/forgeplane/forgeplane/internal/hook"
)

func main() {
	if name := filepath.Base(os.Args[0]); name != "pre-receive" {
		fmt.Fprintf(os.Stderr, "%s: this is a Git hook: git must run it under the name pre-receive\n", name)
		os.Exit(2)
	}
	os.Exit(hook.PreReceive(os.Stdin, os.Stderr, os.Getenv))
}
