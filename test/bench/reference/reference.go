// Package reference runs the programs to which Forgeplane is compared, each in its own process, which is this program started again with other
// arguments.
package reference

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// argument is the first argument of a process of this package.
const argument = "reference"

// grace is the time within which a process must end by itself.
const grace = 5 * time.Second

// Main does the work of a process of this package, and returns its exit status. It reports false in any other process. Programs that use the
// package must call it first.
func Main(args []string) (status int, called bool) {
	if len(args) != 4 || args[1] != argument {
		return 0, false
	}
	run, known := map[string]func(ctx context.Context, operand string) error{
		"git-backend": serveGit, "cache": holdCache, "bytes": serveBytes, "bytes-tls": serveBytesTLS,
		"files": serveFiles, "registry": serveRegistry, "signer": serveTokens,
	}[args[2]]
	if !known {
		return 0, false
	}
	// The standard input ends when the starting process ends for any reason.
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	if err := run(ctx, args[3]); err != nil {
		fmt.Fprintf(os.Stderr, "%s %s: %v\n", argument, args[2], err)
		return 1, true
	}
	return 0, true
}

// announce tells the starting process that this one is ready, and how to reach it.
func announce(what string) error {
	_, err := fmt.Fprintln(os.Stdout, what)
	return err
}

// Process is a process of this package that is ready.
type Process struct {
	command *exec.Cmd
	stdin   io.Closer
}

// start returns when the process has announced itself, with the text of the announcement.
func start(ctx context.Context, what, operand string) (*Process, string, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, "", fmt.Errorf("starting the reference %s: %w", what, err)
	}
	p := &Process{command: exec.CommandContext(ctx, executable, argument, what, operand)}
	p.command.Stderr = os.Stderr
	p.command.WaitDelay = grace
	if p.stdin, err = p.command.StdinPipe(); err != nil {
		return nil, "", err
	}
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := p.command.Start(); err != nil {
		return nil, "", fmt.Errorf("starting the reference %s: %w", what, err)
	}
	said, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("the reference %s did not become ready: %w", what, err), p.Stop())
	}
	return p, strings.TrimSpace(said), nil
}

// PID returns the process id.
func (p *Process) PID() int { return p.command.Process.Pid }

// Stop stops the process, and returns when it is gone.
func (p *Process) Stop() error {
	_ = p.stdin.Close()
	kill := time.AfterFunc(grace, func() { _ = p.command.Process.Kill() })
	defer kill.Stop()
	if err := p.command.Wait(); err != nil {
		return fmt.Errorf("stopping a reference: %w", err)
	}
	return nil
}
