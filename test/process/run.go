package process

import (
	"os/exec"
	"runtime"
	"syscall"
)

// Run runs a command until it ends, as its own Run does, in a process group of its own. When the context of the command ends, the whole
// group is killed, and when the command has ended, so is what it has left behind there: the processes that "git push" starts outlive it,
// and wait for a server that does not answer without end. On Linux the kernel kills the command, alone, when this process dies first.
func Run(command *exec.Cmd) error {
	command.SysProcAttr = attributes()
	kill := func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.Cancel = kill
	// As in Process.run.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := command.Start(); err != nil {
		return err
	}
	err := command.Wait()
	_ = kill() // ESRCH is the usual answer: nobody is left
	return err
}
