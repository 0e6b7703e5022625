package fair

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus" // the library that controller-runtime's own metrics are made with
)

// metrics are the metrics of Slots. Their labels do not depend on the callers.
type metrics struct {
	limit, held, waiting, refused *prometheus.Desc
	// refusedShare and refusedTotal count the refusals because of the caller's share and because of the total. The mutex of the Slots
	// guards them.
	refusedShare, refusedTotal uint64
}

func newMetrics(name string) metrics {
	desc := func(metric, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(metric, help, labels, prometheus.Labels{"slots": name})
	}
	return metrics{
		limit:   desc("forgeplane_slots", "Number of slots."),
		held:    desc("forgeplane_slots_held", "Number of slots that callers hold."),
		waiting: desc("forgeplane_slots_waiting", "Number of requests that wait for a slot, by class of caller.", "callers"),
		refused: desc("forgeplane_slots_refused_total",
			"Number of requests that were refused because their caller held a full share (share), or because all slots were taken (total).", "reason"),
	}
}

// Register registers the metrics with a registry, which can be nil.
func (s *Slots) Register(r prometheus.Registerer) error {
	if r == nil {
		return nil
	}
	if err := r.Register(s); err != nil {
		return fmt.Errorf("registering the metrics of %s: %w", s.what, err)
	}
	return nil
}

// Describe implements prometheus.Collector.
func (s *Slots) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.metrics.limit, s.metrics.held, s.metrics.waiting, s.metrics.refused} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (s *Slots) Collect(ch chan<- prometheus.Metric) {
	s.mu.Lock()
	held, waiting, share, total := s.held, s.waiting, s.metrics.refusedShare, s.metrics.refusedTotal
	s.mu.Unlock()
	gauge := func(d *prometheus.Desc, value int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	}
	gauge(s.metrics.limit, s.limits.Total)
	gauge(s.metrics.held, held)
	gauge(s.metrics.waiting, waiting[0], "signed-in")
	gauge(s.metrics.waiting, waiting[1], "anonymous")
	ch <- prometheus.MustNewConstMetric(s.metrics.refused, prometheus.CounterValue, float64(share), "share")
	ch <- prometheus.MustNewConstMetric(s.metrics.refused, prometheus.CounterValue, float64(total), "total")
}
