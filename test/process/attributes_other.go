//go:build unix && !linux

package process

import "syscall"

// attributes put a child in its own process group, so that Ctrl-C in the terminal does not reach it. Only Linux has a signal for the death of the
// parent. On other systems, the next start finds that the ports and sockets of a surviving process are still taken.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
