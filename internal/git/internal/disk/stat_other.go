//go:build !linux

package disk

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix" // package os does not return the inode
)

// Look returns the stamp of a file. It opens the file, which makes a network file system ask its server, to notice changes by another
// machine.
func Look(path string) (Stamp, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return Stamp{}, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	var is unix.Stat_t
	err = unix.Fstat(fd, &is)
	if err := errors.Join(err, unix.Close(fd)); err != nil {
		return Stamp{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return Stamp{device: uint64(is.Dev), inode: is.Ino, size: uint64(is.Size), modified: is.Mtim.Nano(), changed: is.Ctim.Nano()}, nil
}
