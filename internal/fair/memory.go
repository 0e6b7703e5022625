package fair

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus" // the library that controller-runtime's own metrics are made with
)

const (
	// page is what memory is counted in, and pages how many of them a MiB has.
	page  = 64 << 10
	pages = 1 << 20 / page
)

// Memory is what a process holds for callers, such as answers that they do not take. It is counted in bytes, and shared as Slots are. A
// nil *Memory is any amount.
type Memory struct {
	slots *Slots
	// own and others are what Busy says.
	own, others string
}

// NewMemory returns memory with limits in bytes; nil for a Total of 0. name is the name of its metrics, which count pieces of 64 KiB.
func NewMemory(name string, l Limits) *Memory {
	if l.Total <= 0 {
		return nil
	}
	l.Total, l.Share, l.Reserved = count(int64(l.Total)), count(int64(l.Share)), l.Reserved/page
	return &Memory{
		slots: New(name, "memory", l), own: "Your requests and their answers use all of the %d MiB of memory that one caller can have.",
		others: "The server is busy: requests and their answers use all of the %d MiB that it allows for them.",
	}
}

// Words has Busy say something else, for what is not memory: own where the caller has a share, and others where others have what there is.
// Each is a sentence with a %d in it, for the MiB. It returns the memory.
func (m *Memory) Words(own, others string) *Memory {
	if m != nil {
		m.own, m.others = own, others
	}
	return m
}

// count is how many pages some bytes take.
func count(bytes int64) int { return int((bytes + page - 1) / page) }

// Take waits until the caller of ctx may hold a number of bytes. weigh changes that number afterwards; 0 releases all of them. It can
// return the errors of Slots.Take.
func (m *Memory) Take(ctx context.Context, bytes int64) (weigh func(bytes int64), err error) {
	if m == nil {
		return func(int64) {}, nil
	}
	h, err := m.slots.Take(ctx, count(bytes))
	if err != nil {
		return nil, m.explain(err)
	}
	return h.weighBytes, nil
}

// Try is Take without waiting: nil where there is no room.
func (m *Memory) Try(ctx context.Context, bytes int64) (weigh func(bytes int64)) {
	if m == nil {
		return func(int64) {}
	}
	if h := m.slots.Try(ctx, count(bytes)); h != nil {
		return h.weighBytes
	}
	return nil
}

// OverShare reports whether so many bytes more are more than the share of the caller of ctx, whatever the others hold.
func (m *Memory) OverShare(ctx context.Context, bytes int64) bool {
	return m != nil && m.slots.OverShare(ctx, count(bytes))
}

func (h *Hold) weighBytes(bytes int64) { h.Weigh(count(bytes)) }

// explain has Busy say how much memory there is.
func (m *Memory) explain(err error) error {
	var busy *Busy
	switch {
	case !errors.As(err, &busy):
	case busy.Own:
		busy.Reason = fmt.Sprintf(m.own, busy.Limit/pages)
	default:
		busy.Reason = fmt.Sprintf(m.others, m.slots.limits.Total/pages)
	}
	return err
}

// Describe implements prometheus.Collector.
func (m *Memory) Describe(ch chan<- *prometheus.Desc) {
	if m != nil {
		m.slots.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (m *Memory) Collect(ch chan<- prometheus.Metric) {
	if m != nil {
		m.slots.Collect(ch)
	}
}
