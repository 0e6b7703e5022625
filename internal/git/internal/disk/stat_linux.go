package disk

import (
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sys/unix" // the standard library cannot bypass the cache of a network file system
)

// Look returns the stamp of a file. It makes a network file system ask its server, to notice changes by another machine. That takes one
// system call; opening the file would take three.
func Look(path string) (Stamp, error) {
	var is unix.Statx_t
	err := error(unix.EINTR)
	for errors.Is(err, unix.EINTR) {
		err = unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_FORCE_SYNC, unix.STATX_BASIC_STATS, &is)
	}
	if err != nil {
		return Stamp{}, &fs.PathError{Op: "statx", Path: path, Err: err}
	}
	return Stamp{
		device: unix.Mkdev(is.Dev_major, is.Dev_minor), inode: is.Ino, size: is.Size,
		modified: nanoseconds(is.Mtime), changed: nanoseconds(is.Ctime),
	}, nil
}

func nanoseconds(t unix.StatxTimestamp) int64 { return t.Sec*int64(time.Second) + int64(t.Nsec) }
