// Package fair shares what there is only so much of among callers, so that none of them can keep the others from it.
//
// Slots are held by at most so many callers at once. No caller holds more than a share of them, and callers who have not signed in
// leave some to those who have. When all slots are taken, callers take turns: a caller with many requests waits behind one with few.
package fair

import (
	"cmp"
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"
)

// Limits say how slots are shared.
type Limits struct {
	// Total is how many slots there are; at least 1.
	Total int
	// Share is how many of them one caller may hold. 0 stands for all.
	Share int
	// Reserved is how many of them callers who have not signed in cannot hold. They can always hold one.
	Reserved int
	// Wait is how long a caller waits for a slot. 0 stands for 30 seconds.
	Wait time.Duration
}

// Of returns the limits for a number of slots of which one caller may hold share percent, and of which reserved percent are kept
// for those who have signed in.
func Of(total, share, reserved int) Limits {
	const all = 100
	return Limits{Total: total, Share: max(1, total*share/all), Reserved: total * reserved / all}
}

const (
	// defaultWait is what Limits.Wait is if it is not set.
	defaultWait = 30 * time.Second
	// queued is how many requests of one caller wait, and queuedInAll how many of all who have signed in, and of all who have not. Each
	// takes memory and a connection.
	queued, queuedInAll = 64, 1024
)

// Busy is the error for a caller who has had no slot in time.
type Busy struct {
	// What the slots are for, in the plural, as in "Git requests".
	What string
	// Limit is how many slots there are for the caller.
	Limit int
	// Own is true if the caller holds that many; false if others hold what there is.
	Own bool
	// RetryAfter is when it makes sense to try again.
	RetryAfter time.Duration
}

// Error is a sentence for the caller.
func (b *Busy) Error() string {
	again := fmt.Sprintf("Please try again in %d seconds.", int(b.RetryAfter.Round(time.Second)/time.Second))
	if b.Own {
		return fmt.Sprintf("You have %d of %d %s running at once, and others waiting. %s", b.Limit, b.Limit, b.What, again)
	}
	return fmt.Sprintf("The server is busy. It runs as many %s as it can at once. %s", b.What, again)
}

// retryAfter is when a caller should come again who has had no slot.
const retryAfter = 10 * time.Second

// Slots are shared among callers. They are safe for use by several goroutines, and remember only callers who hold a slot or wait
// for one.
type Slots struct {
	what    string
	limits  Limits
	metrics metrics

	mu      sync.Mutex
	callers map[Key]*caller
	held    int
	// Of those who have not signed in.
	anonymous int
	// The callers who could take a slot, in the order of their turns.
	turns [2]list.List
	turn  uint64
	// waiting counts requests.
	waiting [2]int
}

// caller is somebody who holds a slot or waits for one.
type caller struct {
	key     Key
	held    int
	waiting list.List
	// queued is where the caller stands in turns; nil for one who waits for nothing, or for own slots.
	queued *list.Element
	// turn is when the caller was put there.
	turn uint64
}

// class is 0 for those who have signed in, 1 for the others: the index of turns and waiting.
func (k Key) class() int {
	if k.Anonymous() {
		return 1
	}
	return 0
}

// New returns slots. name is that of their metrics, and what says in the plural what they are for. Limits that contradict each other
// are narrowed.
func New(name, what string, l Limits) *Slots {
	l.Total = max(l.Total, 1)
	if l.Share <= 0 || l.Share > l.Total {
		l.Share = l.Total
	}
	l.Reserved = min(max(l.Reserved, 0), l.Total-1)
	l.Wait = cmp.Or(l.Wait, defaultWait)
	return &Slots{what: what, limits: l, metrics: newMetrics(name), callers: map[Key]*caller{}}
}

// Enter waits for a slot for the caller of ctx, who holds it until leave is called. The error is *Busy where that takes too long or
// too many wait already, and that of ctx where it ends.
func (s *Slots) Enter(ctx context.Context) (leave func(), err error) {
	key := From(ctx)
	granted, c, err := s.ask(key)
	if err != nil {
		return nil, err
	}
	leave = func() { s.leave(c) }
	if granted == nil {
		return leave, nil
	}
	patience, stop := context.WithTimeout(ctx, s.limits.Wait)
	defer stop()
	select {
	case <-granted.Value.(chan struct{}):
		return leave, nil
	case <-patience.Done():
	}
	late := !s.abandon(c, granted)
	switch {
	case late && ctx.Err() == nil:
		return leave, nil
	case late:
		leave()
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, s.refuse(c)
}

// share is how many slots a caller may hold.
func (s *Slots) share(k Key) int {
	if k == (Key{}) {
		return s.limits.Total
	}
	return s.limits.Share
}

// free reports whether there is a slot for somebody of a class.
func (s *Slots) free(class int) bool {
	return s.held < s.limits.Total && (class == 0 || s.anonymous < s.limits.Total-s.limits.Reserved)
}

// ask takes a slot, or a place among those who wait: a channel that is closed when the slot is there.
func (s *Slots) ask(k Key) (granted *list.Element, c *caller, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c = s.callers[k]
	if c == nil {
		c = &caller{key: k}
	}
	class := k.class()
	if c.held < s.share(k) && s.free(class) {
		s.callers[k] = c
		s.take(c)
		return nil, c, nil
	}
	if c.waiting.Len() >= queued || s.waiting[class] >= queuedInAll {
		return nil, nil, s.busy(c)
	}
	s.callers[k] = c
	s.waiting[class]++
	granted = c.waiting.PushBack(make(chan struct{}))
	s.enqueue(c)
	return granted, c, nil
}

// enqueue gives a caller a turn who waits and may hold more.
func (s *Slots) enqueue(c *caller) {
	if c.queued == nil && c.waiting.Len() > 0 && c.held < s.share(c.key) {
		s.turn++
		c.turn = s.turn
		c.queued = s.turns[c.key.class()].PushBack(c)
	}
}

func (s *Slots) dequeue(c *caller) {
	if c.queued != nil {
		s.turns[c.key.class()].Remove(c.queued)
		c.queued = nil
	}
}

func (s *Slots) take(c *caller) {
	c.held++
	s.held++
	s.anonymous += c.key.class()
}

// leave gives a slot back, which goes to whoever's turn it is.
func (s *Slots) leave(c *caller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.held--
	s.held--
	s.anonymous -= c.key.class()
	s.enqueue(c)
	s.grant()
	s.forget(c)
}

// grant gives slots to those whose turn it is.
func (s *Slots) grant() {
	for c := s.next(); c != nil; c = s.next() {
		s.dequeue(c)
		s.take(c)
		s.waiting[c.key.class()]--
		close(c.waiting.Remove(c.waiting.Front()).(chan struct{}))
		s.enqueue(c)
	}
}

// next is the caller whose turn it is, if there is a slot.
func (s *Slots) next() *caller {
	var next *caller
	for class := range s.turns {
		if first := s.turns[class].Front(); first != nil && s.free(class) {
			if c := first.Value.(*caller); next == nil || c.turn < next.turn {
				next = c
			}
		}
	}
	return next
}

// abandon ends a wait. It reports false where the slot was granted.
func (s *Slots) abandon(c *caller, granted *list.Element) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-granted.Value.(chan struct{}):
		return false
	default:
	}
	c.waiting.Remove(granted)
	s.waiting[c.key.class()]--
	if c.waiting.Len() == 0 {
		s.dequeue(c)
	}
	s.forget(c)
	return true
}

// forget forgets a caller who holds nothing and waits for nothing.
func (s *Slots) forget(c *caller) {
	if c.held == 0 && c.waiting.Len() == 0 {
		delete(s.callers, c.key)
	}
}

// refuse is the error for a caller who has waited too long.
func (s *Slots) refuse(c *caller) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.busy(c)
}

func (s *Slots) busy(c *caller) error {
	b := &Busy{What: s.what, Limit: s.share(c.key), Own: c.key != (Key{}) && c.held >= s.share(c.key), RetryAfter: retryAfter}
	if b.Own {
		s.metrics.refusedShare++
	} else {
		s.metrics.refusedTotal++
	}
	return b
}
