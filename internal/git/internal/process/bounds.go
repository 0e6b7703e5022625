package process

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// LimitError is returned if an operation exceeds a limit of the server.
type LimitError struct {
	// Text is a sentence for the user. It names the limit and its value.
	Text string
	// Passing says that the limit depends on what the caller and others use at the moment: another caller, or a later retry, may succeed.
	Passing bool
}

func (e *LimitError) Error() string { return e.Text }

// Limitf returns a LimitError with a formatted sentence.
func Limitf(format string, args ...any) *LimitError {
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

// Bounds are the limits of one process, and of each process that it starts. 0 means no limit.
type Bounds struct {
	Memory int64
	CPU    time.Duration
}

// atMost returns the bounds with the lower of both values in each field.
func (b Bounds) atMost(other Bounds) Bounds {
	if other.Memory > 0 && (b.Memory == 0 || other.Memory < b.Memory) {
		b.Memory = other.Memory
	}
	if other.CPU > 0 && (b.CPU == 0 || other.CPU < b.CPU) {
		b.CPU = other.CPU
	}
	return b
}

// lastSeconds is the time between the signal that a process has used up its processor time and its being killed.
const lastSeconds = 5

// seconds returns the limit of the processor time in seconds.
func (b Bounds) seconds() int64 { return max(int64(b.CPU/time.Second), 1) }

var (
	// starved matches git's messages about a lack of memory. Messages of another server ("remote: ...") do not count.
	starved = regexp.MustCompile(`(?im)^(?:fatal|error):.*(?:out of memory|cannot allocate memory)`)
	// overtime matches git's message about a child process that has used up its processor time: SIGXCPU has this number on Linux.
	overtime = regexp.MustCompile(`(?m)died of signal 24\b`)
)

// exceeded returns the LimitError of a process that failed with a status and an error output, or nil if no limit was the reason.
func (b Bounds) exceeded(failed error, stderr string) error {
	switch {
	case b.Memory > 0 && starved.MatchString(stderr):
		return b.starved()
	case b.CPU > 0 && (ranOver(failed) || overtime.MatchString(stderr)):
		return b.late()
	}
	return nil
}

// Explain returns the LimitError that a message of git is about, or nil if it is about something else.
func (b Bounds) Explain(message []byte) error {
	switch {
	case starved.Match(message):
		return b.starved()
	case overtime.Match(message):
		return b.late()
	}
	return nil
}

func (b Bounds) late() error {
	return Limitf("This takes more than the %s of processor time that the server allows a Git process.", b.CPU)
}

func (b Bounds) starved() error {
	return Limitf("This takes more than the %s of memory that the server allows a Git process.", FormatBytes(b.Memory))
}
