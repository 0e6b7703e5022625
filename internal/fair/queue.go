package fair

import (
	"cmp"
	"container/list"
	"context"
	"slices"
)

// Queue has any number of jobs of tenants that wait for slots. The tenant with the fewest slots has the first turn, and among equals the
// tenant whose last turn is the longest ago. The jobs of one tenant keep their order. The slots of a queue must not be used otherwise. A
// Queue is for one goroutine at a time.
type Queue[J comparable] struct {
	slots *Slots
	// lines has the lines of tenants in the order of their last turns.
	lines list.List
	of    map[Key]*list.Element
	at    map[J]place
}

// line has the jobs of a tenant.
type line struct {
	key  Key
	jobs list.List
}

// place is the place of a job in the queue.
type place struct{ line, job *list.Element }

// NewQueue returns an empty queue for slots.
func NewQueue[J comparable](s *Slots) *Queue[J] {
	return &Queue[J]{slots: s, of: map[Key]*list.Element{}, at: map[J]place{}}
}

// Add queues a job of a tenant. The job must not be queued already.
func (q *Queue[J]) Add(k Key, job J) {
	e := q.of[k]
	if e == nil {
		e = q.lines.PushBack(&line{key: k})
		q.of[k] = e
	}
	q.at[job] = place{e, e.Value.(*line).jobs.PushBack(job)}
	q.slots.count(k, 1)
}

// Remove dequeues a job, if it is queued.
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

// Done releases the slot of a job that has ended.
func (q *Queue[J]) Done(h *Hold) {
	h.Leave()
	if e := q.of[h.caller.key]; e != nil {
		q.lines.MoveToBack(e)
	}
}

// turns returns the lines of tenants that can have another slot, in the order of their turns.
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

// count adds to the number of waiting requests in the metrics.
func (s *Slots) count(k Key, more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[k.class()] += more
}

// room returns the number of slots that a caller holds, and whether the caller can have another one.
func (s *Slots) room(k Key) (held int, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.callers[k]
	if c == nil {
		c = &caller{key: k}
	}
	return c.held, s.may(c, 1) && s.free(k.class(), 1)
}
