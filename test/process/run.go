package process

import (
	"os/exec"
	"runtime"
	"syscall"
)

// Run is like the method Run of a command, but in a separate process group. When the context of the command ends, Run kills the whole group. When
// the command has ended, Run kills the processes that the command has left in the group: the processes that "git push" starts outlive it, and wait
// forever for a server that does not answer. On Linux, the kernel kills only the command if this process dies first.
func Run(command *exec.Cmd) error {
	command.SysProcAttr = attributes()
	kill := func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.Cancel = kill
	// See Process.run for the reason.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := command.Start(); err != nil {
		return err
	}
	err := command.Wait()
	_ = kill() // ESRCH is the usual answer: no process is left
	return err
}
