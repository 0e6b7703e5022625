package git

import (
	"context"
	"fmt"
	"time"

	"github.com/maypok86/otter/v2" // weights and expiry, without dependencies of its own

	"github.com/forgeplane/forgeplane/internal/fair"
)

const (
	// maxResults is how many bytes of results are remembered, and maxResult how many of one.
	maxResults = 64 << 20
	maxResult  = maxResults / 4
	// resultAge is how long one is remembered that nobody asks for.
	resultAge = time.Minute
)

// result is the question for something that follows from the objects with certain ids, and so never changes.
type result struct{ dir, what, ids string }

// remembered is an answer.
type remembered struct {
	value any
	bytes int
}

type results = otter.Cache[result, remembered]

func newResults() *results {
	return otter.Must(&otter.Options[result, remembered]{
		MaximumWeight: maxResults,
		Weigher: func(q result, r remembered) uint32 {
			return uint32(r.bytes + len(q.dir) + len(q.what) + len(q.ids) + 100)
		},
		ExpiryCalculator: otter.ExpiryAccessing[result, remembered](resultAge),
	})
}

// recall returns what find finds, which follows from what and from the objects with these ids alone. It is found once for all
// who ask at the same time, and remembered as long as there is room; nobody changes it. size is how many bytes it takes. find
// recalls nothing itself.
func recall[T any](ctx context.Context, r *Repository, what, ids string, size func(T) int, find func(context.Context) (T, error)) (T, error) {
	if known, ok := recalled[T](r, what, ids); ok {
		return known, nil
	}
	var known T
	q := r.engine.asking.ask(result{r.dir, what, ids}, func() (ok bool) {
		known, ok = recalled[T](r, what, ids)
		return ok
	})
	if q == nil {
		return known, nil
	}
	defer q.leave()
	value, err := answered(ctx, q, func(a *attempt) (value T, err error) {
		err = errStopped
		defer func() {
			a.end(ctx, value, err, func() {
				if bytes := size(value); bytes <= maxResult {
					remember(r, what, ids, value, bytes)
				}
			})
		}()
		return find(context.WithValue(ctx, attemptKey{}, a))
	})
	if err != nil {
		var none T
		return none, fmt.Errorf("%s: %w", what, err)
	}
	return value, nil
}

// answered returns the answer to a question: that of an attempt, or that of somebody else.
func answered[T any](ctx context.Context, q *question, try func(*attempt) (T, error)) (none T, err error) {
	for k := fair.From(ctx); ; {
		a, until := q.attempt(k)
		switch {
		case a == nil && q.err != nil:
			return none, q.err
		case a == nil:
			return q.value.(T), nil
		case until == nil:
			if value, err := try(a); err == nil || !a.gone() {
				return value, err
			}
			continue
		}
		select {
		case <-ctx.Done():
			return none, context.Cause(ctx)
		case <-q.answered:
		case <-until:
			if refused := a.refusal(k); refused != nil {
				return none, refused
			}
		}
	}
}

// recalled returns what recall or remember has remembered.
func recalled[T any](r *Repository, what, ids string) (value T, ok bool) {
	found, ok := r.engine.results.GetIfPresent(result{r.dir, what, ids})
	if !ok {
		return value, false
	}
	return found.value.(T), true
}

// remember remembers what somebody has found out by himself, and nobody changes. It has at most maxResult bytes.
func remember[T any](r *Repository, what, ids string, value T, bytes int) {
	r.engine.results.Set(result{r.dir, what, ids}, remembered{value, bytes})
}

// forget forgets what was remembered of a repository, and what is being found: another one may come to the same place.
func (e *Engine) forget(dir string) {
	e.asking.mu.Lock()
	defer e.asking.mu.Unlock()
	for of, q := range e.asking.open {
		if of.dir == dir {
			q.close()
		}
	}
	for question := range e.results.Keys() {
		if question.dir == dir {
			e.results.Invalidate(question)
		}
	}
}
