package process

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix" // the standard library can only set limits of the calling process
)

// startHalted sets the limits of a process that ptrace(2) halts at its first instruction. That takes no time, and the process cannot start
// another one before the limits are set.
func startHalted(cmd *exec.Cmd, b Bounds) error {
	// Only the thread that started the process can resume it.
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

// endWithParent makes a process end when this one is killed. Git removes its locks then. Without the signal, a process whose parent is killed
// before it asks to be traced would be traced by init, which never resumes it; the signal almost closes this gap.
func endWithParent(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGTERM }

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
			return errors.New("it ended when it started")
		}
		return nil
	}
}

// set sets the limits of a process.
func (b Bounds) set(pid int) error {
	limits := map[int]unix.Rlimit{unix.RLIMIT_CORE: {}} // a core file could contain credentials
	if b.Memory > 0 {
		limits[unix.RLIMIT_DATA] = unix.Rlimit{Cur: uint64(b.Memory), Max: uint64(b.Memory)}
	}
	if b.CPU > 0 {
		limits[unix.RLIMIT_CPU] = unix.Rlimit{Cur: uint64(b.seconds()), Max: uint64(b.seconds() + lastSeconds)}
	}
	for which, limit := range limits {
		if err := unix.Prlimit(pid, which, &limit, nil); err != nil {
			return err
		}
	}
	return nil
}
