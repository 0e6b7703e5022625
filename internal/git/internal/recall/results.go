// Package recall remembers what was derived from the objects of repositories, and lets callers who ask the same question at the same time
// share the work.
package recall

import (
	"context"
	"fmt"
	"time"

	"github.com/maypok86/otter/v2" // supports weights and expiry, and has no dependencies

	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
)

const (
	// maxResults is the maximum size of all remembered results, in bytes.
	maxResults = 64 << 20
	// MaxResult is the maximum size of one remembered result, in bytes.
	MaxResult = maxResults / 4
	// resultAge is the time for which an unused result is cached.
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

// Memory remembers answers to questions, and lets callers who ask the same question share the work.
type Memory struct {
	results   *results
	coalesced coalesced
}

// New returns a Memory, which the caller must close.
func New() *Memory { return &Memory{results: newResults()} }

// Close ends the goroutines of the answers.
func (m *Memory) Close() { m.results.StopAllGoroutines() }

// About returns the answers about one repository.
func (m *Memory) About(dir string) Results { return Results{m, dir} }

// Results has the answers about one repository.
type Results struct {
	answers *Memory
	dir     string
}

// Find returns the result of find, which must depend only on what and on the objects with these ids. It calls find once for all
// concurrent callers, and remembers the result as long as there is room. Callers must not change the result. size returns its size in
// bytes. find must not call recall.
func Find[T any](ctx context.Context, of Results, what, ids string, size func(T) int, find func(context.Context) (T, error)) (T, error) {
	if known, ok := Known[T](of, what, ids); ok {
		return known, nil
	}
	var known T
	q := of.answers.coalesced.ask(result{of.dir, what, ids}, func() (ok bool) {
		known, ok = Known[T](of, what, ids)
		return ok
	})
	if q == nil {
		return known, nil
	}
	defer q.leave()
	value, err := answered(ctx, q, func(a *attempt) (value T, err error) {
		err = errStopped
		defer func() {
			a.end(ctx, value, err, func() { Keep(of, what, ids, value, size(value)) })
		}()
		return find(process.WithTaker(ctx, a))
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

// Known returns a result that Find or Keep has stored.
func Known[T any](of Results, what, ids string) (value T, ok bool) {
	found, ok := of.answers.results.GetIfPresent(result{of.dir, what, ids})
	if !ok {
		return value, false
	}
	return found.value.(T), true
}

// Keep stores a result, which must not be changed afterwards, unless it is larger than MaxResult.
func Keep[T any](of Results, what, ids string, value T, bytes int) {
	if bytes > MaxResult {
		return
	}
	of.answers.results.Set(result{of.dir, what, ids}, remembered{value, bytes})
}

// Forget discards the results for a repository, including those that are being computed, because another repository can take its path.
func (m *Memory) Forget(dir string) {
	m.coalesced.mu.Lock()
	defer m.coalesced.mu.Unlock()
	for of, q := range m.coalesced.open {
		if of.dir == dir {
			q.close()
		}
	}
	for question := range m.results.Keys() {
		if question.dir == dir {
			m.results.Invalidate(question)
		}
	}
}
