package fair

import (
	"cmp"
	"container/list"
	"context"
	"slices"
)

// Queue is work that waits for slots without somebody who waits for it: jobs of tenants, as many as there are. Where several tenants
// have some, the one goes first who holds the fewest slots, and of these the one who has waited longest since it held one. The jobs of
// one tenant keep their order. Nothing else takes the slots of a queue. It is used by one goroutine at a time.
type Queue[J comparable] struct {
	slots *Slots
	// lines are in the order of their turns.
	lines list.List
	of    map[Key]*list.Element
	at    map[J]place
}

// line is the jobs of a tenant.
type line struct {
	key  Key
	jobs list.List
}

// place is where a job waits.
type place struct{ line, job *list.Element }

// NewQueue returns an empty queue for slots.
func NewQueue[J comparable](s *Slots) *Queue[J] {
	return &Queue[J]{slots: s, of: map[Key]*list.Element{}, at: map[J]place{}}
}

// Add has a job of a tenant wait, which does not wait yet.
func (q *Queue[J]) Add(k Key, job J) {
	e := q.of[k]
	if e == nil {
		e = q.lines.PushBack(&line{key: k})
		q.of[k] = e
	}
	q.at[job] = place{e, e.Value.(*line).jobs.PushBack(job)}
	q.slots.count(k, 1)
}

// Remove has a job not wait any more, if it does.
func (q *Queue[J]) Remove(job J) {
	p, waits := q.at[job]
	if !waits {
		return
	}
	delete(q.at, job)
	l := p.line.Value.(*line)
	l.jobs.Remove(p.job)
	q.slots.count(l.key, -1)
	if l.jobs.Len() == 0 {
		q.lines.Remove(p.line)
		delete(q.of, l.key)
	}
}

// Next removes and returns the next job, with a slot for it, which Done releases. It skips jobs for which take reports false; take can also
// acquire other resources for the job. The Hold is nil if there is no job.
func (q *Queue[J]) Next(take func(J) bool) (next J, hold *Hold) {
	for _, e := range q.turns() {
		l := e.Value.(*line)
		for j := l.jobs.Front(); j != nil; j = j.Next() {
			if job := j.Value.(J); take(job) {
				q.lines.MoveToBack(e)
				q.Remove(job)
				return job, q.slots.Try(With(context.Background(), l.key), 1)
			}
		}
	}
	return next, nil
}

// Done gives the slot of a job back that has ended.
func (q *Queue[J]) Done(h *Hold) {
	h.Leave()
	if e := q.of[h.caller.key]; e != nil {
		q.lines.MoveToBack(e)
	}
}

// turns are the lines of those who may have a slot, in their order.
func (q *Queue[J]) turns() []*list.Element {
	var all []*list.Element
	held := map[*list.Element]int{}
	for e := q.lines.Front(); e != nil; e = e.Next() {
		if n, more := q.slots.room(e.Value.(*line).key); more {
			all, held[e] = append(all, e), n
		}
	}
	slices.SortStableFunc(all, func(a, b *list.Element) int { return cmp.Compare(held[a], held[b]) })
	return all
}

// count says in the metrics how many more wait.
func (s *Slots) count(k Key, more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[k.class()] += more
}

// room returns how many slots a caller holds, and whether there is one more.
func (s *Slots) room(k Key) (held int, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.callers[k]
	if c == nil {
		c = &caller{key: k}
	}
	return c.held, s.may(c, 1) && s.free(k.class(), 1)
}
