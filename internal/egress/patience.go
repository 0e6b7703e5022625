package egress

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// ErrTooSlow says that a target has sent or taken too little for too long.
var ErrTooSlow = errors.New("the target is too slow")

// Limits limit how long a target can delay a use of the proxy. The user of the proxy must give up on a target that sends nothing at all,
// because the proxy does not know whether an answer is due.
type Limits struct {
	// Patience is the initial time, for all connections of the use together.
	Patience time.Duration
	// Throughput is the number of bytes, sent or received, that add a second.
	Throughput int
}

// DefaultLimits let a target begin slowly: one that has a large repository may count its objects for a long time, and says now and then that it
// does.
var DefaultLimits = Limits{Patience: 30 * time.Minute, Throughput: 64 << 10}

// tooSlow is ErrTooSlow in a sentence that names the limits.
type tooSlow struct {
	host   string
	limits Limits
}

func (e *tooSlow) Error() string {
	return fmt.Sprintf("%s is too slow: after the first %s the server requires at least %d KiB per second on average",
		e.host, e.limits.Patience, e.limits.Throughput>>10)
}

func (e *tooSlow) Unwrap() error { return ErrTooSlow }

// patience is the remaining time of the targets of one use. Only the time counts that ends with bytes of a target, or with a target taking
// some: while the program that uses the proxy computes, or is slow itself, no target owes anything.
type patience struct {
	limits Limits

	mu     sync.Mutex
	passed int64
	waited time.Duration
	// last is the time of the last transfer, in either direction. No moment counts twice.
	last time.Time
}

// left returns the remaining time of a target for which the proxy has waited since a moment.
func (p *patience) left(since time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.remaining() - p.waiting(since, time.Now())
}

// pass counts bytes that a target has sent or taken, for which it was waited since a moment, and returns how long it may still take.
func (p *patience) pass(n int, since time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.waited += p.waiting(since, now)
	p.passed += int64(n)
	p.last = now
	return p.remaining()
}

func (p *patience) remaining() time.Duration {
	earned := time.Duration(float64(p.passed) / float64(p.limits.Throughput) * float64(time.Second))
	return p.limits.Patience + earned - p.waited
}

func (p *patience) waiting(since, now time.Time) time.Duration {
	if p.last.After(since) {
		since = p.last
	}
	return max(0, now.Sub(since))
}

// paced is a connection to a target that ends when the patience does.
type paced struct {
	net.Conn
	host string
	way  *route
}

func (c *paced) Read(b []byte) (int, error) {
	begun := time.Now()
	n, err := c.Conn.Read(b)
	if n > 0 && c.way.patience.pass(n, begun) < 0 {
		return n, c.giveUp()
	}
	return n, err
}

func (c *paced) Write(b []byte) (int, error) {
	begun, written := time.Now(), make(chan struct{})
	go c.watch(begun, written)
	n, err := c.Conn.Write(b)
	close(written)
	c.way.patience.pass(n, begun)
	return n, err
}

// watch gives up when that is due, until a piece is written: a target could take a little of it now and then.
func (c *paced) watch(begun time.Time, written <-chan struct{}) {
	for left := c.way.patience.left(begun); left > 0; left = c.way.patience.left(begun) {
		select {
		case <-written:
			return
		case <-time.After(left):
		}
	}
	_ = c.giveUp()
}

// giveUp ends the connection, and says why.
func (c *paced) giveUp() error {
	err := &tooSlow{c.host, c.way.patience.limits}
	c.way.fail(err)
	_ = c.Close()
	return err
}
