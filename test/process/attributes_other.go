//go:build unix && !linux

package process

import "syscall"

// attributes put a child in its own process group, which keeps a terminal's Ctrl-C from it. Only Linux has a signal for
// the parent's death; elsewhere the ports and sockets that are still taken tell the next start of survivors.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
