package registry_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/record"
	"github.com/forgeplane/forgeplane/test/patience"
	"github.com/forgeplane/forgeplane/test/tools"
)

func TestS3_hasImages(t *testing.T) {
	g := NewWithT(t)
	s3, err := registry.OpenConfigured(t.Context(), tools.StartS3(t).Storage())
	g.Expect(err).NotTo(HaveOccurred())
	w := newWorldIn(t, s3)
	g.Expect(w.registry.Check(t.Context())).To(Succeed())
	kept, deleted := w.pushed(t, "kept"), w.pushed(t, "deleted")
	push := func(p *pushed, tag string, year int) v1.Descriptor {
		return p.image(tag, v1.MediaTypeImageManifest, v1.MediaTypeImageConfig, v1.MediaTypeImageLayerGzip, madeAt(year))
	}
	push(kept, "2020", 2020)
	push(kept, "untagged", 2021)
	push(deleted, "2022", 2022)
	g.Expect(kept.detail("2020").Created.Year()).To(Equal(2020))
	images, err := w.registry.Images(t.Context(), kept.record)
	must(t, err)
	g.Expect(images.Tags(t.Context())).To(Equal([]string{"2020", "untagged"}))
	must(t, images.Untag(t.Context(), "untagged"))
	w.complete(t, kept.record, "2020")

	queue := deletions(w.db, w.registry)
	must(t, registry.Schedule(t.Context(), w.registry.Records, queue, deleted.record, fair.Key{}))
	run(t, queue)
	g.Eventually(func() error {
		_, err := w.registry.Records.Get(t.Context(), deleted.record.ID)
		return err
	}).WithTimeout(patience.Wait).WithPolling(20 * time.Millisecond).Should(MatchError(record.ErrNotFound))
	g.Expect(w.stored(t)).To(ConsistOf(HaveSuffix(kept.record.Place)))

	g.Expect(w.registry.Collect(t.Context(), registry.CollectOptions{})).To(Equal(registry.Collected{}), "everything is new")
	w.clock.Step(48 * time.Hour)
	collected, err := w.registry.Collect(t.Context(), registry.CollectOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(collected).To(And(HaveField("Manifests", 1), HaveField("Blobs", 6)), "a manifest, a configuration and a layer of each of two images")
	w.complete(t, kept.record, "2020")
	push(kept, "2021", 2021)
	w.complete(t, kept.record, "2021")
}
