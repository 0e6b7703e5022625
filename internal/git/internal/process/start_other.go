//go:build !linux

package process

import (
	"errors"
	"os/exec"
	"syscall"
)

// endWithParent is implemented only on Linux.
func endWithParent(*syscall.SysProcAttr) {}

// startHalted is implemented only on Linux.
func startHalted(*exec.Cmd, Bounds) error { return errors.ErrUnsupported }
