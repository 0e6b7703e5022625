package git

import (
	"context"
	"fmt"
	"time"

	"github.com/maypok86/otter/v2" // supports weights and expiry, and has no dependencies

	"github.com/forgeplane/forgeplane/internal/fair"
)

const (
	// maxResults is the maximum size of all remembered results, and maxResult of one result, in bytes.
	maxResults = 64 << 20
	maxResult  = maxResults / 4
	// resultAge is how long an unused result is remembered.
	resultAge = time.Minute
)

// result identifies something that is derived from objects with certain ids, and so never changes.
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

// recall returns the result of find, which must depend only on what and on the objects with these ids. It calls find once for all
// concurrent callers, and remembers the result as long as there is room. Callers must not change the result. size returns its size in
// bytes. find must not call recall.
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

// answered returns the answer to a question, from an attempt of this caller or of another one.
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

// recalled returns a result that recall or remember has stored.
func recalled[T any](r *Repository, what, ids string) (value T, ok bool) {
	found, ok := r.engine.results.GetIfPresent(result{r.dir, what, ids})
	if !ok {
		return value, false
	}
	return found.value.(T), true
}

// remember stores a result of at most maxResult bytes, which must not be changed afterwards.
func remember[T any](r *Repository, what, ids string, value T, bytes int) {
	r.engine.results.Set(result{r.dir, what, ids}, remembered{value, bytes})
}

// forget discards the results for a repository, including those that are being computed, because another repository can take its path.
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
