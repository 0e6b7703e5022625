package disk

import (
	"os"

	"golang.org/x/sys/unix" // the standard library can only sync a whole file, and waits for it
)

// StartSync begins to write a part of a file to the disk, so that a later sync takes less time. Nothing is durable before that one.
func StartSync(f *os.File, offset, length int64) {
	_ = unix.SyncFileRange(int(f.Fd()), offset, length, unix.SYNC_FILE_RANGE_WRITE)
}
