package registry_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/distribution/distribution/v3/registry/storage"
	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/distribution/reference"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest/objects"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/record"
	"github.com/forgeplane/forgeplane/internal/registry/registrytest"
	"github.com/forgeplane/forgeplane/internal/sweep"
)

// world is a registry with the project acme/app, whose id is 20.
type world struct {
	catalog  *catalog.Catalog
	clock    *clocktesting.FakeClock
	database string
	db       *database.DB
	// images is the directory of the images, if they are in one.
	images   string
	storage  *registrytest.Storage
	registry *registry.Registry
	project  *v1alpha1.Project
}

func newWorld(t *testing.T) *world {
	t.Helper()
	images := t.TempDir()
	directory, err := registry.OpenDirectory(images)
	must(t, err)
	w := newWorldIn(t, directory)
	w.images = images
	return w
}

// newWorldIn is newWorld with the images in a storage.
func newWorldIn(t *testing.T, in driver.StorageDriver) *world {
	t.Helper()
	w := &world{
		catalog:  catalogtest.New(t, objects.Group("acme", "acme"), objects.Project("acme", "app", objects.ByName("acme"), objects.Known(20))).Catalog(),
		database: databasetest.SQLite(t), clock: clocktesting.NewFakeClock(time.Now().UTC().Truncate(time.Second)),
	}
	w.db = databasetest.Open(t, w.database, record.Migrations(), job.Migrations())
	w.storage = registrytest.NewStorage(in)
	var err error
	w.registry, err = registry.New(t.Context(), w.storage, record.New(w.db, w.clock), registry.NewNames(w.catalog), w.clock)
	must(t, err)
	w.project, err = catalog.ByID[*v1alpha1.Project](t.Context(), w.catalog, 20)
	must(t, err)
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// repository records a repository of acme/app.
func (w *world) repository(t *testing.T, name string) record.Repository {
	t.Helper()
	r, err := w.registry.Records.Ensure(t.Context(), 20, w.project.UID, name)
	must(t, err)
	return r
}

// leftover records a repository of a project that is gone.
func (w *world) leftover(t *testing.T, id int64, uid types.UID) record.Repository {
	t.Helper()
	r, err := w.registry.Records.Ensure(t.Context(), id, uid, "")
	must(t, err)
	return r
}

// complete expects that the storage has all of the image of a tag.
func (w *world) complete(t *testing.T, r record.Repository, tag string) {
	t.Helper()
	inner, err := storage.NewRegistry(t.Context(), w.storage)
	must(t, err)
	name, err := reference.WithName("repositories/" + r.Place)
	must(t, err)
	repository, err := inner.Repository(t.Context(), name)
	must(t, err)
	d, err := repository.Tags(t.Context()).Get(t.Context(), tag)
	must(t, err)
	manifests, err := repository.Manifests(t.Context())
	must(t, err)
	m, err := manifests.Get(t.Context(), d.Digest)
	must(t, err)
	for _, needed := range m.References() {
		_, err := repository.Blobs(t.Context()).Get(t.Context(), needed.Digest)
		must(t, err)
	}
}

// stored returns the places of the repositories that the storage has.
func (w *world) stored(t *testing.T) []string {
	t.Helper()
	all, err := w.storage.List(t.Context(), "/docker/registry/v2/repositories/repositories")
	if !errors.As(err, new(driver.PathNotFoundError)) {
		must(t, err)
	}
	return all
}

// sweeper returns a sweeper of the repositories of projects.
func (w *world) sweeper(rows sweep.Rows) *sweep.Sweeper {
	having := func(ctx context.Context, id int64) ([]types.UID, error) {
		found, err := catalog.AllWithID[*v1alpha1.Project](ctx, w.catalog, id)
		all := make([]types.UID, len(found))
		for i, p := range found {
			all[i] = p.UID
		}
		return all, err
	}
	return sweep.New([]sweep.Objects{{Kind: record.KindProject, Having: having, Rows: rows}}, func(context.Context) error { return nil }, w.clock, logr.Discard())
}
