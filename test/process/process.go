// Package process runs the programs of a development or test run, each in its own process group and with its output in a file. No program outlives
// the process that started it, however that process ends.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

const (
	defaultGrace = 10 * time.Second
	// killed is the time within which a killed process must be gone, because the kernel finishes its writes first.
	killed = 10 * time.Second
)

// Program describes how to run a program.
type Program struct {
	// Name is the name in messages.
	Name string
	// Path is the path of the executable.
	Path string
	// Args are its arguments, without the program's own name.
	Args []string
	// Dir is the working directory. If it is empty, it is the caller's.
	Dir string
	// Env is the environment as KEY=value. If it is nil, it is the caller's.
	Env []string
	// Log is the file to which standard output and standard error are appended. Its directory is created if necessary.
	Log string
	// Grace is the time for which Stop waits after SIGTERM before it kills the process. The default is 10 s.
	Grace time.Duration
}

// Process is a program that was started.
type Process struct {
	program   Program
	command   *exec.Cmd
	log       *os.File
	logOffset int64
	done      chan struct{}
	err       error
}

// Start runs a program and returns once the program is executed. The caller must call Stop or Kill. On Linux, the kernel kills the process if this
// process dies first.
func Start(program Program) (*Process, error) {
	if program.Grace == 0 {
		program.Grace = defaultGrace
	}
	if err := os.MkdirAll(filepath.Dir(program.Log), 0o700); err != nil {
		return nil, fmt.Errorf("starting %s: %w", program.Name, err)
	}
	log, err := os.OpenFile(program.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", program.Name, err)
	}
	p := &Process{program: program, log: log, done: make(chan struct{})}
	if info, err := log.Stat(); err == nil {
		p.logOffset = info.Size()
	}
	p.command = exec.Command(program.Path, program.Args...)
	p.command.Dir = program.Dir
	p.command.Env = program.Env
	p.command.Stdout = log
	p.command.Stderr = log
	p.command.SysProcAttr = attributes()

	started := make(chan error, 1)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", program.Name, err)
	}
	return p, nil
}

// run starts the child and returns when the child is gone.
func (p *Process) run(started chan<- error) {
	// The kernel sends the death signal when the thread that forked ends, which can be long before the process ends, because any goroutine that
	// runs on a thread can end it. Therefore, this goroutine keeps its own thread as long as the child lives.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.done)
	defer func() { _ = p.log.Close() }()

	err := p.command.Start()
	started <- err
	if err == nil {
		p.err = p.command.Wait()
	}
}

// Name returns the name of the program in messages.
func (p *Process) Name() string { return p.program.Name }

// PID returns the process id, which is also the id of the process group.
func (p *Process) PID() int { return p.command.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended returns how the process ended, with the last lines of its log. It must be called after Done is closed.
func (p *Process) Ended() error {
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("%s ended (%s); the last lines of %s:\n%s", p.program.Name, how, p.program.Log, p.Tail())
}

// Stop asks the process to end, kills it if it has not ended within its grace period, and kills the rest of its process group. It returns
// once the process is gone, and returns nil if it had ended before.
func (p *Process) Stop() error {
	select {
	case <-p.done:
		return nil
	default:
	}
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping %s: %w", p.program.Name, err)
	}
	var late error
	select {
	case <-p.done:
	case <-time.After(p.program.Grace):
		late = fmt.Errorf("%s did not end within %s of SIGTERM and was killed", p.program.Name, p.program.Grace)
	}
	// ESRCH is the usual answer: no process is left.
	_ = syscall.Kill(-p.PID(), syscall.SIGKILL)
	if err := p.wait(); err != nil {
		return err
	}
	return late
}

// Kill ends the process like a crash, at once and without its children. It returns when the process is gone.
func (p *Process) Kill() error {
	if err := p.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing %s: %w", p.program.Name, err)
	}
	return p.wait()
}

func (p *Process) wait() error {
	select {
	case <-p.done:
		return nil
	case <-time.After(killed):
		return fmt.Errorf("%s (process %d) is still there %s after it was killed", p.program.Name, p.PID(), killed)
	}
}
