package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// build is one call of go build.
type build struct {
	name     string // begins the lines that say how far it is
	module   string // directory
	output   string // directory
	packages []string
	ldflags  string
}

// run builds, and reports the progress every few seconds. It reports nothing about a build that is done at once.
func (b build) run(ctx context.Context) error {
	output, err := filepath.Abs(b.output)
	if err != nil {
		return err
	}
	command := b.command(ctx, "build", "-v", "-o", output+"/")
	messages, err := command.StderrPipe()
	if err != nil {
		return err
	}
	p := newProgress(b.name)
	if err := command.Start(); err != nil {
		return err
	}
	p.follow(ctx, messages, b.stale)
	if err := command.Wait(); err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted; what was compiled so far is cached")
		}
		return fmt.Errorf("go build: %w", err)
	}
	if p.told {
		fmt.Printf("%s: built in %s\n", b.name, time.Since(p.begun).Round(time.Second))
	}
	return nil
}

// stale lists the packages, without the programs themselves, that must still be compiled. It returns nil if it does not know them.
func (b build) stale(ctx context.Context) []string {
	listed, err := b.command(ctx, "list", "-deps", `-f={{if and .Stale (ne .Name "main")}}{{.ImportPath}}{{end}}`).Output()
	if err != nil {
		return nil // go build finds the same error, and reports it
	}
	return strings.Fields(string(listed))
}

// command returns a command of go about the packages. All commands have the same flags, so that they agree on which packages are stale.
func (b build) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	args = append([]string{name}, args...)
	args = append(append(args, "-ldflags="+b.ldflags), b.packages...)
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = b.module
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	return command
}
