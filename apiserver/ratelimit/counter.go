package ratelimit

import (
	"hash/maphash"
	"sync"

	"github.com/forgeplane/forgeplane/internal/fair"
)

const (
	// shards are locked one by one.
	shards = 64
	// maxKeys is the maximum number of keys in a shard. All shards take about 10 MB.
	maxKeys = 4096
)

// counter counts by key in one window at a time. Libraries keep an object of some hundred bytes for each caller, and need a task to remove
// old ones; counter discards all of them with the window. If there are more than a quarter of a million callers in one window, it discards
// some of them early.
type counter struct {
	seed   maphash.Seed
	shards [shards]shard
}

type shard struct {
	sync.Mutex
	window int64
	counts map[uint64]uint32
	_      [40]byte // shards do not share cache lines
}

func newCounter() *counter { return &counter{seed: maphash.MakeSeed()} }

// add counts one more for a key in a window, and returns how many there are.
func (c *counter) add(key uint64, window int64) int {
	s := &c.shards[key%shards]
	s.Lock()
	defer s.Unlock()
	count, known := s.counts[key]
	// A goroutine that read the clock just before another one can arrive after it.
	late := window == s.window-1
	if s.window != window && !late || !known && len(s.counts) >= maxKeys {
		s.window, s.counts, count = window, map[uint64]uint32{}, 0
	}
	s.counts[key] = count + 1
	return int(count + 1)
}

// key returns the hash of the caller, and of the resource if that is counted separately. The seed is secret, so no caller can construct a
// collision with another one.
func (l *Limiter) key(caller fair.Key, what, subject string) uint64 {
	var h maphash.Hash
	h.SetSeed(l.requests.seed)
	caller.Hash(&h)
	_, _ = h.WriteString(what)
	_ = h.WriteByte(0)
	_, _ = h.WriteString(subject)
	return h.Sum64()
}
