package registry_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/record"
	"github.com/forgeplane/forgeplane/internal/registry/registrytest"
	"github.com/forgeplane/forgeplane/test/patience"
)

// databaseEnv and imagesEnv are set if this executable runs as another process, which deletes repositories and never ends a deletion. They name
// the database and the directory of the images.
const databaseEnv, imagesEnv = "FORGEPLANE_TEST_REGISTRY_DATABASE", "FORGEPLANE_TEST_REGISTRY_IMAGES"

// lease is the time after which another process goes on with the deletions of a killed process.
const lease = 2 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(databaseEnv) == "" {
		os.Exit(m.Run())
	}
	if err := deleteHalf(context.Background(), os.Getenv(databaseEnv), os.Getenv(imagesEnv)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// deleteHalf runs deletions, and stops forever in the middle of the first one: when the tags are gone, and the manifests are not.
func deleteHalf(ctx context.Context, name, images string) error {
	db, err := database.Open(ctx, name, record.Migrations(), job.Migrations())
	if err != nil {
		return err
	}
	directory, err := registry.OpenDirectory(images)
	if err != nil {
		return err
	}
	storage := registrytest.NewStorage(directory)
	storage.Before(func(ctx context.Context, operation, path string) error {
		if operation != "Delete" {
			return nil
		}
		if err := directory.Delete(ctx, path+"/_manifests/tags"); err != nil {
			return err
		}
		fmt.Fprintln(os.Stdout, "half of "+path)
		select {}
	})
	r, err := registry.New(ctx, storage, record.New(db, clock.RealClock{}), registry.NewNames(nil), clock.RealClock{})
	if err != nil {
		return err
	}
	return errors.Join(deletions(db, r).Start(ctx), db.Close())
}

func deletions(db *database.DB, r *registry.Registry) *job.Queue {
	return job.NewQueue(db, job.QueueOptions{
		Name: registry.DeletionQueue, Limits: fair.Limits{Total: 2, Share: 2}, Run: r.Delete, Lease: lease, Poll: 20 * time.Millisecond,
		Retry: func(int, error) time.Duration { return 20 * time.Millisecond },
	})
}

// run runs a queue until the test ends.
func run(t *testing.T, q *job.Queue) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- q.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestDelete_isFinishedByOtherProcessAfterCrash(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	kept, deleted := w.repository(t, "kept"), w.repository(t, "deleted")
	for _, r := range []string{"kept", "deleted"} {
		registrytest.Push(t, w.registry, "acme/app/"+r, "1.0", "{}")
	}
	queue := deletions(w.db, w.registry)
	g.Expect(registry.Schedule(t.Context(), w.registry.Records, queue, deleted, fair.Namespace("acme"))).To(Succeed())

	executable, err := os.Executable()
	g.Expect(err).NotTo(HaveOccurred())
	other := exec.CommandContext(t.Context(), executable)
	other.Env, other.Stderr = append(os.Environ(), databaseEnv+"="+w.database, imagesEnv+"="+w.images), os.Stderr
	output, err := other.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(other.Start()).To(Succeed())
	t.Cleanup(func() { _ = other.Process.Kill() })
	line, err := bufio.NewReader(output).ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(strings.TrimSpace(line)).To(HaveSuffix("/repositories/" + deleted.Place))
	g.Expect(w.registry.Records.Get(t.Context(), deleted.ID)).To(HaveField("Status", record.DeleteOngoing))
	g.Expect(other.Process.Kill()).To(Succeed())
	_ = other.Wait() // it was killed

	run(t, queue)
	g.Eventually(func() error {
		_, err := w.registry.Records.Get(t.Context(), deleted.ID)
		return err
	}).WithTimeout(patience.Wait).WithPolling(20 * time.Millisecond).Should(MatchError(record.ErrNotFound))
	g.Expect(w.stored(t)).To(ConsistOf(HaveSuffix("/repositories/" + kept.Place)))
	images, err := w.registry.Images(t.Context(), kept)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(images.Tags(t.Context())).To(Equal([]string{"1.0"}))
}

func TestDelete_isRetriedWhileStorageFails(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	deleted := w.repository(t, "deleted")
	registrytest.Push(t, w.registry, "acme/app/deleted", "1.0", "{}")
	failed := make(chan struct{}, 100)
	w.storage.Before(func(context.Context, string, string) error {
		failed <- struct{}{}
		return errors.New("the disk is full of errors")
	})
	queue := deletions(w.db, w.registry)
	g.Expect(registry.Schedule(t.Context(), w.registry.Records, queue, deleted, fair.Key{})).To(Succeed())
	run(t, queue)
	g.Eventually(failed).WithTimeout(patience.Wait).Should(Receive())
	g.Eventually(failed).WithTimeout(patience.Wait).Should(Receive())
	g.Expect(w.registry.Records.Get(t.Context(), deleted.ID)).To(HaveField("Status", record.DeleteOngoing))
	w.storage.Before(nil)
	g.Eventually(func() error {
		_, err := w.registry.Records.Get(t.Context(), deleted.ID)
		return err
	}).WithTimeout(patience.Wait).WithPolling(20 * time.Millisecond).Should(MatchError(record.ErrNotFound))
	g.Expect(w.stored(t)).To(BeEmpty())
}

func TestSchedule_neverTakesDeletionBack(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	r := w.repository(t, "web")
	queue := deletions(w.db, w.registry)
	for range 2 {
		g.Expect(registry.Schedule(t.Context(), w.registry.Records, queue, r, fair.Key{})).To(Succeed())
		g.Expect(w.registry.Records.Get(t.Context(), r.ID)).To(HaveField("Status", record.DeleteScheduled))
	}
	g.Expect(w.registry.Records.Removing(t.Context(), r.ID, record.DeleteOngoing)).To(Succeed())
	g.Expect(registry.Schedule(t.Context(), w.registry.Records, queue, r, fair.Key{})).To(Succeed())
	g.Expect(w.registry.Records.Get(t.Context(), r.ID)).To(HaveField("Status", record.DeleteOngoing))
}

func TestLeftovers_deletesRepositoriesOfProjectsThatAreGone(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	kept, gone := w.repository(t, "web"), w.leftover(t, 20, "former")
	queue := deletions(w.db, w.registry)
	sweeper := w.sweeper(registry.Leftovers(w.registry.Records, queue))
	for range 24 {
		g.Expect(sweeper.Look(t.Context())).To(Succeed())
		g.Expect(w.registry.Records.Get(t.Context(), gone.ID)).To(HaveField("Status", record.Status("")))
		w.clock.Step(time.Hour)
	}
	g.Expect(sweeper.Look(t.Context())).To(Succeed())
	g.Expect(w.registry.Records.Get(t.Context(), gone.ID)).To(HaveField("Status", record.DeleteScheduled))
	run(t, queue)
	g.Eventually(func() error {
		_, err := w.registry.Records.Get(t.Context(), gone.ID)
		return err
	}).WithTimeout(patience.Wait).WithPolling(20 * time.Millisecond).Should(MatchError(record.ErrNotFound))
	g.Expect(w.registry.Records.Get(t.Context(), kept.ID)).To(HaveField("Status", record.Status("")))
}

func TestCollect_passesRepositoryThatIsDeletedMeanwhile(t *testing.T) {
	for _, gone := range []bool{false, true} {
		t.Run(fmt.Sprintf("record gone: %t", gone), func(t *testing.T) {
			g, w := NewWithT(t), newWorld(t)
			deleted, kept := w.repository(t, "deleted"), w.repository(t, "kept")
			for _, r := range []string{"kept", "deleted"} {
				registrytest.Push(t, w.registry, "acme/app/"+r, "1.0", "{}")
			}
			w.clock.Step(48 * time.Hour)
			place, begun := "/docker/registry/v2/repositories/repositories/"+deleted.Place, false
			w.storage.Before(func(ctx context.Context, operation, path string) error {
				if begun || operation != "Stat" || !strings.HasPrefix(path, place+"/_manifests/revisions/") {
					return nil
				}
				begun = true
				if err := w.registry.Records.Removing(ctx, deleted.ID, record.DeleteOngoing); err != nil {
					return err
				}
				if err := w.storage.StorageDriver.Delete(ctx, place); err != nil || !gone {
					return err
				}
				return w.registry.Records.Remove(ctx, deleted.ID)
			})
			_, err := w.registry.Collect(t.Context(), registry.CollectOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(begun).To(BeTrue())
			w.complete(t, kept, "1.0")
		})
	}
}

// The directory of a file system can disappear while it is read. The error is then not the one of a missing directory.
func TestCollect_passesRepositoryWhoseDeletionBreaksRead(t *testing.T) {
	for _, deleting := range []bool{true, false} {
		t.Run(fmt.Sprintf("deleting: %t", deleting), func(t *testing.T) {
			g, w := NewWithT(t), newWorld(t)
			broken, kept := w.repository(t, "broken"), w.repository(t, "kept")
			for _, r := range []string{"kept", "broken"} {
				registrytest.Push(t, w.registry, "acme/app/"+r, "1.0", "{}")
			}
			w.clock.Step(48 * time.Hour)
			place := "/docker/registry/v2/repositories/repositories/" + broken.Place
			w.storage.Before(func(ctx context.Context, operation, path string) error {
				if operation != "List" || !strings.HasPrefix(path, place) {
					return nil
				}
				if deleting {
					if err := w.registry.Records.Removing(ctx, broken.ID, record.DeleteOngoing); err != nil {
						return err
					}
				}
				return errors.New("readdirent: no such file or directory")
			})
			_, err := w.registry.Collect(t.Context(), registry.CollectOptions{})
			if deleting {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring("readdirent")))
			}
			w.storage.Before(nil)
			w.complete(t, kept, "1.0")
			if !deleting {
				w.complete(t, broken, "1.0")
			}
		})
	}
}

// TestCollect_losesNothingWhenManifestIsRemovedMeanwhile removes each manifest of a repository at the moment at which a collection reads it.
func TestCollect_losesNothingWhenManifestIsRemovedMeanwhile(t *testing.T) {
	tags := []string{"a", "b", "c"}
	for n := range tags {
		t.Run(fmt.Sprintf("manifest %d", n), func(t *testing.T) {
			g, w := NewWithT(t), newWorld(t)
			r := w.repository(t, "")
			links := map[string]string{}
			for _, tag := range tags {
				d := registrytest.Push(t, w.registry, "acme/app", tag, fmt.Sprintf("{%q:1}", tag))
				links[fmt.Sprintf("/docker/registry/v2/repositories/repositories/%s/_manifests/revisions/sha256/%s/link", r.Place, d.Encoded())] = tag
			}
			w.clock.Step(48 * time.Hour)
			read, removed := 0, ""
			w.storage.Before(func(ctx context.Context, operation, path string) error {
				tag, ok := links[path]
				if !ok || operation != "Stat" || removed != "" {
					return nil
				}
				if read++; read <= n {
					return nil
				}
				removed = tag
				images, err := w.registry.Images(ctx, r)
				return errors.Join(err, w.storage.StorageDriver.Delete(ctx, path), images.Untag(ctx, tag))
			})
			_, err := w.registry.Collect(t.Context(), registry.CollectOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(removed).NotTo(BeEmpty())
			w.storage.Before(nil)
			for _, tag := range tags {
				if tag != removed {
					w.complete(t, r, tag)
				}
			}
		})
	}
}
