package fair

import "context"

// Hold is a number of slots that a caller holds together.
type Hold struct {
	slots  *Slots
	caller *caller
	// weight is guarded by the mutex of the slots.
	weight int
}

// Caller returns the holder of the slots.
func (h *Hold) Caller() Key { return h.caller.key }

// Resize changes the number of slots held. It never blocks, so the total can exceed the limit for a while.
func (h *Hold) Resize(weight int) {
	s, c := h.slots, h.caller
	s.mu.Lock()
	defer s.mu.Unlock()
	more := weight - h.weight
	h.weight = weight
	s.take(c, more)
	if more > 0 && c.queued != nil && !s.may(c, c.first()) {
		s.dequeue(c)
	}
	if more < 0 {
		s.settle(c)
	}
}

// Leave releases the slots for the next caller. Call it exactly once.
func (h *Hold) Leave() {
	s, c := h.slots, h.caller
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take(c, -h.weight)
	s.settle(c)
}

// Try is Take without waiting. It returns nil if the slots are not free.
func (s *Slots) Try(ctx context.Context, weight int) *Hold {
	k := From(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.callers[k]
	if c == nil {
		c = &caller{key: k}
	}
	if !s.may(c, weight) || !s.free(k.class(), weight) {
		return nil
	}
	s.callers[k] = c
	s.take(c, weight)
	return &Hold{slots: s, caller: c, weight: weight}
}

// OverShare reports whether the caller would exceed their share with weight more slots.
func (s *Slots) OverShare(ctx context.Context, weight int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.callers[From(ctx)]
	return c != nil && !s.may(c, weight)
}

// Short reports whether a caller who holds less than a share waits.
func (s *Slots) Short() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turns[0].Len() > 0 || s.turns[1].Len() > 0
}

// Share returns the maximum number of slots of one caller.
func (s *Slots) Share() int { return s.limits.Share }

// WithMessages replaces the texts of Busy: own if the caller has reached the share, others if the total is used up. Each is a sentence with
// %d for the limit. It returns s.
func (s *Slots) WithMessages(own, others string) *Slots {
	s.own, s.others = own, others
	return s
}
