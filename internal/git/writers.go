package git

import (
	"context"
	"errors"
	"sync"
)

// ErrClosed is returned by Writers.Begin for a repository that takes no changes for now.
var ErrClosed = errors.New("the repository takes no changes for now")

// Writers counts who is changing each repository in this process, so that changes can be held off while it is moved.
// The zero Writers is ready for use.
type Writers struct {
	mu    sync.Mutex
	repos map[string]*writers // by directory; only those that are written to or closed
}

type writers struct {
	running int
	closed  bool
	idle    chan struct{} // not nil while Close waits; closed by the last writer
	// yielding are the ends of the contexts of those that give way.
	yielding map[*byte]context.CancelCauseFunc
}

// Begin counts a change of the repository that begins, until end is called, once. It returns ErrClosed instead if the
// repository is closed.
func (w *Writers) Begin(r *Repository) (end func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	state := w.state(r)
	if state.closed {
		return nil, ErrClosed
	}
	state.running++
	return sync.OnceFunc(func() { w.end(r) }), nil
}

// BeginYielding is Begin for a change that gives way: the context that it returns ends with ErrClosed when the repository is closed.
func (w *Writers) BeginYielding(ctx context.Context, r *Repository) (yielding context.Context, end func(), err error) {
	leave, err := w.Begin(r)
	if err != nil {
		return nil, nil, err
	}
	yielding, cancel := context.WithCancelCause(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	state, key := w.state(r), new(byte)
	if state.closed {
		cancel(ErrClosed)
	}
	if state.yielding == nil {
		state.yielding = map[*byte]context.CancelCauseFunc{}
	}
	state.yielding[key] = cancel
	return yielding, func() {
		cancel(nil)
		w.mu.Lock()
		delete(state.yielding, key)
		w.mu.Unlock()
		leave()
	}, nil
}

func (w *Writers) end(r *Repository) {
	w.mu.Lock()
	defer w.mu.Unlock()
	state := w.state(r)
	state.running--
	if state.running == 0 && state.idle != nil {
		close(state.idle)
		state.idle = nil
	}
	w.forget(r, state)
}

// Close lets no further change begin, until Open, and waits for those that run. If ctx ends first, changes may begin again.
// A repository that is closed already is ErrClosed.
func (w *Writers) Close(ctx context.Context, r *Repository) error {
	w.mu.Lock()
	state := w.state(r)
	if state.closed {
		w.mu.Unlock()
		return ErrClosed
	}
	state.closed = true
	for _, cancel := range state.yielding {
		cancel(ErrClosed)
	}
	idle := make(chan struct{})
	if state.running == 0 {
		close(idle)
	} else {
		state.idle = idle
	}
	w.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		w.Open(r)
		return context.Cause(ctx)
	}
}

// Closed reports whether Begin would return ErrClosed now.
func (w *Writers) Closed(r *Repository) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	state := w.repos[r.dir]
	return state != nil && state.closed
}

// Open undoes Close.
func (w *Writers) Open(r *Repository) {
	w.mu.Lock()
	defer w.mu.Unlock()
	state := w.state(r)
	state.closed, state.idle = false, nil
	w.forget(r, state)
}

func (w *Writers) state(r *Repository) *writers {
	if w.repos == nil {
		w.repos = map[string]*writers{}
	}
	state := w.repos[r.dir]
	if state == nil {
		state = &writers{}
		w.repos[r.dir] = state
	}
	return state
}

func (w *Writers) forget(r *Repository, state *writers) {
	if state.running == 0 && !state.closed {
		delete(w.repos, r.dir)
	}
}
