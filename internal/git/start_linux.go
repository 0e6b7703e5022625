package git

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix" // the standard library sets limits of the calling process only
)

// startHalted sets the bounds of a process that is halted by ptrace(2) at its first instruction: it takes no time, and there is no
// moment in which it could have started another one without bounds.
func startHalted(cmd *exec.Cmd, b bounds) error {
	// Only the thread that has started it may let it go.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr.Ptrace = true
	if err := cmd.Start(); err != nil {
		return err
	}
	pid := cmd.Process.Pid
	err := awaitHalt(pid)
	if err == nil {
		err = b.set(pid)
	}
	if err == nil {
		err = syscall.PtraceDetach(pid)
	}
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return fmt.Errorf("bounding a process of git: %w", err)
	}
	return nil
}

func awaitHalt(pid int) error {
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(pid, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return err
		case !status.Stopped():
			return errors.New("it has ended at its start")
		}
		return nil
	}
}

// set bounds a process.
func (b bounds) set(pid int) error {
	limits := map[int]unix.Rlimit{unix.RLIMIT_CORE: {}} // there may be credentials in it
	if b.memory > 0 {
		limits[unix.RLIMIT_DATA] = unix.Rlimit{Cur: uint64(b.memory), Max: uint64(b.memory)}
	}
	if b.cpu > 0 {
		limits[unix.RLIMIT_CPU] = unix.Rlimit{Cur: uint64(b.seconds()), Max: uint64(b.seconds() + lastSeconds)}
	}
	for which, limit := range limits {
		if err := unix.Prlimit(pid, which, &limit, nil); err != nil {
			return err
		}
	}
	return nil
}
