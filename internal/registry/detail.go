package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/distribution/distribution/v3"
	"github.com/distribution/distribution/v3/manifest/manifestlist"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

const (
	// maxConfig is the largest configuration of an image that is read, in bytes.
	maxConfig = 4 << 20
	// maxChildren is the maximum number of images of an index that are read.
	maxChildren = 200
	// cachedBlobs is the maximum number of blobs of an image whose description is cached.
	cachedBlobs = 128
)

// Detail describes the image of a tag. It never changes for a digest in a repository that has all parts of the image.
type Detail struct {
	// Digest is the digest of the manifest.
	Digest digest.Digest
	// Revision is the digest of the configuration without its algorithm; that of the manifest for an index of several images.
	Revision string
	// Created is the time at which the image was made, by its configuration. An index has the time of its image for linux/amd64, or else of
	// its first image. It is nil for an image without a time, such as a signature.
	Created *time.Time
	// Size is the number of bytes of the configuration and the layers, those of all images of an index. It is nil for what has no layers.
	Size *int64

	// blobs are the manifest, the configuration and the layers, each once, and children the images of an index.
	blobs    map[sum]int64
	children []digest.Digest
	// partial says that the repository does not have all parts.
	partial bool
}

// sum is a digest without its algorithm, as manifests name a content.
type sum string

func sumOf(d digest.Digest) sum { return sum(d.Encoded()) }

// plus adds two sizes that clients have claimed.
func plus(a, b int64) int64 {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + max(b, 0)
}

func total(sizes map[sum]int64) (all int64) {
	for _, size := range sizes {
		all = plus(all, size)
	}
	return all
}

// inRepository is a digest in a repository.
type inRepository struct {
	repository int64
	digest     digest.Digest
}

// Detail describes the image of a tag. The error is ErrNoTag if the tag does not exist, or its manifest is gone.
func (i *Images) Detail(ctx context.Context, tag string) (*Detail, error) {
	d, err := i.Digest(ctx, tag)
	if err != nil {
		return nil, err
	}
	return i.detail(ctx, d)
}

// detail describes the image with a digest. It asks the storage only the first time.
func (i *Images) detail(ctx context.Context, d digest.Digest) (*Detail, error) {
	key := inRepository{i.record.ID, d}
	if known, ok := i.registry.details.Get(key); ok {
		return known.(*Detail), nil
	}
	found, err := i.read(ctx, d)
	if err != nil {
		return nil, err
	}
	if !found.partial && len(found.blobs)+len(found.children) <= cachedBlobs {
		i.registry.details.Add(key, found)
	}
	return found, nil
}

func (i *Images) read(ctx context.Context, d digest.Digest) (*Detail, error) {
	payload, err := i.payload(ctx, d)
	if err != nil {
		return nil, err
	}
	if payload == nil {
		return nil, ErrNoTag
	}
	found := &Detail{Digest: d, Revision: d.Encoded(), blobs: map[sum]int64{sumOf(d): int64(len(payload))}}
	c, err := parse(payload)
	if err != nil {
		return found, nil //nolint:nilerr // clients cannot push it, and it has nothing to describe
	}
	switch {
	case len(c.Manifests) > 0:
		return found, i.readChildren(ctx, found, c.Manifests)
	case c.Config == nil || !valid(c.Config.Digest):
		return found, nil
	default:
		return found, i.readConfig(ctx, found, c)
	}
}

// readConfig adds what the configuration and the layers of an image say.
func (i *Images) readConfig(ctx context.Context, found *Detail, c content) error {
	found.Revision = c.Config.Digest.Encoded()
	var size int64
	for _, part := range c.references() {
		if !valid(part.Digest) {
			continue // clients cannot push it
		}
		size = plus(size, part.Size)
		found.blobs[sumOf(part.Digest)] = part.Size
	}
	found.Size = &size
	found.Created = timeOf(c.Annotations[v1.AnnotationCreated])
	blobs := i.inner.Blobs(ctx)
	stored, err := blobs.Stat(ctx, c.Config.Digest)
	if errors.Is(err, distribution.ErrBlobUnknown) {
		found.partial = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the configuration %s of container repository %d: %w", c.Config.Digest, i.record.ID, err)
	}
	if stored.Size > maxConfig {
		return nil
	}
	content, err := blobs.Get(ctx, c.Config.Digest)
	if err != nil {
		return fmt.Errorf("reading the configuration %s of container repository %d: %w", c.Config.Digest, i.record.ID, err)
	}
	var config struct {
		Created string `json:"created"`
	}
	// The configuration of an artifact need not be JSON.
	if json.Unmarshal(content, &config) == nil {
		if created := timeOf(config.Created); created != nil {
			found.Created = created
		}
	}
	return nil
}

// readChildren adds what the images of an index say.
func (i *Images) readChildren(ctx context.Context, found *Detail, children []v1.Descriptor) error {
	if preferred := slices.IndexFunc(children, usual); preferred > 0 {
		children = slices.Insert(slices.Delete(slices.Clone(children), preferred, preferred+1), 0, children[preferred])
	}
	sizes := map[sum]int64{}
	for _, c := range children[:min(len(children), maxChildren)] {
		if c.MediaType == v1.MediaTypeImageIndex || c.MediaType == manifestlist.MediaTypeManifestList || slices.Contains(found.children, c.Digest) {
			continue // an index of indexes could have any number of images
		}
		child, err := i.detail(ctx, c.Digest)
		if errors.Is(err, ErrNoTag) {
			found.partial = true // an index may have images that are elsewhere
			continue
		}
		if err != nil {
			return err
		}
		if found.Created == nil {
			found.Created = child.Created
		}
		found.partial = found.partial || child.partial
		found.children = append(found.children, c.Digest)
		for b, size := range child.blobs {
			if b != sumOf(child.Digest) {
				sizes[b] = size
			}
		}
	}
	if len(sizes) > 0 {
		size := total(sizes)
		found.Size = &size
	}
	return nil
}

// addSizes adds the sizes of everything that belongs to an image.
func (i *Images) addSizes(ctx context.Context, sizes map[sum]int64, d *Detail) error {
	for b, size := range d.blobs {
		sizes[b] = size
	}
	for _, c := range d.children {
		child, err := i.detail(ctx, c)
		if errors.Is(err, ErrNoTag) {
			continue // it has just gone
		}
		if err != nil {
			return err
		}
		for b, size := range child.blobs {
			sizes[b] = size
		}
	}
	return nil
}

func usual(d v1.Descriptor) bool {
	return d.Platform != nil && d.Platform.OS == "linux" && d.Platform.Architecture == "amd64"
}

// timeOf parses a time of an image. It is nil for an empty or malformed one, and for the zero time, which the tools of Go write for an unknown one.
func timeOf(text string) *time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
