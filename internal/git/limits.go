package git

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"
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

// LimitError is returned if an operation exceeds a limit of the server.
type LimitError struct {
	// Text is a sentence for the user. It names the limit and its value.
	Text string
	// Passing says that the limit depends on what the caller and others use at the moment: another caller, or a later retry, may succeed.
	Passing bool
}

func (e *LimitError) Error() string { return e.Text }

func limitf(format string, args ...any) *LimitError {
	return &LimitError{Text: fmt.Sprintf(format, args...)}
}

// FormatBytes formats a number of bytes for people, as in "1 GiB". The result is exact.
func FormatBytes(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for n != 0 && n%1024 == 0 && i < len(units)-1 {
		n /= 1024
		i++
	}
	return strconv.FormatInt(n, 10) + " " + units[i]
}

// bounds are the limits of one process, and of each process that it starts. 0 means no limit.
type bounds struct {
	memory int64
	cpu    time.Duration
}

// atMost returns the bounds with the lower of both values in each field.
func (b bounds) atMost(other bounds) bounds {
	if other.memory > 0 && (b.memory == 0 || other.memory < b.memory) {
		b.memory = other.memory
	}
	if other.cpu > 0 && (b.cpu == 0 || other.cpu < b.cpu) {
		b.cpu = other.cpu
	}
	return b
}

// lastSeconds is the time between the signal that a process has used up its processor time and its being killed.
const lastSeconds = 5

// seconds returns the limit of the processor time in seconds.
func (b bounds) seconds() int64 { return max(int64(b.cpu/time.Second), 1) }

var (
	// starved matches git's messages about a lack of memory. Messages of another server ("remote: ...") do not count.
	starved = regexp.MustCompile(`(?im)^(?:fatal|error):.*(?:out of memory|cannot allocate memory)`)
	// overfull matches git's message about a pack that exceeds receive.maxInputSize.
	overfull = regexp.MustCompile(`pack exceeds maximum allowed size`)
	// overtime matches git's message about a child process that has used up its processor time: SIGXCPU has this number on Linux.
	overtime = regexp.MustCompile(`(?m)died of signal 24\b`)
)

// exceeded returns the LimitError of a process that failed with a status and an error output, or nil if no limit was the reason.
func (b bounds) exceeded(failed error, stderr string) error {
	switch {
	case b.memory > 0 && starved.MatchString(stderr):
		return b.starved()
	case b.cpu > 0 && (ranOver(failed) || overtime.MatchString(stderr)):
		return b.late()
	}
	return nil
}

func (b bounds) late() error {
	return limitf("This takes more than the %s of processor time that the server allows a Git process.", b.cpu)
}

func (b bounds) starved() error {
	return limitf("This takes more than the %s of memory that the server allows a Git process.", FormatBytes(b.memory))
}

// LimitReached returns the sentence of the LimitError that err is or wraps, or "" if it is another error.
func LimitReached(err error) string {
	if reached := (*LimitError)(nil); errors.As(err, &reached) {
		return reached.Text
	}
	return ""
}

// LastingLimit is LimitReached for a limit that the same request would reach again at any time. It returns "" for any other error.
func LastingLimit(err error) string {
	if reached := (*LimitError)(nil); errors.As(err, &reached) && !reached.Passing {
		return reached.Text
	}
	return ""
}
