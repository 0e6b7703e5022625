package git

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// Limits are what the server allows. Of each, 0 stands for the default and a negative value for no limit.
type Limits struct {
	// Memory is how many bytes of data one process of git may have: what it allocates, without the files that it maps. 1 GiB by default.
	Memory int64
	// MemoryTotal is how many bytes of memory all processes of git have together, without the files that they map. Half of what the
	// process may have by default, which is no limit where that is not known.
	MemoryTotal int64
	// CPU is how much processor time one process of git may take. Half an hour by default; whole seconds count.
	CPU time.Duration
	// Archive is how many bytes an archive may have before it is compressed. 2 GiB by default.
	Archive int64
	// Push is how many bytes the objects of one push may have as they are sent, and each object when it is unpacked, that of an import as
	// well. 2 GiB by default.
	Push int64
	// PushUnpacked is how many bytes the objects of one push may have together when they are unpacked. 64 GiB by default: a long history
	// has thirty times of what is sent.
	PushUnpacked int64
	// Repository is how many bytes a repository may have on disk before it takes no more. 10 GiB by default.
	Repository int64
	// Refs is how many branches, tags and other refs a repository may have, that of an import as well: each list of them is in memory.
	// 100,000 by default.
	Refs int64
	// Import is how many bytes an imported repository may have on disk, and ImportTime how long the import may take. 10 GiB and six
	// hours by default.
	Import     int64
	ImportTime time.Duration
	// ImportUnpacked is how many bytes the objects of an import may have together when they are unpacked. 320 GiB by default.
	ImportUnpacked int64
}

// DefaultLimits are those of which nobody has said anything.
var DefaultLimits = Limits{
	Memory: 1 << 30, CPU: 30 * time.Minute, Archive: 2 << 30, Push: 2 << 30, PushUnpacked: 64 << 30, Repository: 10 << 30, Refs: 100_000, Import: 10 << 30, ImportTime: 6 * time.Hour, ImportUnpacked: 320 << 30,
}

// complete returns the limits with their defaults; 0 is no limit in them.
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

// LimitError is returned for what takes more than the server allows.
type LimitError struct {
	// Text is a sentence for the person who has asked for it. It names the limit and its value.
	Text string
	// Passing says that it is because of what the caller and others have at the moment: another caller may be allowed the same, and this
	// one later.
	Passing bool
}

func (e *LimitError) Error() string { return e.Text }

func limitf(format string, args ...any) *LimitError {
	return &LimitError{Text: fmt.Sprintf(format, args...)}
}

// FormatBytes writes a number of bytes as people do, as in "1 GiB". It is exact.
func FormatBytes(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for n != 0 && n%1024 == 0 && i < len(units)-1 {
		n /= 1024
		i++
	}
	return strconv.FormatInt(n, 10) + " " + units[i]
}

// bounds are what one process may take, and each of those that it starts. 0 is no bound.
type bounds struct {
	memory int64
	cpu    time.Duration
}

// atMost are bounds of which neither is higher than in other.
func (b bounds) atMost(other bounds) bounds {
	if other.memory > 0 && (b.memory == 0 || other.memory < b.memory) {
		b.memory = other.memory
	}
	if other.cpu > 0 && (b.cpu == 0 || other.cpu < b.cpu) {
		b.cpu = other.cpu
	}
	return b
}

// lastSeconds is how long the system waits between telling a process that its processor time is up and killing it without a word.
const lastSeconds = 5

// seconds is the bound of the processor time in the unit of the system.
func (b bounds) seconds() int64 { return max(int64(b.cpu/time.Second), 1) }

var (
	// starved is what git says when it gets no memory. What another server says ("remote: ...") does not count.
	starved = regexp.MustCompile(`(?im)^(?:fatal|error):.*(?:out of memory|cannot allocate memory)`)
	// overfull is what it says of a pack with more bytes than receive.maxInputSize.
	overfull = regexp.MustCompile(`pack exceeds maximum allowed size`)
	// overtime is what it says of a process of its own that has had its processor time: SIGXCPU has this number on Linux.
	overtime = regexp.MustCompile(`(?m)died of signal 24\b`)
)

// exceeded returns the LimitError of a process that has failed with a status and these last words, and nil if no limit was the reason.
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

// LimitReached returns the sentence of the LimitError that err is or wraps, and "" if it is none.
func LimitReached(err error) string {
	if reached := (*LimitError)(nil); errors.As(err, &reached) {
		return reached.Text
	}
	return ""
}

// LastingLimit is LimitReached for a limit that the same request would reach again, whenever it is made, and "" for any other error.
func LastingLimit(err error) string {
	if reached := (*LimitError)(nil); errors.As(err, &reached) && !reached.Passing {
		return reached.Text
	}
	return ""
}
