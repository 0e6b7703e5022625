// Package registrytest makes registries with images for tests.
package registrytest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/distribution/distribution/v3"
	"github.com/distribution/distribution/v3/manifest/schema2"
	"github.com/distribution/distribution/v3/registry/storage"
	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/record"
)

// Shared is the content of a layer that all images have.
var Shared = strings.Repeat("a", 100)

// New returns a registry in a directory, with its records in a database that was opened with record.Migrations.
func New(t testing.TB, cat *catalog.Catalog, db *database.DB, c clock.PassiveClock) *registry.Registry {
	t.Helper()
	directory, err := registry.OpenDirectory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return NewIn(t, directory, cat, db, c)
}

// NewIn is New for a registry in a storage, which several registries can share.
func NewIn(t testing.TB, in driver.StorageDriver, cat *catalog.Catalog, db *database.DB, c clock.PassiveClock) *registry.Registry {
	t.Helper()
	r, err := registry.New(t.Context(), in, record.New(db, c), registry.NewNames(cat), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Files returns the files, by their paths in the storage, of images with tags in a repository, as pushes would leave them. The images have the given
// configurations and no layers. Writing them is far faster than Push.
func Files(of record.Repository, configs map[string]string) map[string]string {
	files := map[string]string{}
	const root = "/docker/registry/v2"
	blob := func(content string) digest.Digest {
		d := digest.FromString(content)
		files[fmt.Sprintf("%s/blobs/sha256/%s/%s/data", root, d.Encoded()[:2], d.Encoded())] = content
		return d
	}
	in := fmt.Sprintf("%s/repositories/repositories/%s", root, of.Place)
	for tag, config := range configs {
		c := blob(config)
		files[fmt.Sprintf("%s/_layers/sha256/%s/link", in, c.Encoded())] = c.String()
		m := blob(fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":%q,"digest":%q,"size":%d},"layers":[]}`,
			schema2.MediaTypeManifest, schema2.MediaTypeImageConfig, c, len(config)))
		files[fmt.Sprintf("%s/_manifests/revisions/sha256/%s/link", in, m.Encoded())] = m.String()
		files[fmt.Sprintf("%s/_manifests/tags/%s/index/sha256/%s/link", in, tag, m.Encoded())] = m.String()
		files[fmt.Sprintf("%s/_manifests/tags/%s/current/link", in, tag)] = m.String()
	}
	return files
}

// Store writes Files into the storage of a registry.
func Store(t testing.TB, r *registry.Registry, of record.Repository, configs map[string]string) {
	t.Helper()
	for path, content := range Files(of, configs) {
		if err := r.Storage().PutContent(t.Context(), path, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
}

// Push pushes an image with a configuration and two layers, Shared and the tag, to a repository that is recorded. It returns the digest.
func Push(t testing.TB, r *registry.Registry, repository, tag, config string) digest.Digest {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	inner, err := storage.NewRegistry(t.Context(), r.Storage(), storage.EnableDelete)
	must(err)
	name, err := reference.WithName(repository)
	must(err)
	repo, err := r.Named(inner).Repository(t.Context(), name)
	must(err)
	put := func(mediaType, content string) v1.Descriptor {
		d, err := repo.Blobs(t.Context()).Put(t.Context(), mediaType, []byte(content))
		must(err)
		d.MediaType = mediaType
		return d
	}
	m, err := schema2.FromStruct(schema2.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: schema2.MediaTypeManifest, Config: put(schema2.MediaTypeImageConfig, config),
		Layers: []v1.Descriptor{put(schema2.MediaTypeLayer, Shared), put(schema2.MediaTypeLayer, tag)},
	})
	must(err)
	manifests, err := repo.Manifests(t.Context())
	must(err)
	d, err := manifests.Put(t.Context(), m, distribution.WithTag(tag))
	must(err)
	must(repo.Tags(t.Context()).Tag(t.Context(), tag, v1.Descriptor{Digest: d}))
	return d
}
