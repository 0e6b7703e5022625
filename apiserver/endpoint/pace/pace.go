// Package pace says how long a server waits for a client that takes or sends something slowly. A client has some time to begin
// with, and earns more by each byte that passes. The time that the server itself takes in between does not count.
package pace

import (
	"errors"
	"os"
	"time"
)

// LeastThroughput is how many bytes a second a client takes or sends once its patience is used up, over the whole of a transfer.
const LeastThroughput = 64 << 10

// Pace is that of one client and one direction. It is used by one goroutine at a time.
type Pace struct {
	// Patience is what a client has to begin with.
	Patience time.Duration
	// Pause is how long the client may take for each piece, however fast it was before.
	Pause time.Duration

	passed int64
	waited time.Duration
}

// Pass sets a deadline by which the client must have taken or sent a piece, has the piece passed, and counts what it took. The
// deadline stays set. Connections without deadlines are guarded in other ways.
func (p *Pace) Pass(setDeadline func(time.Time) error, pass func() (int, error)) (int, error) {
	begun := time.Now()
	_ = setDeadline(begun.Add(min(p.Pause, p.left())))
	n, err := pass()
	p.waited += time.Since(begun)
	p.passed += int64(n)
	return n, err
}

// left is how long the client may still keep the server waiting.
func (p *Pace) left() time.Duration {
	earned := time.Duration(float64(p.passed) / LeastThroughput * float64(time.Second))
	return p.Patience + earned - p.waited
}

// TooSlow reports whether err is what Pass returns for a client that did not keep up.
func TooSlow(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
