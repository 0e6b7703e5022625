package cleanup_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/cleanup"
	"github.com/forgeplane/forgeplane/internal/registry/registrytest"
	"github.com/forgeplane/forgeplane/test/tools"
)

func TestClean_countsRepositoriesThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	w.store(w.root, numbered(3))
	w.store(w.web, numbered(4))
	all := cleanup.Run{ID: "a", Policy: policy(t, ".*", "", 0, "")}
	w.storage.unreadable.Store(&w.web.Place)
	p, err := w.clean(w.process(), all)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(p.Failure).To(MatchError(errFaulty))
	w.Expect(p).To(And(HaveField("Unreadable", int64(1)), HaveField("Deleted", int64(3))))
	w.storage.down.Store(true)
	_, err = w.clean(w.process(), all)
	w.Expect(err).To(MatchError(errFaulty), "nothing can be read")
	w.storage.down.Store(false)
	w.storage.unreadable.Store(nil)
	p, err = w.clean(w.process(), all)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(p).To(Equal(cleanup.Progress{Repositories: 2, Selected: 7, Deleted: 7, Removed: 4}))
}

func TestClean_countsFailedTagsOfDryRunOnce(t *testing.T) {
	w := newWorld(t)
	w.store(w.web, numbered(10))
	bad := "tags/v0007"
	w.storage.unreadable.Store(&bad)
	dry := w.run(".*", 3)
	dry.DryRun = true
	p, err := w.clean(w.process(), dry)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(p).To(And(HaveField("Selected", int64(6)), HaveField("Kept", int64(3)), HaveField("Failed", int64(1))))
}

func TestClean_removesRestsOfTags(t *testing.T) {
	images := t.TempDir()
	directory, err := registry.OpenDirectory(images)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	w := newWorldIn(t, directory)
	w.store(w.web, numbered(3))
	w.Expect(os.RemoveAll(filepath.Join(images, "docker/registry/v2/repositories/repositories", w.web.Place, "_manifests/tags/v0001/current"))).To(Succeed())
	w.clock.SetTime(w.clock.Now().Add(time.Hour))
	registrytest.Age(t, filepath.Join(images, "docker/registry/v2/repositories/repositories", w.web.Place, "_manifests/tags/v0001"), 2*time.Minute)
	p, err := w.clean(w.process(), w.run(".*", 1))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(p).To(Equal(cleanup.Progress{Repositories: 1, Selected: 1, Deleted: 1, Kept: 1, Removed: 1}))
	w.Expect(w.tags(w.web)).To(Equal([]string{"v0002"}))
}

func TestClean_worksInObjectStore(t *testing.T) {
	s3, err := registry.OpenConfigured(t.Context(), tools.StartS3(t).Storage())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	w := newWorldIn(t, s3)
	w.store(w.web, numbered(12))
	p, err := w.clean(w.process(), w.run(".*", 2))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(p).To(Equal(cleanup.Progress{Repositories: 1, Selected: 10, Deleted: 10, Kept: 2, Removed: 10}))
	w.Expect(w.tags(w.web)).To(Equal([]string{"v0010", "v0011"}))

	// The clock of the object store is two seconds behind.
	w.clock.SetTime(time.Now().Add(2 * time.Second))
	w.store(w.root, numbered(1))
	p, err = w.clean(w.process(), cleanup.Run{ID: "b", Repository: cleanup.Root, Policy: policy(t, ".*", "", 0, "")})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(p).To(Equal(cleanup.Progress{Repositories: 1, Selected: 1, Kept: 1}), "the tag may have been pushed during the run")
}
