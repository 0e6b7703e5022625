package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// grace is the time between asking processes to end and the next, harder step.
const grace = 3 * time.Second

// KeptStderr is the number of bytes from the end of a command's standard error that an Error contains.
const KeptStderr = 4 << 10

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

// Command is one run of git.
type Command struct {
	Args     []string
	Dir      string // working directory, "/" if empty
	Env      []string
	Settings []Setting
	Stdin    io.Reader
	Stdout   io.Writer
	Progress io.Writer  // also receives standard error
	Secrets  []string   // must not appear in an Error
	Held     []*os.File // open files that the process inherits, with their locks
	Nice     bool       // runs with a lower priority
	others   int        // the number of processes that its caller already has
	Bounds   Bounds     // in place of those of the engine
	Within   bool       // another process waits for it
	// Accepted reports whether a push can no longer be refused; nil if the command is not a push.
	Accepted func() bool
	// Short is called with the reason before the command is ended because of a lack of memory. It must not block. It may be nil.
	Short func(*LimitError)
}

// In returns a command on the repository in a directory. git does not search for a repository elsewhere.
func In(dir string, args ...string) Command {
	return Command{Args: args, Dir: dir, Env: []string{"GIT_DIR=."}}
}

// spared reports whether the command must not be ended because of a lack of memory.
func (c Command) spared() bool { return c.Accepted != nil && c.Accepted() }

// complete reports whether the command has done its job when git exits without an error. A push that was refused is not complete.
func (c Command) complete() bool { return c.Accepted == nil || c.Accepted() }

// light reports whether the command gets its memory from the part that is reserved for short commands. A command that writes the content of
// a blob does not, because it holds the content for as long as its client takes to read it.
func (c Command) light() bool {
	return c.Within || light[c.Args[0]] && !slices.Contains(c.Args, "blob")
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

// Tail keeps the end of what is written to it.
type Tail struct {
	kept  []byte
	Limit int
}

func (t *Tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - t.Limit; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

// String returns the kept text without progress meters and control characters.
func (t *Tail) String() string {
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

// Redact returns a text without secrets, and without user names and passwords in URLs.
func Redact(text string, secrets []string) string {
	text = userInfo.ReplaceAllString(text, "://")
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "[redacted]")
		}
	}
	return text
}
