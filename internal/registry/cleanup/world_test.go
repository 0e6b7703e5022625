package cleanup_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/distribution/distribution/v3/registry/storage/driver/inmemory"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/cleanup"
	"github.com/forgeplane/forgeplane/internal/registry/record"
	"github.com/forgeplane/forgeplane/internal/registry/registrytest"
)

const project types.UID = "p"

// faulty is a storage whose changes can fail.
type faulty struct {
	driver.StorageDriver
	// refuse is the part of the paths whose content cannot be removed.
	refuse atomic.Pointer[string]
	// unreadable is the part of the paths that cannot be read.
	unreadable atomic.Pointer[string]
	down       atomic.Bool
}

var errFaulty = errors.New("the bucket does not answer")

func (f *faulty) fails(path string) error {
	if f.down.Load() || f.refuse.Load() != nil && strings.Contains(path, *f.refuse.Load()) {
		return errFaulty
	}
	return nil
}

func (f *faulty) Delete(ctx context.Context, path string) error {
	if err := f.fails(path); err != nil {
		return err
	}
	return f.StorageDriver.Delete(ctx, path)
}

func (f *faulty) GetContent(ctx context.Context, path string) ([]byte, error) {
	if part := f.unreadable.Load(); part != nil && strings.Contains(path, *part) {
		return nil, errFaulty
	}
	return f.StorageDriver.GetContent(ctx, path)
}

func (f *faulty) List(ctx context.Context, path string) ([]string, error) {
	if part := f.unreadable.Load(); part != nil && strings.Contains(path, *part) {
		return nil, errFaulty
	}
	return f.StorageDriver.List(ctx, path)
}

func (f *faulty) Stat(ctx context.Context, path string) (driver.FileInfo, error) {
	if f.down.Load() {
		return nil, errFaulty
	}
	return f.StorageDriver.Stat(ctx, path)
}

// world is a registry of two processes, with the repositories "" and "web" of a project.
type world struct {
	*WithT
	t           *testing.T
	storage     *faulty
	database    *database.DB
	clock       *clocktesting.FakePassiveClock
	registry    *registry.Registry
	root, web   record.Repository
	reports     []cleanup.Progress
	interrupted func(cleanup.Progress) bool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldIn(t, inmemory.New())
}

func newWorldIn(t *testing.T, in driver.StorageDriver) *world {
	t.Helper()
	// The storage knows when tags are pushed by the time of the machine.
	w := &world{WithT: NewWithT(t), t: t, clock: clocktesting.NewFakePassiveClock(time.Now().Truncate(time.Second).Add(time.Minute))}
	w.storage, w.database = &faulty{StorageDriver: in}, databasetest.Open(t, databasetest.SQLite(t), record.Migrations())
	w.registry = w.process()
	w.root, w.web = w.ensure(""), w.ensure("web")
	return w
}

// process returns the registry of a process that has just started.
func (w *world) process() *registry.Registry {
	return registrytest.NewIn(w.t, w.storage, nil, w.database, w.clock)
}

func (w *world) ensure(name string) record.Repository {
	r, err := w.registry.Records.Ensure(w.t.Context(), 7, project, name)
	w.Expect(err).NotTo(HaveOccurred())
	return r
}

// store stores tags, by the ages of their images in hours.
func (w *world) store(in record.Repository, ages map[string]int) {
	configs := map[string]string{}
	for tag, age := range ages {
		configs[tag] = fmt.Sprintf(`{"created":%q,"tag":%q}`, w.clock.Now().Add(-time.Duration(age)*time.Hour).Format(time.RFC3339Nano), tag)
	}
	registrytest.Store(w.t, w.registry, in, configs)
}

func numbered(n int) map[string]int {
	ages := map[string]int{}
	for i := range n {
		ages[fmt.Sprintf("v%04d", i)] = n - i
	}
	return ages
}

// tags returns the names of the tags as a process sees them that has just started.
func (w *world) tags(in record.Repository) []string {
	images, err := w.process().Images(w.t.Context(), in)
	w.Expect(err).NotTo(HaveOccurred())
	tags, err := images.Tags(w.t.Context())
	w.Expect(err).NotTo(HaveOccurred())
	return slices.Clone(tags)
}

// clean lets a process work on a run until it is interrupted.
func (w *world) clean(in *registry.Registry, r cleanup.Run) (cleanup.Progress, error) {
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	r.Project = project
	return cleanup.New(in, w.clock).Clean(ctx, r, func(p cleanup.Progress) {
		w.reports = append(w.reports, p)
		if w.interrupted != nil && w.interrupted(p) {
			cancel()
		}
	})
}

func (w *world) run(remove string, keepN int64) cleanup.Run {
	return cleanup.Run{ID: "a", Repository: "web", Policy: policy(w.t, remove, "", keepN, "")}
}
