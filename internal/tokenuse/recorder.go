package tokenuse

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/lru"

	"github.com/forgeplane/forgeplane/internal/database"
)

const (
	// interval is the minimum time between two uses that this process writes.
	interval = time.Minute
	// maxMarks is the maximum number of tokens whose last written use this process remembers.
	maxMarks = 16384
	// maxWaiting is the maximum number of uses that wait to be written.
	maxWaiting = 1024
)

// Writer records that tokens were used. A Store implements it.
type Writer interface {
	Use(ctx context.Context, token database.Subject, at time.Time) error
}

// Recorder writes uses of tokens in the background, so that requests do not wait for the database. It is for use by several goroutines.
type Recorder struct {
	store   Writer
	log     logr.Logger
	waiting chan noted

	mu *sync.Mutex
	// marks remembers which uses this process wrote.
	marks *lru.Cache
}

// noted is a use that must be written.
type noted struct {
	token database.Subject
	at    time.Time
}

// NewRecorder returns a recorder that writes to a store while it runs. Without a store, it records nothing.
func NewRecorder(s Writer, log logr.Logger) *Recorder {
	return &Recorder{store: s, log: log, waiting: make(chan noted, maxWaiting), mu: &sync.Mutex{}, marks: lru.New(maxMarks)}
}

// Note notes that a token was used at a time. It never waits, and is called on every use: a use that follows another within a minute is not
// written, so the time that is read can be a minute old. A use is lost if too many wait to be written, or if the process ends; the next one is written.
func (r *Recorder) Note(token database.Subject, at time.Time) {
	if r.store == nil || !r.mark(token, at) {
		return
	}
	select {
	case r.waiting <- noted{token, at}:
	default:
		r.forget(token)
	}
}

// Run writes the noted uses until ctx ends.
func (r *Recorder) Run(ctx context.Context) {
	if r.store == nil {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case n := <-r.waiting:
			if err := r.store.Use(ctx, n.token, n.at); err != nil && ctx.Err() == nil {
				r.forget(n.token)
				r.log.Error(err, "Failed to record the use of a token", "kind", n.token.Kind, "id", n.token.ID)
			}
		}
	}
}

// mark reports whether a use must be written, and from now on treats it as written.
func (r *Recorder) mark(token database.Subject, at time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, ok := r.marks.Get(token); ok && at.Sub(last.(time.Time)) < interval {
		return false
	}
	r.marks.Add(token, at)
	return true
}

func (r *Recorder) forget(token database.Subject) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.marks.Remove(token)
}
