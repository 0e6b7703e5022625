// Package watermark tells each of several servers how current its cache must be before it may refuse a request.
//
// Every server answers from its own cache, which receives the writes of other servers some milliseconds later. A client that creates an
// object at one server and uses it at another one could be told that it does not exist. So each server records in the activity database
// which revision of which kind it has written, before it answers. A server that is about to say that something does not exist or is not
// allowed first reads these records, waits until its cache has caught up, and tries again. Requests that succeed cost nothing.
package watermark

import (
	"context"
	"crypto/rand"
	"errors"
	"reflect"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// lately is the time for which a write of another server counts. A cache whose watch hangs can be further behind than any delay, but a
	// watch ends after 10 minutes at the latest, and the cache then lists what it has missed.
	lately = 10 * time.Minute
	// patience limits the time for a cache to catch up with another server.
	patience = 15 * time.Second
	// storeTimeout is for one call of the store.
	storeTimeout = 2 * time.Second
	// look is the interval of the looks at the cache meanwhile, and pause the minimum time between two looks at the store.
	look  = time.Millisecond
	pause = 5 * time.Millisecond
)

// ErrBehind says that the cache of this server may lack writes of other servers, so that a missing object may exist. Clients get the message
// Behind.
var ErrBehind = errors.New("this server has not received the latest changes of other servers yet")

// Behind is the message for ErrBehind.
const Behind = "This server has not received the latest changes yet. Please try again later."

// freshness is the state of a cache in comparison with the writes of other servers.
type freshness int

const (
	// unknown: the writes of other servers could not be read in time.
	unknown freshness = iota
	// current: no other server has written lately.
	current
	// caughtUp: others have written something, which the cache has by now.
	caughtUp
	// behind: others have written something that the cache does not have.
	behind
)

// Store records the writes of servers. A Written implements it.
type Store interface {
	// Wrote notes the newest revision of each kind that a server has written.
	Wrote(ctx context.Context, server string, revisions map[string]int64) error
	// WrittenByOthers returns the newest revisions that other servers have written in the last while.
	WrittenByOthers(ctx context.Context, server string, while time.Duration) (map[string]int64, error)
}

// Cache knows how far it is; informer.Factory does.
type Cache interface {
	// Reached returns the revision up to which the cache holds a kind; false for a kind that it does not hold.
	Reached(kind string) (int64, bool)
}

// Watermark is the watermark of one server. It is safe for concurrent use. A nil Watermark records and knows nothing.
type Watermark struct {
	store  Store
	cache  Cache
	log    logr.Logger
	server string

	noting   turns[bool]
	checking turns[freshness]

	mu sync.Mutex
	// newest are the newest revisions that this server has written, and pending those that are not recorded yet.
	newest, pending map[string]int64
	// unreached are the revisions that the cache did not reach in time. They are not waited for again while the cache is behind them. Only
	// the goroutine of checking uses it.
	unreached map[string]int64
}

// New returns the watermark of a server, which has a new name.
func New(s Store, c Cache, log logr.Logger) *Watermark {
	w := &Watermark{store: s, cache: c, log: log, server: rand.Text(), newest: map[string]int64{}, pending: map[string]int64{}, unreached: map[string]int64{}}
	w.noting.run = w.note
	w.checking.run, w.checking.pause = w.check, pause
	return w
}

// KindOf returns the name of the kind of an object in a watermark.
func KindOf(o any) string { return reflect.TypeOf(o).String() }

// Wrote records that this server has written an object, with the revision of the object, or the revision of the cache if it was deleted. It
// returns once the record is stored. Without a record, other servers catch up later.
func (w *Watermark) Wrote(ctx context.Context, obj client.Object, deleted bool) {
	if w == nil {
		return
	}
	kind := KindOf(obj)
	revision, err := strconv.ParseInt(obj.GetResourceVersion(), 10, 64)
	if reached, ok := w.cache.Reached(kind); deleted && ok {
		revision = reached
	} else if err != nil {
		return
	}
	w.mu.Lock()
	w.newest[kind] = max(w.newest[kind], revision) // an older write can be noted later
	w.pending[kind] = w.newest[kind]
	w.mu.Unlock()
	w.noting.take(ctx)
}

// note records the pending revisions in the store.
func (w *Watermark) note() bool {
	w.mu.Lock()
	revisions := w.pending
	w.pending = map[string]int64{}
	w.mu.Unlock()
	if len(revisions) == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	if err := w.store.Wrote(ctx, w.server, revisions); err != nil {
		w.log.Error(err, "Failed to announce writes to other servers")
		return false
	}
	return true
}

// Outdated reports whether a lookup just before may have missed a write of another server, and returns when the cache has caught up with the
// write. The error is ErrBehind if the cache does not catch up in time, or if the state is unknown because the store fails or ctx ends.
// Concurrent calls share one query of the store.
func (w *Watermark) Outdated(ctx context.Context) (bool, error) {
	if w == nil {
		return false, nil
	}
	switch w.checking.take(ctx) {
	case caughtUp:
		return true, nil
	case current:
		return false, nil
	default:
		return false, ErrBehind
	}
}

// check is Outdated for all concurrent calls.
func (w *Watermark) check() freshness {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	revisions, err := w.store.WrittenByOthers(ctx, w.server, lately)
	if err != nil {
		w.log.V(1).Info("The writes of other servers are unknown", "reason", err.Error())
		return unknown
	}
	w.await(revisions)
	switch {
	case len(revisions) == 0:
		return current
	case w.lacks(revisions, nil):
		return behind
	default:
		return caughtUp
	}
}

// await waits until the cache has reached the revisions, at most for patience.
func (w *Watermark) await(revisions map[string]int64) {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for w.lacks(revisions, w.unreached) {
		select {
		case <-ticker.C:
		case <-deadline.C:
			for kind, revision := range revisions {
				if reached, ok := w.cache.Reached(kind); ok && reached < revision {
					w.unreached[kind] = revision
				}
			}
			return
		}
	}
}

// lacks reports whether the cache is older than one of the revisions. It ignores the revisions in leaveOut.
func (w *Watermark) lacks(revisions, leaveOut map[string]int64) bool {
	for kind, revision := range revisions {
		if reached, ok := w.cache.Reached(kind); ok && reached < revision && revision != leaveOut[kind] {
			return true
		}
	}
	return false
}
