package main

import (
	"context"
	"os"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// startPercent is how much the heap may grow between two collections of garbage during the start.
	startPercent = 50
	// depthInterval is the time between two looks at the queues.
	depthInterval = 500 * time.Millisecond
)

// frugalStart collects garbage twice as often as usual until everything that a process finds at its start is in its cache
// and reconciled. Nothing that follows makes as much garbage, and what the heap has once grown to is not given back
// for long: with 52,500 objects that are 430 MB instead of 620.
type frugalStart struct {
	usual  int
	queues prometheus.Gatherer
}

// newFrugalStart begins it.
func newFrugalStart(queues prometheus.Gatherer) *frugalStart {
	f := &frugalStart{queues: queues}
	if os.Getenv("GOGC") == "" { // whoever sets it has decided otherwise
		f.usual = debug.SetGCPercent(startPercent)
	}
	return f
}

// NeedLeaderElection is false: every process has a cache.
func (*frugalStart) NeedLeaderElection() bool { return false }

// Start ends it. A manager calls it when the cache is complete.
func (f *frugalStart) Start(ctx context.Context) error {
	if f.usual == 0 {
		return nil
	}
	ticker := time.NewTicker(depthInterval)
	defer ticker.Stop()
	// The queues are empty for a moment before they are filled, so they are to be it twice.
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
	debug.SetGCPercent(f.usual)
	return nil
}

// waiting is how many objects wait to be reconciled.
func (f *frugalStart) waiting() (sum float64) {
	// What cannot be gathered is left out, and not what this asks for.
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
