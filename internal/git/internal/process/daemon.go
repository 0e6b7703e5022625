package process

import (
	"context"
	"os/exec"
	"syscall"
)

// Process is a process that outlives the call that started it.
type Process struct {
	group  int
	exited chan struct{}
	// failure is the limit that ended the process, if one did. It is valid once exited is closed.
	failure error
}

// Start starts a command that does not end with ctx. The command can live long, so its processor time has no limit.
func (p *Runner) Start(ctx context.Context, c Command) (*Process, error) {
	cmd := exec.Command(p.binary, c.Args...) //nolint:noctx // it outlives whoever asks first
	cmd.Dir, cmd.Env = c.Dir, p.environ(c)
	cmd.Stdin, cmd.Stdout, cmd.ExtraFiles = c.Stdin, c.Stdout, c.Held
	said := &Tail{Limit: KeptStderr}
	cmd.Stderr = said
	b := p.bounds.atMost(c.Bounds)
	b.CPU = 0
	early := &cleanup{}
	has, err := p.start(ctx, cmd, b, c, early)
	if err != nil {
		return nil, err
	}
	s := &Process{group: cmd.Process.Pid, exited: make(chan struct{})}
	go func() {
		defer close(s.exited)
		failed := cmd.Wait()
		s.failure = has.end()
		early.end(c.Dir)
		if s.failure == nil {
			s.failure = b.exceeded(failed, said.String())
		}
	}()
	return s, nil
}

// Kill kills the process and the processes that it has started.
func (s *Process) Kill() { _ = syscall.Kill(-s.group, syscall.SIGKILL) }

// Wait waits until the process has ended. It returns the limit that ended it, if one did.
func (s *Process) Wait() error {
	<-s.exited
	return s.failure
}
