//go:build !linux

package git

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix" // package os does not tell the inode
)

// look opens what it looks at: a network file system asks its server then, for what another machine has changed.
func look(path string) (stamp, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return stamp{}, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	var is unix.Stat_t
	err = unix.Fstat(fd, &is)
	if err := errors.Join(err, unix.Close(fd)); err != nil {
		return stamp{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return stamp{device: uint64(is.Dev), inode: is.Ino, size: uint64(is.Size), modified: is.Mtim.Nano(), changed: is.Ctim.Nano()}, nil
}
