// Package fair shares limited resources among callers, so that no caller can exclude the others.
//
// At most a fixed number of slots are held at once. No caller can hold more than a share of them, and some are reserved for signed-in
// callers. When all slots are taken, callers take turns: a caller with many requests waits behind a caller with few. A request that needs
// more than others takes several slots at once.
package fair

import (
	"cmp"
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"
)

// Limits are the limits of Slots.
type Limits struct {
	// Total is the number of slots, at least 1.
	Total int
	// Share is the maximum number of slots of one caller. The default is Total.
	Share int
	// Reserved is the number of slots that anonymous callers cannot hold. They can always hold one.
	Reserved int
	// Wait is the maximum time for which a caller waits for a slot. The default is 30 seconds.
	Wait time.Duration
}

// Of returns limits in which share is the percentage of one caller, and reserved the percentage for signed-in callers.
func Of(total, share, reserved int) Limits {
	const all = 100
	return Limits{Total: total, Share: max(1, total*share/all), Reserved: total * reserved / all}
}

// Halves returns limits in which one caller can hold half of the slots, rounded up.
func Halves(total int) Limits { return Limits{Total: total, Share: (total + 1) / 2} }

const (
	// defaultWait is the default of Limits.Wait.
	defaultWait = 30 * time.Second
	// queued is the maximum number of waiting requests of one caller. queuedInAll is the maximum of all signed-in callers, and of all
	// anonymous callers. Each waiting request uses memory and a connection. When all places are taken, requests of the callers with the
	// most waiting requests are refused in favor of callers with fewer.
	queued, queuedInAll = 64, 1024
)

// Busy is the error for a caller who did not get a slot in time.
type Busy struct {
	// The purpose of the slots in the plural, such as "Git requests".
	What string
	// Limit is the number of slots that the caller can hold.
	Limit int
	// Own is true if the caller has reached Limit, and false if others hold all slots.
	Own bool
	// RetryAfter is the delay after which the caller can try again.
	RetryAfter time.Duration
	// Reason is the text of the error if the slots are not requests, with the limit. Otherwise it is empty.
	Reason string
}

// Error returns a message for the caller.
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

// retryAfter is the delay after which a caller can try again.
const retryAfter = 10 * time.Second

// Slots are shared among callers. They are safe for use by several goroutines, and keep data only of callers who hold a slot or wait for
// one.
type Slots struct {
	what    string
	limits  Limits
	metrics metrics
	// own and others are the texts of Busy.Reason, with %d for the limit. They are empty if the slots are requests.
	own, others string

	mu      sync.Mutex
	callers map[Key]*caller
	held    int
	// anonymous is the number of slots that anonymous callers hold.
	anonymous int
	// turns has the waiting callers who can have another slot, by their class and in the order of their turns.
	turns [2]list.List
	turn  uint64
	// waiting is the number of waiting requests by class.
	waiting [2]int
}

// caller has the slots and waiting requests of a caller.
type caller struct {
	key     Key
	held    int
	waiting list.List
	// queued is the caller's position in turns. It is nil if the caller does not wait, or only waits for slots of their own share.
	queued *list.Element
	// turn is the number of the caller's turn.
	turn uint64
}

// class is the index of turns and waiting: 0 for signed-in callers, 1 for anonymous callers.
func (k Key) class() int {
	if k.Anonymous() {
		return 1
	}
	return 0
}

// New returns slots. name is the name of their metrics, and what is their purpose in the plural. It reduces limits that contradict each
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

// Enter waits for a slot for the caller of ctx, who holds it until leave is called. The error is *Busy if that takes too long or too many
// requests wait, or the error of ctx.
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
	granted, c, err := s.ask(From(ctx), weight, ctx.Value(noWaitKey{}) != nil)
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

// granted returns the result of a wait that has ended.
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

// may reports whether the share of a caller allows a weight more.
func (s *Slots) may(c *caller, weight int) bool {
	return c.held == 0 || c.held+weight <= s.limits.Share
}

// free reports whether a weight is free for callers of a class.
func (s *Slots) free(class, weight int) bool {
	open := s.limits.Total - s.limits.Reserved
	return (s.held == 0 || s.held+weight <= s.limits.Total) && (class == 0 || s.anonymous == 0 || s.anonymous+weight <= open)
}

// waiter is a waiting request. granted is closed when it gets its slots, or loses its place to another request.
type waiter struct {
	granted chan struct{}
	weight  int
	// displaced says that the request lost its place.
	displaced bool
}

// first returns the weight of the caller's oldest waiting request.
func (c *caller) first() int { return c.waiting.Front().Value.(*waiter).weight }

// ask takes slots or a place in the queue. A request in a context of NoWait does not wait for slots of the caller's own share.
func (s *Slots) ask(k Key, weight int, noWait bool) (granted *list.Element, c *caller, err error) {
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
	if noWait && (c.waiting.Len() > 0 || !s.may(c, weight)) {
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

// enqueue gives a turn to a caller whose share allows the oldest waiting request.
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

// grant gives free slots to callers in the order of their turns.
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

// next returns the caller whose turn it is, if slots are free.
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

// abandon ends a wait. It returns false if the slots were granted already.
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

// forget removes a caller who neither holds slots nor waits.
func (s *Slots) forget(c *caller) {
	if c.held == 0 && c.waiting.Len() == 0 {
		delete(s.callers, c.key)
	}
}

// refuse returns the error for a caller who has waited too long.
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
