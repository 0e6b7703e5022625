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
	"time"
)

// grace is the time between asking processes to end and the next, harder step.
const grace = 3 * time.Second

// keptStderr is the number of bytes from the end of a command's standard error that an Error contains.
const keptStderr = 4 << 10

// ErrOutputTooLarge is returned if the output of git exceeds the limit of the caller.
var ErrOutputTooLarge = errors.New("the output of git exceeds its limit")

// Error is a git command that failed.
type Error struct {
	// Command is the subcommand, such as "fetch".
	Command string
	// ExitCode is -1 if the command did not start or was ended by a signal.
	ExitCode int
	// Stderr is the end of git's standard error, without credentials.
	Stderr string
	// Err is the cause: the error of the context if that ended the command, a *LimitError if a limit of the server did, and otherwise an
	// error of package os/exec.
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
	progress io.Writer // also receives standard error
	secrets  []string  // must not appear in an Error
	nice     bool      // runs with a lower priority
	others   int       // the number of processes that its caller already has
	bounds   bounds    // in place of those of the engine
	within   bool      // another process waits for it
	// accepted reports whether a push can no longer be refused; nil if the command is not a push.
	accepted func() bool
	// short is called with the reason before the command is ended because of a lack of memory. It must not block. It may be nil.
	short func(*LimitError)
}

// spared reports whether the command must not be ended because of a lack of memory.
func (c command) spared() bool { return c.accepted != nil && c.accepted() }

// complete reports whether the command has done its job when git exits without an error. A push that was refused has not.
func (c command) complete() bool { return c.accepted == nil || c.accepted() }

// light reports whether the command gets its memory from the part that is reserved for short commands. A command that writes the content of
// a blob does not, because it holds the content for as long as its client takes to read it.
func (c command) light() bool {
	return c.within || light[c.args[0]] && !slices.Contains(c.args, "blob")
}

// run runs git until it ends or ctx does, which also ends all processes that git has started. It returns once stdin and stdout are no
// longer used, so these must not block forever.
func (e *Engine) run(ctx context.Context, c command) error {
	cmd := exec.CommandContext(ctx, e.binary, c.args...)
	cmd.Dir = c.dir
	if cmd.Dir == "" {
		cmd.Dir = "/"
	}
	cmd.Env = append(append(append([]string{}, e.env...), configuration(c.settings)...), c.env...)
	cmd.Stdin, cmd.Stdout, cmd.ExtraFiles = c.stdin, pooled(c.stdout), inherited(ctx)
	stderr := &tail{limit: keptStderr}
	cmd.Stderr = pooled(stderr)
	if c.progress != nil {
		cmd.Stderr = io.MultiWriter(stderr, c.progress)
	}
	early := &ending{push: c.accepted != nil}
	cmd.Cancel = func() error { early.begin(cmd.Process.Pid); return nil }

	b := e.bounds.atMost(c.bounds)
	if !c.light() {
		var leave func()
		c.others, leave = e.crowds.join(ctx)
		defer leave()
	}
	has, err := e.start(ctx, cmd, b, c, early)
	if err == nil {
		err = cmd.Wait() // no WaitDelay, which would cut off a client that is slow to read the last output
	}
	short := has.end()
	early.end(c.dir)
	if err == nil && (short == nil || c.complete()) {
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

// chunks are buffers for reading from pipes. Most commands write little, and there are many commands.
var chunks = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// filler is a writer that uses a pooled chunk to read from a pipe.
type filler struct{ io.Writer }

// ReadFrom implements io.ReaderFrom, so that io.Copy does not allocate a buffer.
func (f filler) ReadFrom(r io.Reader) (int64, error) {
	chunk := chunks.Get().(*[32 << 10]byte)
	defer chunks.Put(chunk)
	return io.CopyBuffer(struct{ io.Writer }{f.Writer}, struct{ io.Reader }{r}, chunk[:])
}

// pooled returns w as a filler, unless the process writes to it directly.
func pooled(w io.Writer) io.Writer {
	switch w.(type) {
	case nil, *os.File:
		return w
	default:
		return filler{w}
	}
}

// capped is a buffer with a limit. Exceeding it ends the process that writes to it.
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
