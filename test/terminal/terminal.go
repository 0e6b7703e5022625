// Package terminal runs commands in the way of a person at a terminal: kubectl, git and shell scripts, with the output on the screen. The commands
// of one Terminal can run at the same time.
package terminal

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/process"
)

// timeout ends a command that hangs. A build takes minutes if other suites run at the same time.
const timeout = 10 * time.Minute

// Terminal is a directory and an environment in which commands run.
type Terminal struct {
	// Dir is the working directory.
	Dir string
	// Env is the whole environment as "NAME=value". Of two values with the same name, the last one counts.
	Env []string

	home string
}

// New returns a terminal that ignores the settings of the machine and of its user. Other files that it creates, such as clones,
// are in the directory home.
func New(dir, home string) Terminal {
	return Terminal{Dir: dir, home: home, Env: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + os.TempDir(), "LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		// The checkout of the tests can belong to another user.
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	}}
}

// In returns a terminal like this one in another directory.
func (t Terminal) In(dir string) Terminal {
	t.Dir = dir
	return t
}

// With returns a terminal like this one with further environment variables.
func (t Terminal) With(env ...string) Terminal {
	t.Env = slices.Concat(t.Env, env)
	return t
}

// Do runs a command, which must succeed, and returns its standard output without the last newline.
func (t Terminal) Do(name string, args ...string) string {
	GinkgoHelper()
	return t.DoWith("", name, args...)
}

// DoWith is Do with a standard input.
func (t Terminal) DoWith(input, name string, args ...string) string {
	GinkgoHelper()
	output, screen, err := t.run(input, name, args)
	Expect(err).NotTo(HaveOccurred(), "%s %s\n%s", name, strings.Join(args, " "), screen)
	return strings.TrimSuffix(output, "\n")
}

// Try runs a command, and returns everything that appears on the screen.
func (t Terminal) Try(name string, args ...string) (screen string, err error) {
	_, screen, err = t.run("", name, args)
	return screen, err
}

// Fail runs a command, which must fail, and returns everything that appears on the screen.
func (t Terminal) Fail(name string, args ...string) (screen string) {
	GinkgoHelper()
	return t.FailWith("", name, args...)
}

// FailWith is Fail with a standard input.
func (t Terminal) FailWith(input, name string, args ...string) (screen string) {
	GinkgoHelper()
	_, screen, err := t.run(input, name, args)
	var exit *exec.ExitError
	Expect(err).To(BeAssignableToTypeOf(exit), "%s %s\n%s", name, strings.Join(args, " "), screen)
	return screen
}

// Sourced returns the terminal after a POSIX shell in it has sourced a file, with every variable that the file exports.
func (t Terminal) Sourced(file string) Terminal {
	GinkgoHelper()
	t.Env = strings.Split(t.Do("sh", "-euc", `. "$1" && export -p >/dev/null && exec env -0`, "sh", file), "\x00")
	return t
}

// Getenv returns the value of a variable, or an empty string if it is not set.
func (t Terminal) Getenv(name string) string {
	for _, entry := range slices.Backward(t.Env) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// Space creates a directory that lasts as long as the terminal's home.
func (t Terminal) Space() string {
	GinkgoHelper()
	directory, err := os.MkdirTemp(t.home, "space-")
	Expect(err).NotTo(HaveOccurred())
	return directory
}

func (t Terminal) run(input, name string, args []string) (output, screen string, err error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), timeout, fmt.Errorf("it did not end within %s", timeout))
	defer cancel()
	path := name
	if !strings.Contains(name, "/") {
		if path, err = t.find(name); err != nil {
			return "", "", err
		}
	}
	command := exec.CommandContext(ctx, path, args...)
	command.Dir, command.Env = t.Dir, t.Env
	if input != "" {
		command.Stdin = strings.NewReader(input)
	}
	// A process that the command has started can keep the output open.
	command.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	all := &display{}
	command.Stdout, command.Stderr = &both{&out, all}, all
	err = process.Run(command)
	if ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return out.String(), all.String(), err
}

// find looks a program up in the PATH of the terminal rather than of this process.
func (t Terminal) find(name string) (string, error) {
	for directory := range strings.SplitSeq(t.Getenv("PATH"), ":") {
		path := directory + "/" + name
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: %s", exec.ErrNotFound, name)
}

// display collects standard output and standard error in the order of the writes.
type display struct {
	lock sync.Mutex
	text bytes.Buffer
}

func (d *display) Write(p []byte) (int, error) {
	d.lock.Lock()
	defer d.lock.Unlock()
	return d.text.Write(p)
}

func (d *display) String() string {
	d.lock.Lock()
	defer d.lock.Unlock()
	return d.text.String()
}

type both struct {
	output *bytes.Buffer
	all    *display
}

func (b *both) Write(p []byte) (int, error) {
	b.output.Write(p)
	return b.all.Write(p)
}
