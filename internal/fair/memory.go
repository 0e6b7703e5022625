package fair

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus" // the library that controller-runtime's own metrics are made with
)

const (
	// page is the unit of memory in bytes, and pages is the number of pages in a MiB.
	page  = 64 << 10
	pages = 1 << 20 / page
)

// Memory limits the memory that a process uses for callers, such as for responses that they do not read. It is counted in bytes and shared
// like Slots. A nil *Memory has no limit.
type Memory struct {
	slots *Slots
	// own and others are the texts of Busy.
	own, others string
}

// NewMemory returns memory with limits in bytes, or nil for a Total of 0. name is the name of its metrics, which count units of 64 KiB.
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

// WithMessages replaces the texts of Busy: own if the caller has reached the share, others if the total is used up. Each is a sentence with
// %d for the limit in MiB. It returns m.
func (m *Memory) WithMessages(own, others string) *Memory {
	if m != nil {
		m.own, m.others = own, others
	}
	return m
}

// count returns the number of pages for a number of bytes.
func count(bytes int64) int { return int((bytes + page - 1) / page) }

// Take waits until the caller of ctx can hold a number of bytes. resize changes that number, and releases them with 0. It returns the
// errors of Slots.Take.
func (m *Memory) Take(ctx context.Context, bytes int64) (resize func(bytes int64), err error) {
	if m == nil {
		return func(int64) {}, nil
	}
	h, err := m.slots.Take(ctx, count(bytes))
	if err != nil {
		return nil, m.explain(err)
	}
	return h.resizeBytes, nil
}

// Try is Take without waiting. It returns nil if the memory is not free.
func (m *Memory) Try(ctx context.Context, bytes int64) (resize func(bytes int64)) {
	if m == nil {
		return func(int64) {}
	}
	if h := m.slots.Try(ctx, count(bytes)); h != nil {
		return h.resizeBytes
	}
	return nil
}

// OverShare reports whether the caller of ctx would exceed their share with the additional bytes.
func (m *Memory) OverShare(ctx context.Context, bytes int64) bool {
	return m != nil && m.slots.OverShare(ctx, count(bytes))
}

func (h *Hold) resizeBytes(bytes int64) { h.Resize(count(bytes)) }

// explain adds the limit to a Busy error.
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
