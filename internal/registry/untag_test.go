package registry_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/record"
	"github.com/forgeplane/forgeplane/internal/registry/registrytest"
)

// interrupted returns a repository with the tags 1.0 and 2.0. The process that removed the tag 1.0 was killed in the middle of that.
func (w *world) interrupted(t *testing.T) record.Repository {
	t.Helper()
	r := w.repository(t, "web")
	for _, tag := range []string{"1.0", "2.0"} {
		registrytest.Push(t, w.registry, "acme/app/web", tag, "{}")
	}
	must(t, os.RemoveAll(filepath.Join(w.images, "docker/registry/v2/repositories/repositories", r.Place, "_manifests/tags/1.0/current")))
	return r
}

// age makes all files of a repository some minutes old.
func (w *world) age(t *testing.T, r record.Repository) {
	t.Helper()
	registrytest.Age(t, filepath.Join(w.images, "docker/registry/v2/repositories/repositories", r.Place), 2*time.Minute)
}

// read returns the images of a repository as it is now.
func (w *world) read(t *testing.T, r record.Repository) *registry.Images {
	t.Helper()
	now, err := w.registry.Records.Get(t.Context(), r.ID)
	must(t, err)
	images, err := w.registry.Images(t.Context(), now)
	must(t, err)
	return images
}

func TestUntag_removesRestOfTag(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	r := w.interrupted(t)
	g.Expect(w.read(t, r).Tags(t.Context())).To(Equal([]string{"1.0", "2.0"}))
	g.Expect(w.read(t, r).Untag(t.Context(), "1.0")).To(MatchError(registry.ErrNoTag), "it may be a push that is not complete")
	w.age(t, r)
	g.Expect(w.read(t, r).Untag(t.Context(), "1.0")).To(Succeed())
	g.Expect(w.read(t, r).Tags(t.Context())).To(Equal([]string{"2.0"}))
	g.Expect(w.read(t, r).Untag(t.Context(), "1.0")).To(MatchError(registry.ErrNoTag))
	g.Expect(w.read(t, r).Untag(t.Context(), "..")).To(MatchError(registry.ErrNoTag))
}

func TestRemoveRest_leavesTags(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	r := w.interrupted(t)
	w.age(t, r)
	for tag, want := range map[string]bool{"2.0": false, "3.0": false, "1.0": true} {
		removed, err := w.read(t, r).RemoveRest(t.Context(), tag)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(removed).To(Equal(want), tag)
	}
	g.Expect(w.read(t, r).Tags(t.Context())).To(Equal([]string{"2.0"}))
}

func TestCollect_removesRestsOfTags(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	r := w.interrupted(t)
	_, err := w.registry.Collect(t.Context(), registry.CollectOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(w.read(t, r).Tags(t.Context())).To(Equal([]string{"1.0", "2.0"}))
	w.clock.Step(48 * time.Hour)
	_, err = w.registry.Collect(t.Context(), registry.CollectOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(w.read(t, r).Tags(t.Context())).To(Equal([]string{"1.0", "2.0"}), "it may be a push that is not complete")
	w.age(t, r)
	_, err = w.registry.Collect(t.Context(), registry.CollectOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(w.read(t, r).Tags(t.Context())).To(Equal([]string{"2.0"}))
}
