package git

import (
	"context"
	"errors"
	"sync"

	"github.com/forgeplane/forgeplane/internal/fair"
)

// asking is the questions that are being answered: one caller works on each, for all who ask. The others wait for the answer while
// somebody works on it, and in the queues of their own slots while nobody does. So nobody waits where another caller waits, or is
// refused what another caller has too much of.
type asking struct {
	mu   sync.Mutex
	open map[result]*question
}

// question is one that has no answer yet. Its fields are guarded by the mutex of asking.
type question struct {
	asking *asking
	of     result
	// users is how many ask.
	users int
	// working is the attempt of whoever has all that it needs so far; nil while all wait.
	working *attempt
	// attempts are by caller: many requests of one take one place in a queue.
	attempts map[fair.Key]*attempt
	// answered is closed when value and err are known.
	answered chan struct{}
	value    any
	err      error
}

// attempt is what one caller does to find an answer. Its fields are guarded by the mutex of asking.
type attempt struct {
	question *question
	caller   fair.Key
	// idle is closed when the attempt no longer works on the question, and over when it has ended.
	idle, over chan struct{}
	// waited says that it was in a queue, and overtaken that somebody else works on the question or has answered it.
	waited, overtaken bool
	// refused is why the caller gets no answer, which holds for all requests of the caller.
	refused error
}

var (
	// errOvertaken ends an attempt that nobody needs.
	errOvertaken = errors.New("somebody else answers the question")
	// errStopped is what an attempt has failed with that has not come to its end.
	errStopped = errors.New("the attempt was stopped")
)

type attemptKey struct{}

// ask returns an open question, which lasts until leave. It is nil where answered reports that there is an answer by now.
func (a *asking) ask(of result, answered func() bool) *question {
	a.mu.Lock()
	defer a.mu.Unlock()
	q := a.open[of]
	if q == nil {
		if answered() {
			return nil
		}
		q = &question{asking: a, of: of, attempts: map[fair.Key]*attempt{}, answered: make(chan struct{})}
		if a.open == nil {
			a.open = map[result]*question{}
		}
		a.open[of] = q
	}
	q.users++
	return q
}

func (q *question) leave() {
	q.asking.mu.Lock()
	defer q.asking.mu.Unlock()
	if q.users--; q.users == 0 {
		q.close()
	}
}

// close has nobody ask it any more.
func (q *question) close() {
	if q.asking.open[q.of] == q {
		delete(q.asking.open, q.of)
	}
}

// attempt returns the caller's own attempt, to be made, or else one to wait for until something happens. It is nil where the question
// is answered.
func (q *question) attempt(k fair.Key) (one *attempt, until <-chan struct{}) {
	q.asking.mu.Lock()
	defer q.asking.mu.Unlock()
	if q.isAnswered() {
		return nil, nil
	}
	if w := q.working; w != nil {
		return w, w.idle
	}
	if own := q.attempts[k]; own != nil {
		return own, own.over
	}
	one = &attempt{question: q, caller: k, over: make(chan struct{})}
	if len(q.attempts) == 0 {
		one.begin()
	}
	q.attempts[k] = one
	return one, nil
}

func (q *question) isAnswered() bool {
	select {
	case <-q.answered:
		return true
	default:
		return false
	}
}

// begin has the attempt be the one that works on the question.
func (a *attempt) begin() { a.question.working, a.idle = a, make(chan struct{}) }

// pause lets others work on the question.
func (a *attempt) pause() {
	if a.question.working == a {
		a.question.working = nil
		close(a.idle)
	}
}

// may reports whether the attempt may go on, which has what it needs: then nobody else works on the question.
func (a *attempt) may() bool {
	a.question.asking.mu.Lock()
	defer a.question.asking.mu.Unlock()
	if a.isOvertaken() {
		return false
	}
	if a.question.working == nil {
		a.begin()
	}
	return true
}

func (a *attempt) isOvertaken() bool {
	w := a.question.working
	a.overtaken = a.overtaken || a.question.isAnswered() || w != nil && w != a
	return a.overtaken
}

// gone reports whether somebody else answers the question.
func (a *attempt) gone() bool {
	a.question.asking.mu.Lock()
	defer a.question.asking.mu.Unlock()
	return a.overtaken
}

// take is that of slots for whoever works on a question. While it waits, others work on it, and when they have the answer it ends.
func (a *attempt) take(ctx context.Context, s *fair.Slots, weight int) (*fair.Hold, error) {
	h := s.Try(ctx, weight)
	if h == nil {
		var err error
		if h, err = a.queue(ctx, s, weight); err != nil {
			return nil, err
		}
	}
	if !a.may() {
		h.Leave()
		return nil, errOvertaken
	}
	return h, nil
}

func (a *attempt) queue(ctx context.Context, s *fair.Slots, weight int) (*fair.Hold, error) {
	mu := &a.question.asking.mu
	mu.Lock()
	a.waited = true
	a.pause()
	mu.Unlock()
	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-a.question.answered:
			stop(errOvertaken)
		case <-ended:
		}
	}()
	h, err := s.Take(waiting, weight)
	if err != nil {
		mu.Lock()
		defer mu.Unlock()
		if a.isOvertaken() { // whoever works on it now takes no slot of the caller
			err = errOvertaken
		}
	}
	return h, err
}

// end ends an attempt. What it has found is for all, and remembered by remember; what has stopped it is for its caller.
func (a *attempt) end(ctx context.Context, value any, err error, remember func()) {
	q := a.question
	q.asking.mu.Lock()
	defer q.asking.mu.Unlock()
	defer close(a.over)
	a.pause()
	delete(q.attempts, a.caller)
	if q.isAnswered() || a.stopped(ctx, err) {
		return
	}
	q.value, q.err = value, err
	if err == nil && q.asking.open[q.of] == q {
		remember()
	}
	q.close()
	close(q.answered)
}

// stopped reports whether an error says nothing about the answer: the request has ended, its caller has too much already, or others
// had something before.
func (a *attempt) stopped(ctx context.Context, err error) bool {
	busy, limit := (*fair.Busy)(nil), (*LimitError)(nil)
	switch {
	case err == nil:
		return false
	case a.overtaken, ctx.Err() != nil, errors.Is(err, errStopped):
		return true
	case errors.As(err, &busy), errors.As(err, &limit) && limit.Passing, a.waited && errors.Is(err, ErrBusy):
		a.refused = err
		return true
	}
	return false
}

// refusal returns why a caller gets no answer, if the attempt has ended so.
func (a *attempt) refusal(k fair.Key) error {
	a.question.asking.mu.Lock()
	defer a.question.asking.mu.Unlock()
	if a.caller != k {
		return nil
	}
	return a.refused
}
