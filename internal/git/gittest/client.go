// Package gittest runs git for tests as a person would: in a work tree, with a name, and without the settings of the machine.
package gittest

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Client is a work tree with a git that works in it.
type Client struct {
	// Dir is the work tree.
	Dir string
	// Env are additional environment variables, as "NAME=value".
	Env []string
}

// New returns a client with a new, empty work tree on the branch "main". objectFormat is "sha1" or "sha256".
func New(t testing.TB, objectFormat string) *Client {
	t.Helper()
	c := &Client{Dir: t.TempDir()}
	c.Git(t, "init", "--quiet", "--initial-branch=main", "--object-format="+objectFormat)
	return c
}

// Git runs git, which must succeed, and returns its standard output without the last newline.
func (c *Client) Git(t testing.TB, args ...string) string {
	t.Helper()
	out, stderr, err := c.run(args)
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, stderr)
	}
	return strings.TrimSuffix(out, "\n")
}

// Try runs git, and returns its output on a terminal, whether or not it succeeds.
func (c *Client) Try(args ...string) (string, error) {
	out, stderr, err := c.run(args)
	return out + stderr, err
}

// Refused runs git, which must fail, and returns its output on a terminal.
func (c *Client) Refused(t testing.TB, args ...string) string {
	t.Helper()
	out, stderr, err := c.run(args)
	if err == nil {
		t.Fatalf("git %s succeeded\n%s%s", strings.Join(args, " "), out, stderr)
	}
	return out + stderr
}

// Trace runs git, which must succeed, and returns its standard error.
func (c *Client) Trace(t testing.TB, args ...string) string {
	t.Helper()
	_, stderr, err := c.run(args)
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, stderr)
	}
	return stderr
}

// Import runs "git fast-import" with a stream, and packs the result.
func (c *Client) Import(t testing.TB, stream io.Reader) {
	t.Helper()
	_, stderr, err := c.feed(stream, []string{"fast-import", "--quiet", "--force"})
	if err != nil {
		t.Fatalf("git fast-import: %v\n%s", err, stderr)
	}
	c.Git(t, "gc", "--quiet")
}

// Commit writes a file, commits it, and returns the id of the commit.
func (c *Client) Commit(t testing.TB, path, content string) string {
	t.Helper()
	full := filepath.Join(c.Dir, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	c.Git(t, "--literal-pathspecs", "add", "--", path)
	c.Git(t, "commit", "--quiet", "--message", fmt.Sprintf("Change %q", path))
	return c.Git(t, "rev-parse", "HEAD")
}

// Write writes an object of a type and returns its id.
func (c *Client) Write(t testing.TB, kind, content string) string {
	t.Helper()
	id, stderr, err := c.feed(strings.NewReader(content), []string{"hash-object", "-w", "-t", kind, "--stdin"})
	if err != nil {
		t.Fatalf("git hash-object: %v: %s", err, stderr)
	}
	return strings.TrimSpace(id)
}

// Nest commits a directory with width files, inside a directory that contains it width times, and so on, depth levels deep. It returns the
// id of the commit, which has few objects but width to the power of depth files.
func (c *Client) Nest(t testing.TB, width, depth int) string {
	t.Helper()
	mode, id := "100644", c.Write(t, "blob", "a file\n")
	for range depth {
		raw, err := hex.DecodeString(id)
		if err != nil {
			t.Fatal(err)
		}
		var tree strings.Builder
		for i := range width {
			fmt.Fprintf(&tree, "%s %04d\x00%s", mode, i, raw)
		}
		mode, id = "40000", c.Write(t, "tree", tree.String())
	}
	commit := c.Git(t, "commit-tree", "-m", "Nest", id)
	c.Git(t, "update-ref", "refs/heads/main", commit)
	return commit
}

// Wide commits a directory with a number of files, inside directories with the given names. It returns the id of the commit, which the
// branch "wide" has, and the path of the last file.
func (c *Client) Wide(t testing.TB, files int, directories ...string) (commit, last string) {
	t.Helper()
	raw := func(id string) string {
		bytes, err := hex.DecodeString(id)
		if err != nil {
			t.Fatal(err)
		}
		return string(bytes)
	}
	file := raw(c.Write(t, "blob", "a file\n"))
	var tree strings.Builder
	for i := range files {
		last = strconv.FormatInt(int64(36*36*36+i), 36) // four letters and digits, in Git's order
		tree.WriteString("100644 " + last + "\x00" + file)
	}
	id := c.Write(t, "tree", tree.String())
	for _, name := range slices.Backward(directories) {
		id, last = c.Write(t, "tree", "40000 "+name+"\x00"+raw(id)), name+"/"+last
	}
	commit = c.Git(t, "commit-tree", "-m", "Wide", id)
	c.Git(t, "update-ref", "refs/heads/"+commit, commit)
	return commit, last
}

func (c *Client) run(args []string) (stdout, stderr string, err error) { return c.feed(nil, args) }

func (c *Client) feed(stdin io.Reader, args []string) (stdout, stderr string, err error) {
	// The limit ends a command that waits for ever. A busy machine needs more than two minutes for a large import.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Stdin = c.Dir, stdin
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_TERMINAL_PROMPT=0", "GIT_AUTHOR_NAME=Ann Author", "GIT_AUTHOR_EMAIL=ann@example.com",
		"GIT_COMMITTER_NAME=Ann Author", "GIT_COMMITTER_EMAIL=ann@example.com",
		// Otherwise every commit would start a maintenance process that does nothing.
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=maintenance.auto", "GIT_CONFIG_VALUE_0=false",
	}, c.Env...)
	// Processes that git has started end with it, even if it waits for a server.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}
