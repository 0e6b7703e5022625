// Package pace decides how long a server waits for a client that reads or sends something slowly. A client starts with some time, and earns
// more with each byte that passes. The time that the server itself takes in between does not count.
package pace

import (
	"errors"
	"os"
	"time"
)

// LeastThroughput is the minimum throughput in bytes per second over a whole transfer, once the client's patience is used up.
const LeastThroughput = 64 << 10

// Pace is the pace of one client in one direction. Only one goroutine at a time can use it.
type Pace struct {
	// Patience is the time that a client starts with.
	Patience time.Duration
	// Pause is the maximum time for each piece, however fast the client was before.
	Pause time.Duration

	passed int64
	waited time.Duration
}

// Pass sets a deadline for the next piece, calls pass, and counts the time and the bytes that it took. The deadline remains set.
// Connections that do not support deadlines are protected in other ways.
func (p *Pace) Pass(setDeadline func(time.Time) error, pass func() (int, error)) (int, error) {
	begun := time.Now()
	_ = setDeadline(begun.Add(min(p.Pause, p.left())))
	n, err := pass()
	p.waited += time.Since(begun)
	p.passed += int64(n)
	return n, err
}

// left returns how long the client may still keep the server waiting.
func (p *Pace) left() time.Duration {
	earned := time.Duration(float64(p.passed) / LeastThroughput * float64(time.Second))
	return p.Patience + earned - p.waited
}

// TooSlow reports whether err is the error that Pass returns for a client that did not keep up.
func TooSlow(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
