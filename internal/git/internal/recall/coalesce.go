package recall

import (
	"context"
	"errors"
	"sync"

	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
)

// coalesced has the questions that are being answered. Several callers can ask the same question at once. One caller works on it for all of
// them. While a caller works on it, the others wait for the answer; while none does, each waits in the queues of its own slots. So no
// caller waits because another caller has to wait, or is refused because another caller exceeds its limits.
type coalesced struct {
	mu   sync.Mutex
	open map[result]*question
}

// question is a question that has no answer yet. The mutex of coalesced guards its fields.
type question struct {
	coalesced *coalesced
	of        result
	// users is the number of requests that ask the question.
	users int
	// working is the attempt that has all the slots that it needs so far; nil while all attempts wait.
	working *attempt
	// attempts are by caller: all requests of one caller share a place in a queue.
	attempts map[fair.Key]*attempt
	// answered is closed once value and err are known.
	answered chan struct{}
	value    any
	err      error
}

// attempt is the attempt of one caller to answer a question. The mutex of coalesced guards its fields.
type attempt struct {
	question *question
	caller   fair.Key
	// idle is closed when the attempt stops working on the question, and over when it has ended.
	idle, over chan struct{}
	// waited says that the attempt was in a queue. overtaken says that another attempt works on the question or has answered it.
	waited, overtaken bool
	// refused is the reason why all requests of the caller get no answer.
	refused error
}

var (
	// errOvertaken ends an attempt that is no longer needed.
	errOvertaken = errors.New("somebody else answers the question")
	// errStopped is the error of an attempt that did not finish.
	errStopped = errors.New("the attempt was stopped")
)

// ask returns an open question, which exists until leave is called. It returns nil if answered reports that the answer is known by now.
func (a *coalesced) ask(of result, answered func() bool) *question {
	a.mu.Lock()
	defer a.mu.Unlock()
	q := a.open[of]
	if q == nil {
		if answered() {
			return nil
		}
		q = &question{coalesced: a, of: of, attempts: map[fair.Key]*attempt{}, answered: make(chan struct{})}
		if a.open == nil {
			a.open = map[result]*question{}
		}
		a.open[of] = q
	}
	q.users++
	return q
}

func (q *question) leave() {
	q.coalesced.mu.Lock()
	defer q.coalesced.mu.Unlock()
	if q.users--; q.users == 0 {
		q.close()
	}
}

// close removes the question from those that are asked.
func (q *question) close() {
	if q.coalesced.open[q.of] == q {
		delete(q.coalesced.open, q.of)
	}
}

// attempt returns an attempt for the caller to make, or else one to wait for until something happens. It returns nil if the question is
// answered.
func (q *question) attempt(k fair.Key) (one *attempt, until <-chan struct{}) {
	q.coalesced.mu.Lock()
	defer q.coalesced.mu.Unlock()
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

// begin makes the attempt the one that works on the question.
func (a *attempt) begin() { a.question.working, a.idle = a, make(chan struct{}) }

// pause allows other attempts to work on the question.
func (a *attempt) pause() {
	if a.question.working == a {
		a.question.working = nil
		close(a.idle)
	}
}

// may reports whether the attempt, which has the slots that it needs, can continue. If so, no other attempt works on the question.
func (a *attempt) may() bool {
	a.question.coalesced.mu.Lock()
	defer a.question.coalesced.mu.Unlock()
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

// gone reports whether another attempt answers the question.
func (a *attempt) gone() bool {
	a.question.coalesced.mu.Lock()
	defer a.question.coalesced.mu.Unlock()
	return a.overtaken
}

// Take takes slots for an attempt. While it waits, other attempts can work on the question; it returns early once one of them has the
// answer.
func (a *attempt) Take(ctx context.Context, s *fair.Slots, weight int) (*fair.Hold, error) {
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
	mu := &a.question.coalesced.mu
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
		if a.isOvertaken() { // the working attempt takes no slot of this caller
			err = errOvertaken
		}
	}
	return h, err
}

// end ends an attempt. Its answer is for all callers and is stored by remember. An error that stopped it is only for its own caller.
func (a *attempt) end(ctx context.Context, value any, err error, remember func()) {
	q := a.question
	q.coalesced.mu.Lock()
	defer q.coalesced.mu.Unlock()
	defer close(a.over)
	a.pause()
	delete(q.attempts, a.caller)
	if q.isAnswered() || a.stopped(ctx, err) {
		return
	}
	q.value, q.err = value, err
	if err == nil && q.coalesced.open[q.of] == q {
		remember()
	}
	q.close()
	close(q.answered)
}

// stopped reports whether an error says nothing about the answer: the request has ended, its caller has exceeded a limit, or others had
// precedence.
func (a *attempt) stopped(ctx context.Context, err error) bool {
	busy, limit := (*fair.Busy)(nil), (*process.LimitError)(nil)
	switch {
	case err == nil:
		return false
	case a.overtaken, ctx.Err() != nil, errors.Is(err, errStopped):
		return true
	case errors.As(err, &busy), errors.As(err, &limit) && limit.Passing, a.waited && errors.Is(err, process.ErrBusy):
		a.refused = err
		return true
	}
	return false
}

// refusal returns the reason why a caller gets no answer, if the attempt ended with one.
func (a *attempt) refusal(k fair.Key) error {
	a.question.coalesced.mu.Lock()
	defer a.question.coalesced.mu.Unlock()
	if a.caller != k {
		return nil
	}
	return a.refused
}
