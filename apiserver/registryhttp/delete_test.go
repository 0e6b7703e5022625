package registryhttp_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/record"
	"github.com/forgeplane/forgeplane/test/patience"
	"github.com/forgeplane/forgeplane/test/seed"
)

// deletions runs the deletions of repositories until the test ends.
func (w *world) deletions(t *testing.T) *job.Queue {
	t.Helper()
	q := job.NewQueue(databasetest.Open(t, databasetest.SQLite(t), job.Migrations()), job.QueueOptions{
		Name: registry.DeletionQueue, Limits: fair.Limits{Total: 2, Share: 2}, Run: w.registry.Delete, Poll: 5 * time.Millisecond,
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- q.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return q
}

// all returns the records of all repositories.
func (w *world) all(t *testing.T) []record.Repository {
	t.Helper()
	page, err := w.records.After(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

func TestPush_toRepositoryThatIsBeingDeletedSaysWhy(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.push(t, "acme/app/web:1.0")
	g.Expect(w.records.Removing(t.Context(), w.all(t)[0].ID, record.DeleteScheduled)).To(Succeed())
	err := remote.Write(w.ref(t, "acme/app/web:2.0"), image(t), as("dan"))
	g.Expect(err).To(MatchError(And(ContainSubstring("DENIED"), ContainSubstring("the container repository is being deleted: try again when it is gone"))))
	g.Expect(remote.Delete(w.ref(t, "acme/app/web:1.0"), as("mary"))).To(MatchError(ContainSubstring("is being deleted")))
	got, err := remote.Image(w.ref(t, "acme/app/web:1.0"), as("dan"))
	g.Expect(err).NotTo(HaveOccurred(), "it can be pulled until it is gone")
	g.Expect(validate.Image(got)).To(Succeed())
}

// TestPush_andDeletionLeaveNoHalfRepository pushes images to repositories that are deleted again and again. Each push succeeds, or says that the
// repository is or was being deleted. Every image that clients see afterwards is complete.
func TestPush_andDeletionLeaveNoHalfRepository(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	queue := w.deletions(t)
	const repositories, enough = 2, 10
	ctx, stop := context.WithTimeout(t.Context(), 4*time.Minute)
	defer stop()
	var lock sync.Mutex
	done, deleted, ended := map[bool]int{}, 0, make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		random := rand.New(rand.NewPCG(seed.Value(), 0))
		for ctx.Err() == nil {
			page, err := w.records.After(ctx, 0, 100)
			for _, r := range page {
				if err == nil {
					err = registry.Schedule(ctx, w.records, queue, r, fair.Namespace("acme"))
					deleted++
				}
			}
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			// Some pushes end before the next deletion, however slow the machine is.
			for range 1 + random.IntN(8) {
				select {
				case <-ctx.Done():
				case <-ended:
				}
			}
		}
	})
	for client := range 2 * repositories {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				err := remote.Write(w.ref(t, fmt.Sprintf("acme/app/r%d:c%d-%d", client%repositories, client, i)), image(t), as("dan"))
				if err != nil {
					NewWithT(t).Expect(err).To(MatchError(Or(
						ContainSubstring("is being deleted: try again"), ContainSubstring("was deleted: push again"), ContainSubstring("NAME_UNKNOWN"),
						// Another client has created the repository again.
						ContainSubstring("BLOB_UPLOAD_UNKNOWN"), ContainSubstring("MANIFEST_BLOB_UNKNOWN"),
					)))
				}
				lock.Lock()
				done[err == nil]++
				if done[true] >= enough && done[false] >= enough {
					stop()
				}
				lock.Unlock()
				select {
				case <-ctx.Done():
				case ended <- struct{}{}:
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d pushes done, %d refused, %d deletions", done[true], done[false], deleted)
	g.Expect(done).To(And(HaveKeyWithValue(true, BeNumerically(">=", enough)), HaveKeyWithValue(false, BeNumerically(">=", enough))))
	g.Eventually(func() (leaving int) {
		for _, r := range w.all(t) {
			if r.Status != "" {
				leaving++
			}
		}
		return leaving
	}).WithTimeout(patience.Wait).WithPolling(20 * time.Millisecond).Should(BeZero())

	// A push after the deletion is complete.
	for n := range repositories {
		name := fmt.Sprintf("acme/app/r%d", n)
		w.push(t, name+":last")
		tags, err := remote.List(w.ref(t, name).Context(), as("dan"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(tags).To(ContainElement("last"))
		for _, tag := range tags {
			got, err := remote.Image(w.ref(t, name+":"+tag), as("dan"))
			g.Expect(err).NotTo(HaveOccurred(), tag)
			g.Expect(validate.Image(got)).To(Succeed(), tag)
		}
	}
	// The next garbage collections remove only what late requests have stored for deleted repositories.
	w.advance()
	w.collect(t, registry.CollectOptions{})
	w.advance()
	w.collect(t, registry.CollectOptions{})
	g.Expect(w.storedRepositories(t)).To(Equal(len(w.all(t))))
	for n := range repositories {
		got, err := remote.Image(w.ref(t, fmt.Sprintf("acme/app/r%d:last", n)), as("dan"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(validate.Image(got)).To(Succeed())
	}
}

// storedRepositories returns how many repositories the storage has.
func (w *world) storedRepositories(t *testing.T) int {
	t.Helper()
	all, err := w.registry.Storage().List(t.Context(), "/docker/registry/v2/repositories/repositories")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// TestCollect_passesRepositoriesThatAreBeingDeleted collects garbage while repositories are deleted.
func TestCollect_passesRepositoriesThatAreBeingDeleted(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	queue := w.deletions(t)
	kept := w.push(t, "acme/open:kept")
	for round := range 5 {
		for n := range 4 {
			w.push(t, fmt.Sprintf("acme/app/r%d:%d", n, round))
		}
		w.advance()
		var all sync.WaitGroup
		for _, r := range w.all(t) {
			if r.Name != "" {
				all.Go(func() {
					if err := registry.Schedule(t.Context(), w.records, queue, r, fair.Key{}); err != nil {
						t.Error(err)
					}
				})
			}
		}
		for range 3 {
			if _, err := w.registry.Collect(t.Context(), registry.CollectOptions{}); err != nil {
				t.Error(err)
			}
		}
		all.Wait()
		g.Eventually(func() []record.Repository { return w.all(t) }).WithTimeout(patience.Wait).WithPolling(10 * time.Millisecond).Should(HaveLen(1))
	}
	got, err := remote.Image(w.ref(t, "acme/open:kept"), as("dan"))
	g.Expect(err).NotTo(HaveOccurred())
	want, err := kept.Digest()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got.Digest()).To(Equal(want))
	g.Expect(validate.Image(got)).To(Succeed())
}
