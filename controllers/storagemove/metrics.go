package storagemove

import (
	"errors"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus" // the library behind controller-runtime's own metrics

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/git/relocate"
)

// meters count what moves do.
type meters struct {
	ended          *prometheus.CounterVec
	bytes, objects prometheus.Counter
	running        []prometheus.Collector
}

// newMeters returns the meters of the moves that a pool copies.
func newMeters(copies *pool) *meters {
	m := &meters{
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "forgeplane_storage_moves_total", Help: "Number of moves of repositories that have ended, by their final state.",
		}, []string{"state"}),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "forgeplane_storage_move_copied_bytes_total", Help: "Number of bytes that moves of repositories have copied.",
		}),
		objects: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "forgeplane_storage_move_copied_objects_total", Help: "Number of Git objects that moves of repositories have copied.",
		}),
	}
	for _, phase := range []relocate.Phase{relocate.Copying, relocate.Closing, relocate.Finishing, relocate.Verifying, relocate.Switching} {
		m.running = append(m.running, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "forgeplane_storage_moves_running", Help: "Number of moves of repositories that run, by their phase.",
			ConstLabels: prometheus.Labels{"phase": strings.ToLower(string(phase))},
		}, func() float64 { return float64(copies.in(phase)) }))
	}
	return m
}

// register adds the meters to a registry, which may be nil.
func (m *meters) register(r prometheus.Registerer) error {
	if r == nil {
		return nil
	}
	var failed error
	for _, c := range append([]prometheus.Collector{m.ended, m.bytes, m.objects}, m.running...) {
		failed = errors.Join(failed, r.Register(c))
	}
	if failed != nil {
		return fmt.Errorf("registering the metrics of moves: %w", failed)
	}
	return nil
}

// end counts a move that has ended in a state.
func (m *meters) end(state v1alpha1.StorageMoveState) {
	m.ended.WithLabelValues(strings.ReplaceAll(string(state), " ", "_")).Inc()
}

// attempt returns a function that counts the progress of one attempt.
func (m *meters) attempt() func(relocate.Progress) {
	var counted relocate.Progress
	return func(now relocate.Progress) {
		m.bytes.Add(float64(now.Bytes - counted.Bytes))
		m.objects.Add(float64(now.Objects - counted.Objects))
		counted = now
	}
}
