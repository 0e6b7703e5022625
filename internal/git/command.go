package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// grace is the time between asking a process group to end and killing it. git removes its lock and temporary files when asked.
const grace = 3 * time.Second

// keptStderr is how many bytes from the end of a command's standard error go into its Error.
const keptStderr = 4 << 10

// ErrOutputTooLarge is returned when git had more to say than the caller is ready to read.
var ErrOutputTooLarge = errors.New("the output of git exceeds its limit")

// Error is a git command that failed.
type Error struct {
	// Command is the subcommand, such as "fetch".
	Command string
	// ExitCode is -1 if the command did not start, or was ended by a signal.
	ExitCode int
	// Stderr is the end of what git said, without credentials.
	Stderr string
	// Err is the cause: that of the context if it ended the command, a *LimitError where the server does not allow more, else that of
	// package os/exec.
	Err error
}

func (e *Error) Error() string {
	if e.Stderr == "" {
		return fmt.Sprintf("git %s: %v", e.Command, e.Err)
	}
	return fmt.Sprintf("git %s: %v: %s", e.Command, e.Err, e.Stderr)
}

func (e *Error) Unwrap() error { return e.Err }

// command is one run of git.
type command struct {
	args     []string
	dir      string // working directory, "/" if empty
	env      []string
	settings []setting
	stdin    io.Reader
	stdout   io.Writer
	progress io.Writer // sees standard error as well
	secrets  []string  // never to be seen in an Error
	nice     bool      // others go first
	bounds   bounds    // past those of the engine
	within   bool      // another process waits for it
}

// light reports whether the command has its memory from the part that is kept for what others wait for. One that writes the content of a
// blob has not: it has all of it in memory for as long as a client takes to read.
func (c command) light() bool {
	return c.within || light[c.args[0]] && !slices.Contains(c.args, "blob")
}

// run runs git until it ends or ctx does, which ends all processes that git has started as well. It returns when stdin and
// stdout are no longer used, so these must not block for good.
func (e *Engine) run(ctx context.Context, c command) error {
	cmd := exec.CommandContext(ctx, e.binary, c.args...)
	cmd.Dir = c.dir
	if cmd.Dir == "" {
		cmd.Dir = "/"
	}
	cmd.Env = append(append(append([]string{}, e.env...), configuration(c.settings)...), c.env...)
	cmd.Stdin, cmd.Stdout = c.stdin, pooled(c.stdout)
	stderr := &tail{limit: keptStderr}
	cmd.Stderr = pooled(stderr)
	if c.progress != nil {
		cmd.Stderr = io.MultiWriter(stderr, c.progress)
	}
	signal := func(s syscall.Signal) error { return syscall.Kill(-cmd.Process.Pid, s) }
	var kill *time.Timer
	cmd.Cancel = func() error {
		kill = time.AfterFunc(grace, func() { _ = signal(syscall.SIGKILL) })
		return signal(syscall.SIGTERM)
	}

	b := e.bounds.atMost(c.bounds)
	has, err := e.start(ctx, cmd, b, c)
	if err == nil {
		err = cmd.Wait() // without a WaitDelay: it would cut off a client that is slow to take the last of the output
	}
	short := has.end()
	if kill != nil {
		kill.Stop()
		_ = signal(syscall.SIGKILL) // whoever of the group has outlived its leader
	}
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if short != nil {
		return &Error{Command: c.args[0], ExitCode: -1, Err: short}
	}
	failure := &Error{Command: c.args[0], ExitCode: -1, Stderr: redact(stderr.String(), c.secrets), Err: err}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		failure.ExitCode = exit.ExitCode()
		if exceeded := b.exceeded(err, failure.Stderr); exceeded != nil {
			failure.Err = exceeded
		}
	}
	return failure
}

// output runs git and returns what it writes, at most limit bytes.
func (e *Engine) output(ctx context.Context, limit int, c command) ([]byte, error) {
	out := &capped{limit: limit}
	c.stdout = out
	if err := e.run(ctx, c); out.exceeded {
		return nil, &Error{Command: c.args[0], ExitCode: -1, Err: ErrOutputTooLarge}
	} else if err != nil {
		return nil, err
	}
	return out.buffer.Bytes(), nil
}

// chunks are what is read from pipes. Most commands say little, and there are many of them.
var chunks = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// filler is a writer that is filled from a pipe by way of a chunk that others have used before.
type filler struct{ io.Writer }

// ReadFrom implements io.ReaderFrom, so that io.Copy does not make a buffer.
func (f filler) ReadFrom(r io.Reader) (int64, error) {
	chunk := chunks.Get().(*[32 << 10]byte)
	defer chunks.Put(chunk)
	return io.CopyBuffer(struct{ io.Writer }{f.Writer}, struct{ io.Reader }{r}, chunk[:])
}

// pooled returns w as a filler, unless the process writes to it without help.
func pooled(w io.Writer) io.Writer {
	switch w.(type) {
	case nil, *os.File:
		return w
	default:
		return filler{w}
	}
}

// capped is a buffer that refuses to grow beyond its limit, which ends the process that writes to it.
type capped struct {
	buffer   bytes.Buffer
	limit    int
	exceeded bool
}

func (c *capped) Write(p []byte) (int, error) {
	if c.buffer.Len()+len(p) > c.limit {
		c.exceeded = true
		return 0, ErrOutputTooLarge
	}
	return c.buffer.Write(p)
}

// tail keeps the end of what is written to it.
type tail struct {
	kept  []byte
	limit int
}

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - t.limit; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

// String returns the kept text without progress meters and control characters.
func (t *tail) String() string {
	lines := strings.FieldsFunc(string(t.kept), func(r rune) bool { return r == '\n' })
	for i, l := range lines {
		l = l[strings.LastIndexByte(strings.TrimRight(l, "\r"), '\r')+1:]
		lines[i] = strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f {
				return -1
			}
			return r
		}, strings.ToValidUTF8(l, "\uFFFD"))
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

var userInfo = regexp.MustCompile(`://[^/\s'"]*@`)

func redact(text string, secrets []string) string {
	text = userInfo.ReplaceAllString(text, "://")
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "[redacted]")
		}
	}
	return text
}
