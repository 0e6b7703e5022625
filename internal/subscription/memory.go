package subscription

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/forgeplane/forgeplane/internal/database"
)

const (
	// maxRemembered is the maximum number of cached answers.
	maxRemembered = 16384
	// maxAge is the time for which an answer is valid.
	maxAge = time.Second
)

// memory caches answers of the database. One reader at a time refreshes an answer that is older than maxAge.
//
// A change to the database is followed by discarding the affected answers. Entries are removed, not emptied, so a reader who asked before
// the change fills an entry that is no longer in the cache.
type memory[K comparable, V any] struct {
	clock clock.PassiveClock
	read  func(context.Context, K) (V, error)

	adding  sync.Mutex
	entries *lru.Cache
}

type entry[V any] struct {
	answer atomic.Pointer[answer[V]]
	// reading is held by the reader. Unlike with a mutex, waiting for it can be cancelled.
	reading chan struct{}
}

type answer[V any] struct {
	value V
	// asked is the time at which the query began, which can be long before its answer.
	asked time.Time
}

func newMemory[K comparable, V any](c clock.PassiveClock, read func(context.Context, K) (V, error)) *memory[K, V] {
	return &memory[K, V]{clock: c, read: read, entries: lru.New(maxRemembered)}
}

func (m *memory[K, V]) get(ctx context.Context, key K) (V, error) {
	e := m.entry(key)
	if a := e.answer.Load(); m.fresh(a) {
		return a.value, nil
	}
	ctx, cancel := database.Limited(ctx)
	defer cancel()
	var none V
	select {
	case e.reading <- struct{}{}:
		defer func() { <-e.reading }()
	case <-ctx.Done():
		return none, database.Failed(ctx, "waiting for another reader", context.Cause(ctx))
	}
	if a := e.answer.Load(); m.fresh(a) {
		return a.value, nil
	}
	asked := m.clock.Now()
	value, err := m.read(ctx, key)
	if err != nil {
		return none, err
	}
	e.answer.Store(&answer[V]{value: value, asked: asked})
	return value, nil
}

func (m *memory[K, V]) fresh(a *answer[V]) bool { return a != nil && m.clock.Since(a.asked) < maxAge }

func (m *memory[K, V]) entry(key K) *entry[V] {
	if e, ok := m.entries.Get(key); ok {
		return e.(*entry[V])
	}
	m.adding.Lock()
	defer m.adding.Unlock()
	if e, ok := m.entries.Get(key); ok {
		return e.(*entry[V])
	}
	e := &entry[V]{reading: make(chan struct{}, 1)}
	m.entries.Add(key, e)
	return e
}

func (m *memory[K, V]) forget(key K) { m.entries.Remove(key) }

func (m *memory[K, V]) clear() { m.entries.Clear() }
