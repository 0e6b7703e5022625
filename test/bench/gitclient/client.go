// Package gitclient runs git in the way of users who clone and push, without the settings of the machine.
package gitclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// commandTimeout limits one command of git.
const commandTimeout = 5 * time.Minute

// Client is a person with a home directory.
type Client struct{ home string }

// New returns a client whose home is a directory, which New creates. The client gives the password to servers on 127.0.0.1 that ask for it. Neither
// its arguments nor its environment show the password.
func New(home, username, password string) (*Client, error) {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, fmt.Errorf("making the home of a client: %w", err)
	}
	for name, text := range map[string]string{
		".netrc": fmt.Sprintf("machine 127.0.0.1\nlogin %s\npassword %s\n", username, password),
		// The checkout can belong to another user.
		".gitconfig": "[user]\n\tname = Ann Author\n\temail = ann@example.com\n[safe]\n\tdirectory = *\n",
	} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			return nil, fmt.Errorf("writing the settings of a client: %w", err)
		}
	}
	return &Client{home: home}, nil
}

// Run runs git in a directory, and returns the output without the last newline. stdin can be nil.
func (c *Client) Run(ctx context.Context, directory string, stdin io.Reader, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, commandTimeout, fmt.Errorf("git %s took longer than %s", args[0], commandTimeout))
	defer cancel()
	command := exec.CommandContext(ctx, "git", args...)
	// git stops its helpers when it receives SIGTERM, but not when it is killed.
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 5 * time.Second
	command.Dir = directory
	command.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + c.home, "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
	}
	command.Stdin = stdin
	output, err := command.Output()
	if err == nil {
		return strings.TrimSuffix(string(output), "\n"), nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
}

// Clone clones a repository without a work tree, because writing files would not involve the server. It returns how long git ran. The clone is
// removed afterwards.
func (c *Client) Clone(ctx context.Context, url string) (time.Duration, error) {
	directory, err := os.MkdirTemp(c.home, "clone-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(directory) }()
	begun := time.Now()
	_, err = c.Run(ctx, directory, nil, "clone", "--quiet", "--bare", url, ".")
	return time.Since(begun), err
}

// List lists the refs of a repository, and returns how long that took.
func (c *Client) List(ctx context.Context, url string) (time.Duration, error) {
	begun := time.Now()
	_, err := c.Run(ctx, c.home, nil, "ls-remote", "--quiet", url)
	return time.Since(begun), err
}

// Push pushes a commit of a repository in a directory to a branch, and returns how long that took.
func (c *Client) Push(ctx context.Context, directory, url, commit, branch string) (time.Duration, error) {
	begun := time.Now()
	_, err := c.Run(ctx, directory, nil, "push", "--quiet", url, commit+":refs/heads/"+branch)
	return time.Since(begun), err
}
