package disk

import "time"

// Stamp identifies a state of a file: it is different after a change or a replacement.
type Stamp struct {
	device, inode     uint64
	size              uint64
	modified, changed int64 // in nanoseconds since 1970
}

// Modified returns the time at which the content of the file last changed.
func (s Stamp) Modified() time.Time { return time.Unix(0, s.modified) }

// Tick is longer than the timestamp granularity of a file system, within which two changes can have the same time.
const Tick = time.Second
