package git

import (
	"errors"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/forgeplane/forgeplane/internal/git/internal/process"
)

// These describe failures of the processes that this package runs.
type (
	// Error is a git command that failed.
	Error = process.Error
	// LimitError is returned if an operation exceeds a limit of the server.
	LimitError = process.LimitError
)

var (
	// ErrBusy is returned for an operation that did not get its turn, or enough of it, in time. A later retry may succeed. It wraps a
	// *fair.Busy if there was no free slot.
	ErrBusy = process.ErrBusy
	// ErrOutputTooLarge is returned if the output of git exceeds the limit of the caller.
	ErrOutputTooLarge = process.ErrOutputTooLarge
)

// NoSpace reports whether an operation has failed because the storage of the repository has no space left, or no space for Forgeplane's user.
// Git says so only in words, which are English with the settings of package process.
func NoSpace(err error) bool {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return true
	}
	var failed *Error
	return errors.As(err, &failed) && SaysNoSpace(failed.Stderr)
}

// SaysNoSpace is NoSpace for a message of git.
func SaysNoSpace(message string) bool {
	return strings.Contains(message, "No space left on device") || strings.Contains(message, "Disk quota exceeded")
}

// Full reports whether the file system of the repository has no space left for Forgeplane's user.
func (r *Repository) Full() bool {
	var volume unix.Statfs_t
	err := unix.Statfs(r.dir, &volume)
	return err == nil && (volume.Bavail == 0 || volume.Files > 0 && volume.Ffree == 0)
}

// FormatBytes formats a number of bytes for people, as in "1 GiB". The result is exact.
func FormatBytes(n int64) string { return process.FormatBytes(n) }
