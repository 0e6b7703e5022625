package registry_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/distribution/distribution/v3/registry/storage/driver/inmemory"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/record"
	"github.com/forgeplane/forgeplane/internal/registry/registrytest"
)

func (w *world) pushMade(t *testing.T, tag string, year int) {
	t.Helper()
	registrytest.Push(t, w.registry, "acme/app/web", tag, madeAt(year))
}

// next makes the world that of a process that has just started.
func (w *world) next(t *testing.T) {
	t.Helper()
	w.registry = registrytest.NewIn(t, w.storage, w.catalog, w.db, w.clock)
}

// years are the configurations of images by their tags.
func years(years map[string]int) map[string]string {
	configs := map[string]string{}
	for tag, year := range years {
		configs[tag] = madeAt(year)
	}
	return configs
}

// failAt makes operations on paths with a part fail.
func (w *world) failAt(part string) {
	w.storage.Before(func(_ context.Context, _, path string) error {
		if strings.Contains(path, part) {
			return errors.New("the disk is full of errors")
		}
		return nil
	})
}

func TestNewest_followsImages(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	web := w.repository(t, "web")
	newest := func() []string {
		t.Helper()
		tags, err := w.read(t, web).Newest(t.Context())
		must(t, err)
		return tags
	}
	g.Expect(newest()).To(BeEmpty())
	for tag, year := range map[string]int{"b": 2020, "c": 2019, "a": 2021, "same": 2020, "future": 3000} {
		w.pushMade(t, tag, year)
	}
	registrytest.Push(t, w.registry, "acme/app/web", "undated", "{}")
	g.Expect(newest()).To(Equal([]string{"future", "undated", "a", "same", "b", "c"}))
	w.pushMade(t, "c", 2022)
	g.Expect(newest()).To(Equal([]string{"future", "undated", "c", "a", "same", "b"}))
	w.clock.Step(time.Minute) // lists of tags are remembered
	g.Expect(newest()).To(Equal([]string{"future", "undated", "c", "a", "same", "b"}))
	must(t, w.read(t, web).Untag(t.Context(), "a"))
	w.pushMade(t, "a", 2018)
	g.Expect(newest()).To(Equal([]string{"future", "undated", "c", "same", "b", "a"}))
}

func TestNewest_readsNoImagesThatAreRecorded(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	web := w.repository(t, "web")
	w.pushMade(t, "old", 2020)
	w.pushMade(t, "new", 2021)
	w.next(t)
	w.failAt("/current/link")
	g.Expect(w.read(t, web).Newest(t.Context())).To(Equal([]string{"new", "old"}))

	w.storage.Before(nil)
	w.clock.Step(time.Minute) // lists of tags are remembered
	g.Expect(w.read(t, web).Newest(t.Context())).To(Equal([]string{"new", "old"}))
	registrytest.Store(t, w.registry, web, years(map[string]int{"restored": 2022, "older": 2019}))
	w.clock.Step(time.Minute)
	g.Expect(w.read(t, web).Newest(t.Context())).To(Equal([]string{"restored", "new", "old", "older"}))
	w.next(t)
	w.failAt("/current/link")
	g.Expect(w.read(t, web).Newest(t.Context())).To(Equal([]string{"restored", "new", "old", "older"}))
}

func TestNewest_goesOnWhereItHasEnded(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	web, stored := w.repository(t, "web"), map[string]int{}
	for n := range 150 {
		stored[fmt.Sprintf("v%03d", n)] = 2000 + n
	}
	registrytest.Store(t, w.registry, web, years(stored))
	const slow = 30
	for attempt := range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		var reads atomic.Int64
		w.storage.Before(func(_ context.Context, _, path string) error {
			if strings.HasSuffix(path, "/current/link") && reads.Add(1) == slow {
				cancel()
			}
			return nil
		})
		_, err := w.read(t, web).Newest(ctx)
		g.Expect(err).To(MatchError(context.Canceled), "attempt %d", attempt)
		w.next(t)
	}
	var reads atomic.Int64
	w.storage.Before(func(_ context.Context, _, path string) error {
		if strings.HasSuffix(path, "/current/link") {
			reads.Add(1)
		}
		return nil
	})
	newest, err := w.read(t, web).Newest(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(newest).To(HaveLen(150))
	g.Expect(newest[0]).To(Equal("v149"))
	g.Expect(reads.Load()).To(BeNumerically("<=", 150-2*(slow-8)), "at most those that were under way are read again")
}

func TestNewest_placesImageThatCannotBeReadFirst(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	web := w.repository(t, "web")
	registrytest.Store(t, w.registry, web, years(map[string]int{"old": 2019, "new": 2021}))
	w.failAt("/tags/old/current")
	g.Expect(w.read(t, web).Newest(t.Context())).To(Equal([]string{"old", "new"}))
	w.storage.Before(nil)
	g.Expect(w.read(t, web).Newest(t.Context())).To(Equal([]string{"new", "old"}))

	registrytest.Store(t, w.registry, web, years(map[string]int{"more": 2020}))
	w.clock.Step(time.Minute)
	w.failAt("")
	_, err := w.read(t, web).Newest(t.Context())
	g.Expect(err).To(HaveOccurred())
}

func TestCollect_forgetsOutdatedTags(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	web := w.repository(t, "web")
	for tag, year := range map[string]int{"a": 2020, "b": 2021, "gone": 2022} {
		w.pushMade(t, tag, year)
	}
	// Processes were killed before they could record a push of a and the deletion of gone.
	registrytest.Store(t, w.registry, web, years(map[string]int{"a": 2023}))
	must(t, w.storage.Delete(t.Context(), "/docker/registry/v2/repositories/repositories/"+web.Place+"/_manifests/tags/gone"))
	_, err := w.registry.Records.Change(t.Context(), web.ID, "gone")
	must(t, err)
	g.Expect(w.read(t, web).Newest(t.Context())).To(Equal([]string{"b", "a"}))
	w.clock.Step(48 * time.Hour)
	_, err = w.registry.Collect(t.Context(), registry.CollectOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(w.registry.Records.Tags(t.Context(), web.ID, "", 9)).To(HaveExactElements(HaveField("Name", "b")))
	g.Expect(w.read(t, web).Newest(t.Context())).To(Equal([]string{"a", "b"}))
}

// truth returns the order of the tags by what the storage has.
func (w *world) truth(t *testing.T, of record.Repository) []string {
	t.Helper()
	images, made := w.read(t, of), map[string]time.Time{}
	tags, err := images.Tags(t.Context())
	must(t, err)
	for _, tag := range tags {
		d, err := images.Detail(t.Context(), tag)
		must(t, err)
		made[tag] = *d.Created
	}
	tags = append([]string{}, tags...)
	slices.SortFunc(tags, func(a, b string) int { return cmp.Or(made[b].Compare(made[a]), cmp.Compare(b, a)) })
	return tags
}

func TestNewest_isRightAfterSimultaneousChangesOfTwoProcesses(t *testing.T) {
	g, w := NewWithT(t), newWorldIn(t, inmemory.New())
	web := w.repository(t, "web")
	processes := []*registry.Registry{w.registry, registrytest.NewIn(t, w.storage, w.catalog, w.db, w.clock)}
	for round := range uint64(5) {
		var all sync.WaitGroup
		for worker := range uint64(6) {
			random := rand.New(rand.NewPCG(round, worker))
			r := processes[worker%2]
			all.Go(func() {
				for range 8 {
					tag := string("abc"[random.IntN(3)])
					now, err := r.Records.Get(t.Context(), web.ID)
					must(t, err)
					images, err := r.Images(t.Context(), now)
					must(t, err)
					switch random.IntN(4) {
					case 0:
						if err := images.Untag(t.Context(), tag); err != nil && !errors.Is(err, registry.ErrNoTag) {
							t.Error(err)
						}
					case 1:
						d, err := images.Digest(t.Context(), tag)
						if err == nil {
							_, err = images.UntagAll(t.Context(), []registry.Tagged{{Name: tag, Digest: d}}, time.Now())
						}
						if err != nil && !errors.Is(err, registry.ErrNoTag) {
							t.Error(err)
						}
					case 2:
						if _, err := images.Newest(t.Context()); err != nil {
							t.Error(err)
						}
					default:
						registrytest.Push(t, r, "acme/app/web", tag, madeAt(2000+random.IntN(20)))
					}
				}
			})
		}
		all.Wait()
		w.next(t)
		want := w.truth(t, web)
		for range 2 { // first with what is recorded already, and then with what that has recorded
			w.next(t)
			g.Expect(w.read(t, web).Newest(t.Context())).To(Equal(want), "round %d", round)
			w.clock.Step(2 * time.Minute)
		}
	}
}
