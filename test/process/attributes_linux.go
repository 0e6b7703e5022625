package process

import "syscall"

// attributes put a child in its own process group, which keeps a terminal's Ctrl-C from it, and have the kernel kill it
// when the thread that started it ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
