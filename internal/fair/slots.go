// Package fair shares limited resources among callers, so that no caller can exclude the others.
//
// At most a fixed number of slots are held at once. No caller can hold more than a share of them, and callers who have not signed in leave
// some to those who have. When all slots are taken, callers take turns: a caller with many requests waits behind a caller with few. A
// request that needs more than others takes several slots at once.
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

// Halves returns the limits for a number of slots of which one caller may hold half, rounded up.
func Halves(total int) Limits { return Limits{Total: total, Share: (total + 1) / 2} }

const (
	// defaultWait is what Limits.Wait is if it is not set.
	defaultWait = 30 * time.Second
	// queued is the maximum number of waiting requests of one caller, and queuedInAll the maximum of all callers who have signed in, and of
	// all other callers. Each waiting request uses memory and a connection. When all places are taken, the callers with the most waiting
	// requests make room for callers with fewer.
	queued, queuedInAll = 64, 1024
)

// Busy is the error for a caller who has had no slot in time.
type Busy struct {
	// The purpose of the slots in the plural, such as "Git requests".
	What string
	// Limit is how many slots there are for the caller.
	Limit int
	// Own is true if the caller holds that many, and false if others hold all slots.
	Own bool
	// RetryAfter is when it makes sense to try again.
	RetryAfter time.Duration
	// Reason is a sentence of its own where What is not counted in requests, and names the limit; "" otherwise.
	Reason string
}

// Error is a sentence for the caller.
func (b *Busy) Error() string {
	again := fmt.Sprintf("Please try again in %d seconds.", int(b.RetryAfter.Round(time.Second)/time.Second))
	if b.Reason != "" {
		return b.Reason + " " + again
	}
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
	// own and others are what Busy.Reason says, with the limit in it; "" for what is counted in requests.
	own, others string

	mu      sync.Mutex
	callers map[Key]*caller
	held    int
	// The slots held by callers who have not signed in.
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
	// queued is the caller's position in turns; nil if the caller waits for nothing, or only for their own slots.
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

// New returns slots. name is the name of their metrics, and what names their purpose in the plural. It narrows limits that contradict each
// other.
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
	h, err := s.Take(ctx, 1)
	if err != nil {
		return nil, err
	}
	return h.Leave, nil
}

// Take waits like Enter, for a number of slots that the caller holds together. A weight that exceeds a share is granted when the caller
// holds nothing else.
func (s *Slots) Take(ctx context.Context, weight int) (*Hold, error) {
	granted, c, err := s.ask(From(ctx), weight, ctx.Value(promptKey{}) != nil)
	if err != nil {
		return nil, err
	}
	held := &Hold{slots: s, caller: c, weight: weight}
	if granted == nil {
		return held, nil
	}
	patience, stop := context.WithTimeout(ctx, s.limits.Wait)
	defer stop()
	select {
	case <-granted.Value.(*waiter).granted:
		return s.granted(held, granted)
	case <-patience.Done():
	}
	late := !s.abandon(c, granted)
	if late && granted.Value.(*waiter).displaced {
		return nil, s.refuse(c, weight)
	}
	switch {
	case late && ctx.Err() == nil:
		return held, nil
	case late:
		held.Leave()
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, s.refuse(c, weight)
}

// granted is what becomes of a wait that has ended.
func (s *Slots) granted(held *Hold, e *list.Element) (*Hold, error) {
	if e.Value.(*waiter).displaced {
		return nil, s.refuse(held.caller, held.weight)
	}
	return held, nil
}

// displace ends the most recent wait of the caller with the most waiting requests in a class, if that caller has more than number.
// Otherwise it reports false: all callers have as few.
func (s *Slots) displace(class, number int) bool {
	var most *caller
	for k, c := range s.callers {
		if k.class() == class && c.waiting.Len() > number && (most == nil || c.waiting.Len() > most.waiting.Len()) {
			most = c
		}
	}
	if most == nil {
		return false
	}
	w := most.waiting.Remove(most.waiting.Back()).(*waiter)
	w.displaced = true
	s.waiting[class]--
	close(w.granted)
	return true
}

// may reports whether a caller may hold a weight more, as far as the own share goes.
func (s *Slots) may(c *caller, weight int) bool {
	return c.held == 0 || c.held+weight <= s.limits.Share
}

// free reports whether there are slots for somebody of a class.
func (s *Slots) free(class, weight int) bool {
	open := s.limits.Total - s.limits.Reserved
	return (s.held == 0 || s.held+weight <= s.limits.Total) && (class == 0 || s.anonymous == 0 || s.anonymous+weight <= open)
}

// waiter is a waiting request. granted is closed when it gets its slots, or loses its place to another request.
type waiter struct {
	granted chan struct{}
	weight  int
	// displaced says that granted was closed for another one's sake.
	displaced bool
}

// first is the weight of what a caller has waited for longest.
func (c *caller) first() int { return c.waiting.Front().Value.(*waiter).weight }

// ask takes slots, or a place in the queue. A prompt request does not wait for the caller's own slots.
func (s *Slots) ask(k Key, weight int, prompt bool) (granted *list.Element, c *caller, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c = s.callers[k]
	if c == nil {
		c = &caller{key: k}
	}
	class := k.class()
	if s.may(c, weight) && s.free(class, weight) {
		s.callers[k] = c
		s.take(c, weight)
		return nil, c, nil
	}
	if prompt && (c.waiting.Len() > 0 || !s.may(c, weight)) {
		return nil, nil, s.busy(c, weight)
	}
	if c.waiting.Len() >= queued || s.waiting[class] >= queuedInAll && !s.displace(class, c.waiting.Len()+1) {
		return nil, nil, s.busy(c, weight)
	}
	s.callers[k] = c
	s.waiting[class]++
	granted = c.waiting.PushBack(&waiter{granted: make(chan struct{}), weight: weight})
	s.enqueue(c)
	return granted, c, nil
}

// enqueue gives a caller a turn who waits and may hold more.
func (s *Slots) enqueue(c *caller) {
	if c.queued == nil && c.waiting.Len() > 0 && s.may(c, c.first()) {
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

func (s *Slots) take(c *caller, weight int) {
	c.held += weight
	s.held += weight
	s.anonymous += weight * c.key.class()
}

// settle grants free slots to the next callers, after a caller has released some.
func (s *Slots) settle(c *caller) {
	s.enqueue(c)
	s.grant()
	s.forget(c)
}

// grant gives slots to those whose turn it is.
func (s *Slots) grant() {
	for c := s.next(); c != nil; c = s.next() {
		s.dequeue(c)
		w := c.waiting.Remove(c.waiting.Front()).(*waiter)
		s.take(c, w.weight)
		s.waiting[c.key.class()]--
		close(w.granted)
		s.enqueue(c)
	}
}

// next is the caller whose turn it is, if there are slots.
func (s *Slots) next() *caller {
	var next *caller
	for class := range s.turns {
		if first := s.turns[class].Front(); first != nil && s.free(class, first.Value.(*caller).first()) {
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
	case <-granted.Value.(*waiter).granted:
		return false
	default:
	}
	c.waiting.Remove(granted)
	s.waiting[c.key.class()]--
	if c.queued != nil && (c.waiting.Len() == 0 || !s.may(c, c.first())) {
		s.dequeue(c)
	}
	s.settle(c) // a later request may need fewer slots
	return true
}

// forget forgets a caller who holds nothing and waits for nothing.
func (s *Slots) forget(c *caller) {
	if c.held == 0 && c.waiting.Len() == 0 {
		delete(s.callers, c.key)
	}
}

// refuse is the error for a caller who has waited too long.
func (s *Slots) refuse(c *caller, weight int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.busy(c, weight)
}

func (s *Slots) busy(c *caller, weight int) error {
	b := &Busy{What: s.what, Limit: s.limits.Share, Own: !s.may(c, weight), RetryAfter: retryAfter}
	if s.own != "" {
		b.Reason = fmt.Sprintf(s.others, s.limits.Total)
		if b.Own {
			b.Reason = fmt.Sprintf(s.own, b.Limit)
		}
	}
	if b.Own {
		s.metrics.refusedShare++
	} else {
		s.metrics.refusedTotal++
	}
	return b
}
