package fair

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus" // the library that controller-runtime's own metrics are made with
)

// metrics are what Slots tell an operator. Their labels do not depend on who calls.
type metrics struct {
	limit, held, waiting, refused *prometheus.Desc
	// How often somebody was refused because of the own share, and because all slots were taken. Guarded by the mutex of the Slots.
	refusedShare, refusedTotal uint64
}

func newMetrics(name string) metrics {
	desc := func(metric, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(metric, help, labels, prometheus.Labels{"slots": name})
	}
	return metrics{
		limit:   desc("forgeplane_slots", "How many requests of a kind are served at once."),
		held:    desc("forgeplane_slots_held", "How many requests of a kind are being served."),
		waiting: desc("forgeplane_slots_waiting", "How many requests of a kind wait for others, by whether their callers have signed in.", "callers"),
		refused: desc("forgeplane_slots_refused_total",
			"How many requests of a kind were refused because their caller had the share of one caller (share), or because all slots were taken (total).", "reason"),
	}
}

// Register has a registry collect the metrics; nil is for none.
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
