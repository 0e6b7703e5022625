package forge

import (
	"sync"

	. "github.com/onsi/ginkgo/v2"
)

// halt stops a client from a request on.
type halt struct {
	at            func(request string) bool
	reached, over chan struct{}
	stopped       bool
}

// HaltAt stops the process like a machine that sleeps: at the first request for which at returns true, which it gets as All shows it, or as
// method and path. A write is sent only when the process wakes up, and what was read is old by then. All its later requests wait, too. It
// wakes up at the end of the spec if it is not woken.
func (r *Running) HaltAt(at func(request string) bool) (reached <-chan struct{}, wake func()) {
	h := &halt{at: at, reached: make(chan struct{}), over: make(chan struct{})}
	r.Writes.lock.Lock()
	defer r.Writes.lock.Unlock()
	r.Writes.halt = h
	wake = sync.OnceFunc(func() { close(h.over) })
	DeferCleanup(wake)
	return h.reached, wake
}

// meet returns a function that waits until the client is awake.
func (w *Writes) meet(request string) (wait func()) {
	w.lock.Lock()
	defer w.lock.Unlock()
	h := w.halt
	if h == nil {
		return func() {}
	}
	if !h.stopped && h.at(request) {
		h.stopped = true
		close(h.reached)
	}
	if !h.stopped {
		return func() {}
	}
	return func() { <-h.over }
}
