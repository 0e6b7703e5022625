package ratelimit

import (
	"hash/maphash"
	"sync"

	"github.com/forgeplane/forgeplane/internal/fair"
)

const (
	// shards are locked one by one.
	shards = 64
	// maxKeys is how many keys a shard has at most: all of them take about 10 MB.
	maxKeys = 4096
)

// counter counts by key in one window at a time. Libraries keep an object of some hundred bytes for each caller, and a task that
// takes old ones away; this forgets all of them with the window. Past a quarter of a million callers in one window it
// forgets some of them before.
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
	// Who read the clock just before another one may come after it.
	late := window == s.window-1
	if s.window != window && !late || !known && len(s.counts) >= maxKeys {
		s.window, s.counts, count = window, map[uint64]uint32{}, 0
	}
	s.counts[key] = count + 1
	return int(count + 1)
}

// key is the hash of who calls, and of what is called, where that counts apart. Nobody outside knows the seed, so nobody can have
// another's key.
func (l *Limiter) key(caller fair.Key, what, subject string) uint64 {
	var h maphash.Hash
	h.SetSeed(l.requests.seed)
	caller.Hash(&h)
	_, _ = h.WriteString(what)
	_ = h.WriteByte(0)
	_, _ = h.WriteString(subject)
	return h.Sum64()
}
