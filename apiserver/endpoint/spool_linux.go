package endpoint

import (
	"cmp"
	"fmt"
	"os"

	"golang.org/x/sys/unix" // the standard library cannot link an unnamed file
)

// unnamed creates a file without a name in a directory.
func unnamed(dir string) (*os.File, error) {
	file, err := os.OpenFile(cmp.Or(dir, os.TempDir()), os.O_RDWR|unix.O_TMPFILE, 0o600)
	if err != nil { // some file systems of networks and of containers refuse it, with an error of their own
		return removed(dir)
	}
	return file, nil
}

// link gives an unnamed file a name on the same file system.
func link(file *os.File, name string) error {
	err := unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", file.Fd()), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
	if err != nil {
		return &os.LinkError{Op: "linkat", Old: file.Name(), New: name, Err: err}
	}
	return nil
}
