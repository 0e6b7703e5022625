package apiserver

import (
	"context"
	"testing"

	"github.com/uptrace/bun"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/record"
	"github.com/forgeplane/forgeplane/internal/registry/registrytest"
)

// imageTag is the tag of the image of the project.
const imageTag = "v1.0.0"

// gallery has one image of the project.
type gallery struct {
	t        *testing.T
	registry *registry.Registry
	database *database.DB
	is       record.Repository
}

func newGallery(t *testing.T, cat *catalog.Catalog, db *database.DB, of *v1alpha1.Project, c clock.PassiveClock) *gallery {
	t.Helper()
	g := &gallery{t: t, registry: registrytest.New(t, cat, db, c), database: db}
	r, err := g.registry.Records.Ensure(t.Context(), of.RESTID(), of.UID, "")
	if err != nil {
		t.Fatal(err)
	}
	g.is = r
	g.push()
	return g
}

// push pushes the image.
func (g *gallery) push() {
	g.t.Helper()
	name, err := g.registry.Names.Of(g.t.Context(), g.is)
	if err != nil {
		g.t.Fatal(err)
	}
	registrytest.Push(g.t, g.registry, name, imageTag, "{}")
	g.is = g.now()
}

func (g *gallery) now() record.Repository {
	g.t.Helper()
	r, err := g.registry.Records.Get(g.t.Context(), g.is.ID)
	if err != nil {
		g.t.Fatal(err)
	}
	return r
}

// writes returns the number of changes since the last reset.
func (g *gallery) writes() int {
	now := g.now()
	count := int(now.Changes - g.is.Changes)
	if now.Status != g.is.Status {
		count++
	}
	if !now.Cleanup.Equal(g.is.Cleanup) {
		count++
	}
	return count
}

// reset restores the initial state.
func (g *gallery) reset() {
	if g.writes() == 0 {
		return
	}
	err := g.database.Write(g.t.Context(), "forgetting cleanups", func(ctx context.Context, db bun.IDB) error {
		if _, err := db.NewDelete().Model((*record.Cleanup)(nil)).Where("repository_id = ?", g.is.ID).Exec(ctx); err != nil {
			return err
		}
		_, err := db.NewUpdate().Model((*record.Repository)(nil)).Set("cleanup_at = NULL").Where("id = ?", g.is.ID).Exec(ctx)
		return err
	})
	if err != nil {
		g.t.Fatal(err)
	}
	if err := g.registry.Records.Removing(g.t.Context(), g.is.ID, ""); err != nil {
		g.t.Fatal(err)
	}
	g.push()
}
