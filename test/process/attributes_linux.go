package process

import "syscall"

// attributes put a child in its own process group, so that Ctrl-C in the terminal does not reach it. They also make the kernel kill the child when
// the thread that started it ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
