package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// startSize is the memory in bytes that the process can use before garbage is collected for the first time. A small installation starts faster
	// without collections, and a large one must collect soon enough.
	startSize = 128 << 20
	// startPercent is the growth of the heap between two collections of garbage during the start. Collected objects lie between others that
	// stay, so their memory cannot be returned.
	startPercent = 40
	// depthInterval is the time between two checks of the queues.
	depthInterval = 500 * time.Millisecond
)

// frugalStart collects no garbage at first, and then more often than usual, until all objects that exist at the start are cached and
// reconciled. Then it returns free memory to the system. The start produces more garbage than any later work, and Go returns the memory of
// a heap that has grown once only after a long time. With a growth of 40 %, the process has 430 MB
// in the benchmark rest/memory.
type frugalStart struct {
	mu     sync.Mutex
	over   bool
	usual  int
	limit  int64
	queues prometheus.Gatherer
}

// newFrugalStart returns a frugal start, unless the user has set GOGC.
func newFrugalStart(queues prometheus.Gatherer) *frugalStart {
	f := &frugalStart{queues: queues, over: os.Getenv("GOGC") != ""}
	if f.over {
		return f
	}
	f.usual, f.limit = debug.SetGCPercent(-1), debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(f.limit, startSize))
	// Nothing refers to this object, so the first collection finds it.
	runtime.AddCleanup(new([64]byte), func(f *frugalStart) { f.set(startPercent, false) }, f)
	return f
}

// set sets the percentage, until it was set for the last time.
func (f *frugalStart) set(percent int, last bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.over {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(f.limit)
	}
	f.over = f.over || last
}

// NeedLeaderElection is false: every process has a cache.
func (*frugalStart) NeedLeaderElection() bool { return false }

// Start ends the frugal start. A manager calls it when the cache is complete.
func (f *frugalStart) Start(ctx context.Context) error {
	ticker := time.NewTicker(depthInterval)
	defer ticker.Stop()
	// The queues are empty for a moment before they are filled, so they must be empty twice.
	for empty := 0; empty < 2; {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if empty++; f.waiting() > 0 {
			empty = 0
		}
	}
	f.set(f.usual, true)
	debug.FreeOSMemory()
	return nil
}

// waiting returns the number of objects that wait to be reconciled.
func (f *frugalStart) waiting() (sum float64) {
	// Metrics that cannot be gathered are omitted. The metrics that are needed here are always available.
	families, _ := f.queues.Gather()
	for _, family := range families {
		if family.GetName() == "workqueue_depth" {
			for _, m := range family.GetMetric() {
				sum += m.GetGauge().GetValue()
			}
		}
	}
	return sum
}
