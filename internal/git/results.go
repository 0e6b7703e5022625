package git

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/maypok86/otter/v2" // weights, expiry and one loader for each key, without dependencies of its own
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

// tooLarge carries an answer that is not worth remembering past the cache.
type tooLarge[T any] struct{ value T }

func (tooLarge[T]) Error() string { return "the result is too large to be remembered" }

// recall returns what find finds, which follows from what and from the objects with these ids alone. It is found once for all
// who ask at the same time, and remembered as long as there is room; nobody changes it. size is how many bytes it takes.
func recall[T any](ctx context.Context, r *Repository, what, ids string, size func(T) int, find func(context.Context) (T, error)) (T, error) {
	for {
		found, err := r.engine.results.Get(ctx, result{r.dir, what, ids}, otter.LoaderFunc[result, remembered](
			func(ctx context.Context, _ result) (remembered, error) {
				value, err := find(ctx)
				if err != nil {
					return remembered{}, err
				}
				if bytes := size(value); bytes <= maxResult {
					return remembered{value, bytes}, nil
				}
				return remembered{}, tooLarge[T]{value}
			}))
		var large tooLarge[T]
		switch {
		case errors.As(err, &large):
			return large.value, nil
		case err == nil:
			return found.value.(T), nil
		case ctx.Err() == nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)):
			continue // whoever was to find it has gone away
		}
		var none T
		return none, fmt.Errorf("%s: %w", what, err)
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

// forget forgets what was remembered of a repository: another one may come to the same place.
func (e *Engine) forget(dir string) {
	for question := range e.results.Keys() {
		if question.dir == dir {
			e.results.Invalidate(question)
		}
	}
}
