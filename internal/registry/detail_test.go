package registry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/distribution/distribution/v3"
	"github.com/distribution/distribution/v3/registry/storage"
	"github.com/distribution/reference"
	. "github.com/onsi/gomega"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/record"
)

// Media types of Docker.
const (
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	dockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
	dockerConfig   = "application/vnd.docker.container.image.v1+json"
	dockerLayer    = "application/vnd.docker.image.rootfs.diff.tar.gzip"
)

// pushed is a repository to which a test pushes manifests of all kinds.
type pushed struct {
	t      *testing.T
	record record.Repository
	w      *world
	inner  distribution.Repository
}

func (w *world) pushed(t *testing.T, name string) *pushed {
	t.Helper()
	r := w.repository(t, name)
	inner, err := storage.NewRegistry(t.Context(), w.storage, storage.EnableDelete)
	must(t, err)
	named, err := reference.WithName(registry.PathOf("acme/app", name))
	must(t, err)
	repository, err := w.registry.Named(inner).Repository(t.Context(), named)
	must(t, err)
	return &pushed{t, r, w, repository}
}

func (p *pushed) blob(mediaType, content string) v1.Descriptor {
	p.t.Helper()
	d, err := p.inner.Blobs(p.t.Context()).Put(p.t.Context(), mediaType, []byte(content))
	must(p.t, err)
	d.MediaType = mediaType
	return d
}

// manifest pushes a manifest or an index with a tag.
func (p *pushed) manifest(tag, mediaType string, content map[string]any) v1.Descriptor {
	p.t.Helper()
	content["schemaVersion"], content["mediaType"] = 2, mediaType
	text, err := json.Marshal(content)
	must(p.t, err)
	m, d, err := distribution.UnmarshalManifest(mediaType, text)
	must(p.t, err)
	manifests, err := p.inner.Manifests(p.t.Context())
	must(p.t, err)
	_, err = manifests.Put(p.t.Context(), m)
	must(p.t, err)
	d.MediaType = mediaType
	if tag != "" {
		must(p.t, p.inner.Tags(p.t.Context()).Tag(p.t.Context(), tag, d))
	}
	return d
}

// image pushes an image with two layers. All images share one of the layers.
func (p *pushed) image(tag, mediaType, configType, layerType, config string) v1.Descriptor {
	p.t.Helper()
	return p.manifest(tag, mediaType, map[string]any{
		"config": p.blob(configType, config), "layers": []v1.Descriptor{p.blob(layerType, "common"), p.blob(layerType, "of "+config)},
	})
}

func (p *pushed) detail(tag string) *registry.Detail {
	p.t.Helper()
	images, err := p.w.registry.Images(p.t.Context(), p.record)
	must(p.t, err)
	d, err := images.Detail(p.t.Context(), tag)
	must(p.t, err)
	return d
}

// madeAt is the configuration of an image that was made in a year.
func madeAt(year int) string { return fmt.Sprintf(`{"created":"%d-01-02T03:04:05+01:00"}`, year) }

func TestDetail_readsEachImageOnce(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	p := w.pushed(t, "web")
	for _, tag := range []string{"one", "two"} {
		p.image(tag, v1.MediaTypeImageManifest, v1.MediaTypeImageConfig, v1.MediaTypeImageLayerGzip, madeAt(2020))
	}
	first := p.detail("one")
	w.failAt("/blobs/")
	g.Expect(p.detail("one")).To(Equal(first))
	g.Expect(p.detail("two")).To(Equal(first))
}

func TestDetail_describesEachKindOfManifest(t *testing.T) {
	at := func(year int) *time.Time {
		t := time.Date(year, 1, 2, 2, 4, 5, 0, time.UTC)
		return &t
	}
	bytes := func(n int) *int64 { size := int64(n); return &size }
	const common, empty, madeNever = len("common"), "{}", `{"created":"0001-01-01T00:00:00Z"}`
	one := len(madeAt(2020)) + common + len("of "+madeAt(2020))
	revision := func(content string) string { return digest.FromString(content).Encoded() }
	platform := func(d v1.Descriptor, os, architecture string) v1.Descriptor {
		d.Platform = &v1.Platform{OS: os, Architecture: architecture}
		return d
	}
	oci := func(p *pushed, year int) v1.Descriptor {
		return p.image("", v1.MediaTypeImageManifest, v1.MediaTypeImageConfig, v1.MediaTypeImageLayerGzip, madeAt(year))
	}
	docker := func(p *pushed, year int) v1.Descriptor {
		return p.image("", dockerManifest, dockerConfig, dockerLayer, madeAt(year))
	}
	index := func(p *pushed, of ...v1.Descriptor) v1.Descriptor {
		return p.manifest("tag", v1.MediaTypeImageIndex, map[string]any{"manifests": append([]v1.Descriptor{}, of...)})
	}
	type want struct {
		// revision is empty for the digest of the manifest itself.
		revision string
		created  *time.Time
		size     *int64
	}
	for name, c := range map[string]struct {
		push func(p *pushed) v1.Descriptor
		want want
	}{
		"OCI image": {func(p *pushed) v1.Descriptor {
			return p.image("tag", v1.MediaTypeImageManifest, v1.MediaTypeImageConfig, v1.MediaTypeImageLayerGzip, madeAt(2020))
		}, want{revision(madeAt(2020)), at(2020), bytes(one)}},
		"Docker image": {func(p *pushed) v1.Descriptor {
			return p.image("tag", dockerManifest, dockerConfig, dockerLayer, madeAt(2020))
		},
			want{revision(madeAt(2020)), at(2020), bytes(one)}},
		"OCI index with linux/amd64 in the middle": {func(p *pushed) v1.Descriptor {
			return index(p, platform(oci(p, 2020), "linux", "arm64"), platform(oci(p, 2021), "linux", "amd64"), platform(oci(p, 2022), "windows", "amd64"))
		}, want{"", at(2021), bytes(3*one - 2*common)}},
		"OCI index without linux/amd64": {func(p *pushed) v1.Descriptor {
			return index(p, platform(oci(p, 2020), "linux", "arm64"), platform(oci(p, 2021), "linux", "s390x"))
		}, want{"", at(2020), bytes(2*one - common)}},
		"Docker list": {func(p *pushed) v1.Descriptor {
			return p.manifest("tag", dockerList, map[string]any{"manifests": []v1.Descriptor{platform(docker(p, 2020), "linux", "arm64"), platform(docker(p, 2021), "linux", "amd64")}})
		}, want{"", at(2021), bytes(2*one - common)}},
		"index without images": {func(p *pushed) v1.Descriptor { return index(p) }, want{"", nil, nil}},
		"index of an index": {func(p *pushed) v1.Descriptor {
			return index(p, p.manifest("", v1.MediaTypeImageIndex, map[string]any{"manifests": []v1.Descriptor{oci(p, 2020)}}))
		}, want{"", nil, nil}},
		"signature": {func(p *pushed) v1.Descriptor {
			return p.manifest("tag", v1.MediaTypeImageManifest, map[string]any{
				"config": p.blob(v1.MediaTypeImageConfig, empty), "layers": []v1.Descriptor{p.blob("application/vnd.dev.cosign.simplesigning.v1+json", "signed")},
			})
		}, want{revision(empty), nil, bytes(len(empty) + len("signed"))}},
		"artifact with an annotated time": {func(p *pushed) v1.Descriptor {
			return p.manifest("tag", v1.MediaTypeImageManifest, map[string]any{
				"artifactType": "application/vnd.example", "config": p.blob(v1.MediaTypeEmptyJSON, empty), "layers": []v1.Descriptor{p.blob(v1.MediaTypeEmptyJSON, empty)},
				"annotations": map[string]string{v1.AnnotationCreated: at(2023).Format(time.RFC3339)},
			})
		}, want{revision(empty), at(2023), bytes(2 * len(empty))}},
		"image with the zero time and an annotated one": {func(p *pushed) v1.Descriptor {
			return p.manifest("tag", v1.MediaTypeImageManifest, map[string]any{
				"config": p.blob(v1.MediaTypeImageConfig, madeNever), "layers": []v1.Descriptor{}, "annotations": map[string]string{v1.AnnotationCreated: at(2023).Format(time.RFC3339)},
			})
		}, want{revision(madeNever), at(2023), bytes(len(madeNever))}},
		"artifact whose configuration is not JSON": {func(p *pushed) v1.Descriptor {
			return p.manifest("tag", v1.MediaTypeImageManifest, map[string]any{"config": p.blob("application/vnd.example", "\x00\x01"), "layers": []v1.Descriptor{p.blob("text/plain", "text")}})
		}, want{revision("\x00\x01"), nil, bytes(2 + len("text"))}},
		"image with a malformed time": {func(p *pushed) v1.Descriptor {
			return p.image("tag", v1.MediaTypeImageManifest, v1.MediaTypeImageConfig, v1.MediaTypeImageLayerGzip, `{"created":"yesterday"}`)
		}, want{revision(`{"created":"yesterday"}`), nil, bytes(len(`{"created":"yesterday"}`) + common + len(`of {"created":"yesterday"}`))}},
	} {
		t.Run(name, func(t *testing.T) {
			g, w := NewWithT(t), newWorld(t)
			p := w.pushed(t, "web")
			d := c.push(p)
			if c.want.revision == "" {
				c.want.revision = d.Digest.Encoded()
			}
			for range 2 {
				got := p.detail("tag")
				g.Expect(got.Digest).To(Equal(d.Digest))
				g.Expect(want{got.Revision, got.Created, got.Size}).To(Equal(c.want))
				w.storage.Before(func(_ context.Context, operation, path string) error {
					if strings.Contains(path, "/blobs/") {
						return fmt.Errorf("%s of %s, although the detail is in memory", operation, path)
					}
					return nil
				})
			}
		})
	}
}

func TestDetail_leavesOutImagesOfIndexThatAreElsewhere(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	p := w.pushed(t, "web")
	kept, gone := p.image("", dockerManifest, dockerConfig, dockerLayer, madeAt(2020)), p.image("", dockerManifest, dockerConfig, dockerLayer, madeAt(2021))
	p.manifest("tag", v1.MediaTypeImageIndex, map[string]any{"manifests": []v1.Descriptor{gone, kept}})
	manifests, err := p.inner.Manifests(t.Context())
	must(t, err)
	must(t, manifests.Delete(t.Context(), gone.Digest))
	w.next(t)
	d := p.detail("tag")
	g.Expect(d.Created.Year()).To(Equal(2020))
	g.Expect(*d.Size).To(BeEquivalentTo(2*len(madeAt(2020)) + len("common") + len("of ")))
}

func TestSize_countsWhatImagesShareOnce(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	p := w.pushed(t, "web")
	size := func() int64 {
		images, err := w.registry.Images(t.Context(), p.record)
		must(t, err)
		size, err := images.Size(t.Context())
		must(t, err)
		return size
	}
	change := func() { w.clock.Step(time.Minute) } // lists of tags are remembered
	g.Expect(size()).To(BeZero())
	first := p.image("first", v1.MediaTypeImageManifest, v1.MediaTypeImageConfig, v1.MediaTypeImageLayerGzip, madeAt(2020))
	change()
	blobs := int64(len(madeAt(2020)) + len("of "+madeAt(2020)))
	g.Expect(size()).To(Equal(first.Size + blobs + int64(len("common"))))
	must(t, p.inner.Tags(t.Context()).Tag(t.Context(), "same", first))
	second := p.image("second", v1.MediaTypeImageManifest, v1.MediaTypeImageConfig, v1.MediaTypeImageLayerGzip, madeAt(2021))
	index := p.manifest("index", v1.MediaTypeImageIndex, map[string]any{"manifests": []v1.Descriptor{first, second}})
	change()
	g.Expect(size()).To(Equal(first.Size + second.Size + index.Size + 2*blobs + int64(len("common"))))
}
