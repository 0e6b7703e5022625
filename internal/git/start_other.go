//go:build !linux

package git

import (
	"errors"
	"os/exec"
)

// startHalted is implemented only on Linux.
func startHalted(*exec.Cmd, bounds) error { return errors.ErrUnsupported }
