package registrycleanup

import (
	"errors"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus" // the library behind controller-runtime's own metrics

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/registry/cleanup"
)

// meters count what cleanups do.
type meters struct {
	ended *prometheus.CounterVec
	tags  prometheus.Counter
}

func newMeters() *meters {
	return &meters{
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "forgeplane_registry_cleanups_total", Help: "Number of cleanups of container repositories that have ended, without dry runs, by their final state.",
		}, []string{"state"}),
		tags: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "forgeplane_registry_cleanup_deleted_tags_total", Help: "Number of tags that cleanups of container repositories have deleted.",
		}),
	}
}

// register adds the meters to a registry, which may be nil.
func (m *meters) register(r prometheus.Registerer) error {
	if r == nil {
		return nil
	}
	if err := errors.Join(r.Register(m.ended), r.Register(m.tags)); err != nil {
		return fmt.Errorf("registering the metrics of cleanups: %w", err)
	}
	return nil
}

// end counts a run that has ended.
func (m *meters) end(run *v1alpha1.RegistryCleanupRun) {
	if !run.DryRun {
		m.ended.WithLabelValues(strings.ToLower(string(run.State))).Inc()
	}
}

// attempt returns a function that counts the progress of one attempt.
func (m *meters) attempt() func(cleanup.Progress) {
	counted := int64(0)
	return func(now cleanup.Progress) {
		m.tags.Add(float64(now.Removed - counted))
		counted = now.Removed
	}
}
