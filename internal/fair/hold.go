package fair

import "context"

// Hold is slots that a caller has taken together.
type Hold struct {
	slots  *Slots
	caller *caller
	// weight is guarded by the mutex of the slots.
	weight int
}

// Caller is who holds them.
func (h *Hold) Caller() Key { return h.caller.key }

// Weigh changes how many slots these are, for what turns out to take more or less than was thought. It does not wait: more may be
// held then than there are, and others wait the longer.
func (h *Hold) Weigh(weight int) {
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

// Leave releases the slots, and gives them to the next caller. Call it exactly once.
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

// OverShare reports whether a weight more is more than the share of the caller, whatever the others hold.
func (s *Slots) OverShare(ctx context.Context, weight int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.callers[From(ctx)]
	return c != nil && !s.may(c, weight)
}

// Short reports whether somebody waits who holds less than a share.
func (s *Slots) Short() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turns[0].Len() > 0 || s.turns[1].Len() > 0
}

// Share is how many slots one caller may hold.
func (s *Slots) Share() int { return s.limits.Share }

// Words has Busy say something else than that requests are running: own where the caller has a share, and others where others have
// what there is. Each is a sentence with a %d in it, for the limit. It returns the slots.
func (s *Slots) Words(own, others string) *Slots {
	s.own, s.others = own, others
	return s
}
