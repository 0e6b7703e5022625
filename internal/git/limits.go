package git

import (
	"errors"
	"time"

	"github.com/forgeplane/forgeplane/internal/git/internal/process"
)

// Limits are the limits of the server. In each field, 0 means the default and a negative value means no limit.
type Limits struct {
	// Memory is the maximum memory of one git process in bytes, without mapped files. The default is 1 GiB.
	Memory int64
	// MemoryTotal is the maximum memory of all git processes together in bytes, without mapped files. The default is half of the memory
	// that this process may use, or no limit if that is not known.
	MemoryTotal int64
	// CPU is the maximum processor time of one git process, in whole seconds. The default is half an hour.
	CPU time.Duration
	// Archive is the maximum size of an archive before compression, in bytes. The default is 2 GiB.
	Archive int64
	// Push is the maximum size of the objects of one push as they are sent, and of each object of a push or an import when it is unpacked,
	// in bytes. The default is 2 GiB.
	Push int64
	// PushUnpacked is the maximum size of all unpacked objects of one push together, in bytes. The default is 64 GiB: a long history
	// unpacks to thirty times of what is sent.
	PushUnpacked int64
	// Repository is the size of a repository on disk, in bytes, from which on it accepts no more data. The default is 10 GiB.
	Repository int64
	// Refs is the maximum number of branches, tags and other refs of a repository or an import, because lists of refs are held in memory.
	// The default is 100,000.
	Refs int64
	// Import is the maximum size of an imported repository on disk, in bytes, and ImportTime the maximum time of an import. The defaults
	// are 10 GiB and six hours.
	Import     int64
	ImportTime time.Duration
	// ImportUnpacked is the maximum size of all unpacked objects of an import together, in bytes. The default is 320 GiB.
	ImportUnpacked int64
}

// DefaultLimits are the defaults of Limits.
var DefaultLimits = Limits{
	Memory: 1 << 30, CPU: 30 * time.Minute, Archive: 2 << 30, Push: 2 << 30, PushUnpacked: 64 << 30, Repository: 10 << 30, Refs: 100_000, Import: 10 << 30, ImportTime: 6 * time.Hour, ImportUnpacked: 320 << 30,
}

// complete returns the limits with their defaults applied. In the result, 0 means no limit.
func (l Limits) complete() Limits {
	return Limits{
		Memory: or(l.Memory, DefaultLimits.Memory), MemoryTotal: or(l.MemoryTotal, HalfMemory()), CPU: or(l.CPU, DefaultLimits.CPU), Archive: or(l.Archive, DefaultLimits.Archive),
		Push: or(l.Push, DefaultLimits.Push), PushUnpacked: or(l.PushUnpacked, DefaultLimits.PushUnpacked),
		Repository: or(l.Repository, DefaultLimits.Repository), Refs: or(l.Refs, DefaultLimits.Refs),
		Import: or(l.Import, DefaultLimits.Import), ImportTime: or(l.ImportTime, DefaultLimits.ImportTime),
		ImportUnpacked: or(l.ImportUnpacked, DefaultLimits.ImportUnpacked),
	}
}

func or[T int64 | time.Duration](value, otherwise T) T {
	switch {
	case value == 0:
		return otherwise
	case value < 0:
		return 0
	}
	return value
}

// LimitReached returns the sentence of the LimitError that err is or wraps, or "" if it is another error.
func LimitReached(err error) string {
	if reached := (*process.LimitError)(nil); errors.As(err, &reached) {
		return reached.Text
	}
	return ""
}

// LastingLimit is LimitReached for a limit that the same request would reach again at any time. It returns "" for any other error.
func LastingLimit(err error) string {
	if reached := (*process.LimitError)(nil); errors.As(err, &reached) && !reached.Passing {
		return reached.Text
	}
	return ""
}
