// Package process runs the git binary: in a clean environment, with limits for each process and for the memory of all processes together,
// and with shares of them for each caller.
//
// It is internal, so that every command on a repository is in a package below internal/git.
package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/forgeplane/forgeplane/internal/fair"
)

// Options configure a runner.
type Options struct {
	// Binary is the git to run: a path, or a name to look up in PATH.
	Binary string
	// Memory and cpu are the limits of each process: its memory in bytes, and its processor time. 0 means no limit.
	Memory int64
	CPU    time.Duration
	// Total is the maximum memory of all processes together in bytes. 0 means no limit.
	Total int64
	// Wait is the time for which a command waits for its part of the total. The default is 30 seconds.
	Wait time.Duration
	// Timeout limits a command whose context has no deadline. The default is a minute.
	Timeout time.Duration
}

// defaultTimeout is the default of Options.Timeout.
const defaultTimeout = time.Minute

// Runner runs the git binary.
type Runner struct {
	binary  string
	version Version
	env     []string
	bounds  Bounds
	memory  *memory
	crowds  crowds
	// halts says that limits are set while a process is halted.
	halts bool
	// patience is the timeout of a command without another one.
	patience time.Duration
}

// New finds the git binary and determines its version. If the binary is missing or too old, the error says what to install.
func New(ctx context.Context, o Options) (*Runner, error) {
	path, err := exec.LookPath(o.Binary)
	if err != nil {
		return nil, fmt.Errorf("git %s or newer must be installed: %w", Needed, err)
	}
	p := &Runner{binary: path, env: environment(os.Getenv), memory: newMemory(o.Total, o.Wait), patience: cmp.Or(o.Timeout, defaultTimeout)}
	p.crowds.of = map[fair.Key]int{}
	p.bounds = Bounds{Memory: o.Memory, CPU: o.CPU}.atMost(Bounds{Memory: o.Total})
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := p.answer(ctx, "version")
	if err != nil {
		return nil, fmt.Errorf("asking %s for its version: %w", path, err)
	}
	if p.version, err = parseVersion(string(out)); err != nil {
		return nil, fmt.Errorf("asking %s for its version: %w", path, err)
	}
	if !p.version.AtLeast(Needed) {
		return nil, fmt.Errorf("%s is git %s: %s or newer must be installed", path, p.version, Needed)
	}
	return p, nil
}

// answer runs the first command, and so determines how to limit processes: some sandboxes do not allow halting them.
func (p *Runner) answer(ctx context.Context, args ...string) ([]byte, error) {
	p.halts = true
	out, err := p.Output(ctx, 1024, Command{Args: args})
	failed := (*Error)(nil)
	if !errors.As(err, &failed) || failed.ExitCode >= 0 || ctx.Err() != nil || errors.Is(err, ErrOutputTooLarge) {
		return out, err
	}
	p.halts = false
	return p.Output(ctx, 1024, Command{Args: args})
}

// Version returns the version of the git binary.
func (p *Runner) Version() Version { return p.version }

// Bounds returns the limits of each process.
func (p *Runner) Bounds() Bounds { return p.bounds }

// Slots returns the slots for the memory of processes: of those that walk, pack or serve, and of those that look something up.
func (p *Runner) Slots() []*fair.Slots { return []*fair.Slots{p.memory.heavy, p.memory.light} }

// OnShortage makes the runner call evict while a process waits for memory. evict must end idle processes that the caller has started; nil
// stands for all callers.
func (p *Runner) OnShortage(evict func(who *fair.Key)) { p.memory.evict = evict }

// Run runs git until it ends or ctx does, which also ends all processes that git has started. It returns once stdin and stdout are no
// longer used, so these must not block forever.
func (p *Runner) Run(ctx context.Context, c Command) error {
	cmd := exec.CommandContext(ctx, p.binary, c.Args...)
	cmd.Dir = c.Dir
	if cmd.Dir == "" {
		cmd.Dir = "/"
	}
	cmd.Env = p.environ(c)
	cmd.Stdin, cmd.Stdout, cmd.ExtraFiles = c.Stdin, pooled(c.Stdout), slices.Concat(inherited(ctx), c.Held)
	stderr := &Tail{Limit: KeptStderr}
	cmd.Stderr = pooled(stderr)
	if c.Progress != nil {
		cmd.Stderr = io.MultiWriter(stderr, c.Progress)
	}
	early := &cleanup{push: c.Accepted != nil}
	cmd.Cancel = func() error { early.begin(cmd.Process.Pid); return nil }

	b := p.bounds.atMost(c.Bounds)
	if !c.light() {
		var leave func()
		c.others, leave = p.crowds.join(ctx)
		defer leave()
	}
	has, err := p.start(ctx, cmd, b, c, early)
	if err == nil {
		err = cmd.Wait() // no WaitDelay, which would cut off a client that is slow to read the last output
	}
	short := has.end()
	early.end(c.Dir)
	if err == nil && (short == nil || c.complete()) {
		return nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if short != nil {
		return &Error{Command: c.Args[0], ExitCode: -1, Err: short}
	}
	failure := &Error{Command: c.Args[0], ExitCode: -1, Stderr: Redact(stderr.String(), c.Secrets), Err: err}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		failure.ExitCode = exit.ExitCode()
		if exceeded := b.exceeded(err, failure.Stderr); exceeded != nil {
			failure.Err = exceeded
		}
	}
	return failure
}

// environ returns the environment of a command.
func (p *Runner) environ(c Command) []string {
	return slices.Concat(p.env, configuration(c.Settings), c.Env)
}

// Output runs git and returns its output, at most limit bytes.
func (p *Runner) Output(ctx context.Context, limit int, c Command) ([]byte, error) {
	out := &capped{limit: limit}
	c.Stdout = out
	if err := p.Run(ctx, c); out.exceeded {
		return nil, &Error{Command: c.Args[0], ExitCode: -1, Err: ErrOutputTooLarge}
	} else if err != nil {
		return nil, err
	}
	return out.buffer.Bytes(), nil
}

// Limited returns ctx, with a timeout if it has no deadline.
func (p *Runner) Limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, p.patience, fmt.Errorf("the command took longer than %s: %w", p.patience, ErrBusy))
}

// start starts a git process as the leader of its own group, once there is memory for it. Every git process is started here. The limits are
// set before the process does anything, and also apply to its children. When the process has ended, the caller must call end of the
// allotment, and then end of early, which ends the process if memory is short.
func (p *Runner) start(ctx context.Context, cmd *exec.Cmd, b Bounds, c Command, early *cleanup) (*allotment, error) {
	has, err := p.memory.allot(ctx, c, early)
	if err != nil {
		return nil, err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithParent(cmd.SysProcAttr)
	if p.halts {
		err = startHalted(cmd, b)
	} else {
		err = startByShell(cmd, b)
	}
	if err != nil {
		_ = has.end() // nothing has begun
		return nil, err
	}
	has.began(cmd.Process.Pid)
	c.benice(cmd.Process.Pid)
	return has, nil
}

type inheritedKey struct{}

// Inherit returns a context whose processes inherit open files, besides those that they already inherit. Processes of Start do not.
func Inherit(ctx context.Context, files ...*os.File) context.Context {
	return context.WithValue(ctx, inheritedKey{}, slices.Concat(inherited(ctx), files))
}

// inherited returns the files that a process with this context must inherit.
func inherited(ctx context.Context) []*os.File {
	files, _ := ctx.Value(inheritedKey{}).([]*os.File)
	return files
}
