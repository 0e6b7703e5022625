package artifact

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

const (
	// interval is the time between two looks of a Collector.
	interval = 10 * time.Minute
	// batch is the number of artifacts that are read at once.
	batch = 100
)

// Collector removes the content of artifacts that have expired or were removed, and of uploads that were never complete.
type Collector struct {
	store   *Store
	catalog *catalog.Catalog
	clock   clock.WithTicker
	log     logr.Logger
}

// NewCollector returns a collector of a store.
func NewCollector(s *Store, cat *catalog.Catalog, c clock.WithTicker, log logr.Logger) *Collector {
	return &Collector{store: s, catalog: cat, clock: c, log: log}
}

// NeedLeaderElection is true: one of several replicas suffices.
func (*Collector) NeedLeaderElection() bool { return true }

// Start looks at once, and at intervals until ctx ends.
func (c *Collector) Start(ctx context.Context) error {
	ticker := c.clock.NewTicker(interval)
	defer ticker.Stop()
	for {
		n, err := c.Look(ctx)
		if err != nil && ctx.Err() == nil {
			c.log.Error(err, "Failed to remove expired artifacts")
		} else if n > 0 {
			c.log.Info("Removed expired artifacts", "artifacts", n)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// Look removes the artifacts that no caller can read any more, and returns the number of artifacts. The content goes before the row, so that no content remains if the
// process ends between the two.
func (c *Collector) Look(ctx context.Context) (n int, err error) {
	for after := int64(0); ; {
		some, err := c.store.rows.Disposable(ctx, after, batch)
		if err != nil || len(some) == 0 {
			return n, err
		}
		for _, a := range some {
			after = a.ID
			if kept, err := c.kept(ctx, a); err != nil {
				return n, err
			} else if kept {
				continue
			}
			if err := c.store.blobs.Remove(ctx, a.Key); err != nil {
				return n, err
			}
			if err := c.store.rows.ForgetArtifact(ctx, a.ID); err != nil {
				return n, err
			}
			n++
		}
	}
}

// kept reports whether the project keeps an artifact, although it has expired.
func (c *Collector) kept(ctx context.Context, a pipeline.Artifact) (bool, error) {
	if !a.Latest || a.Stored.IsZero() {
		return false, nil
	}
	p, err := catalog.ByID[*v1alpha1.Project](ctx, c.catalog, a.ProjectID)
	if errors.Is(err, catalog.ErrNotFound) {
		return false, nil
	}
	return err == nil && p.Spec.Pipelines.KeepsLatestArtifacts(), err
}
