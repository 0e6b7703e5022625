package git

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"syscall"
)

// start starts a git process as the leader of its own group, once there is memory for it. Every git process is started here. The limits are
// set before the process does anything, and also apply to its children. When the process has ended, the caller must call end of the
// allotment, and then end of early, which ends the process if memory is short.
func (e *Engine) start(ctx context.Context, cmd *exec.Cmd, b bounds, c command, early *ending) (*allotment, error) {
	has, err := e.memory.allot(ctx, c, early)
	if err != nil {
		return nil, err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if e.halts {
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

// startByShell starts a shell that sets the limits and then becomes git. That takes half as long again as starting git, but works
// everywhere.
func startByShell(cmd *exec.Cmd, b bounds) error {
	shell, err := exec.LookPath("sh")
	if err != nil {
		return fmt.Errorf("a shell must be installed to bound git: %w", err)
	}
	script := "ulimit -c 0 && "
	if b.memory > 0 {
		script += "ulimit -d " + strconv.FormatInt(max(b.memory>>10, 1), 10) + " && "
	}
	if b.cpu > 0 {
		script += fmt.Sprintf("ulimit -t %d && ulimit -S -t %d && ", b.seconds()+lastSeconds, b.seconds())
	}
	cmd.Args = append([]string{"sh", "-c", script + `exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = shell
	return cmd.Start()
}

// ranOver reports whether a process was ended because it used up its processor time.
func ranOver(err error) bool {
	exit := (*exec.ExitError)(nil)
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && (status.Signaled() && status.Signal() == syscall.SIGXCPU || status.ExitStatus() == 128+int(syscall.SIGXCPU))
}
