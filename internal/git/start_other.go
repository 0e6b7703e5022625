//go:build !linux

package git

import (
	"errors"
	"os/exec"
)

// startHalted is for Linux.
func startHalted(*exec.Cmd, bounds) error { return errors.ErrUnsupported }
