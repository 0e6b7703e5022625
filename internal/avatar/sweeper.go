package avatar

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/blob"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

const (
	// interval is the time between two looks of a Sweeper.
	interval = time.Hour
	// grace is the minimum age of an avatar that is removed. An upload is stored before its object names it.
	grace = 24 * time.Hour
)

// Sweeper removes avatars that no object has: those of deleted objects, and those that remained when a process ended during an upload.
type Sweeper struct {
	store   *Store
	catalog *catalog.Catalog
	clock   clock.WithTicker
	log     logr.Logger
}

// NewSweeper returns a sweeper of a store.
func NewSweeper(s *Store, cat *catalog.Catalog, c clock.WithTicker, log logr.Logger) *Sweeper {
	return &Sweeper{store: s, catalog: cat, clock: c, log: log}
}

// NeedLeaderElection is true: one of several replicas suffices.
func (*Sweeper) NeedLeaderElection() bool { return true }

// Start looks at once, and every hour until ctx ends.
func (s *Sweeper) Start(ctx context.Context) error {
	ticker := s.clock.NewTicker(interval)
	defer ticker.Stop()
	for {
		if err := s.Look(ctx); err != nil && ctx.Err() == nil {
			s.log.Error(err, "Failed to remove the avatars of deleted objects")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// Look removes old avatars that no object has.
func (s *Sweeper) Look(ctx context.Context) error {
	used := sets.Set[string]{}
	err := errors.Join(collect[*v1alpha1.Project](ctx, s.catalog, used), collect[*v1alpha1.Group](ctx, s.catalog, used), collect[*v1alpha1.User](ctx, s.catalog, used))
	if err != nil {
		return fmt.Errorf("listing the avatars in use: %w", err)
	}
	return s.store.blobs.Each(ctx, prefix, func(b blob.Blob) error {
		if used.Has(b.Key) || s.clock.Since(b.Modified) < grace {
			return nil
		}
		return s.store.blobs.Remove(ctx, b.Key)
	})
}

// collect adds the keys of the avatars that the objects of a kind have.
func collect[T v1alpha1.Pictured](ctx context.Context, c *catalog.Catalog, into sets.Set[string]) error {
	all, err := catalog.All[T](ctx, c)
	for _, o := range all {
		if name := *o.Avatar(); name != "" {
			into.Insert(key(o, name))
		}
	}
	return err
}
