package git

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"syscall"
)

// start starts a process of git as the leader of a group of its own, when there is memory for it. It is bounded before it does anything,
// and so is whatever it starts. Every process of git begins here. Whoever has started it calls end of the memory when it has ended, and
// then that of early, by which it is ended for want of memory.
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

// startByShell has a shell set the bounds and become git. It takes half as long again as git does to start, and works everywhere.
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

// ranOver reports whether a process was ended because it has had its processor time.
func ranOver(err error) bool {
	exit := (*exec.ExitError)(nil)
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && (status.Signaled() && status.Signal() == syscall.SIGXCPU || status.ExitStatus() == 128+int(syscall.SIGXCPU))
}
