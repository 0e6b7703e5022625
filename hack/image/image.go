package main

import (
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1" // images without an engine
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/forgeplane/forgeplane/hack/version"
)

// newImage returns the image of an architecture: a layer of the base, and above it a layer of the programs, which changes more often.
func newImage(b *base, programs map[string][]byte, architecture string, v version.Version) (v1.Image, error) {
	added := tree{}
	for name, content := range programs {
		added["usr/bin/"+name] = file(0o755, content)
	}
	created := v1.Time{Time: v.Date}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, part := range []struct {
		files tree
		by    string
	}{{b.files, "packages"}, {added, "forgeplane"}} {
		layer, err := part.files.layer()
		if err != nil {
			return nil, fmt.Errorf("writing the layer of %s: %w", part.by, err)
		}
		image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: created, CreatedBy: "make image", Comment: part.by}})
		if err != nil {
			return nil, err
		}
	}
	configuration, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	configuration = configuration.DeepCopy()
	configuration.OS, configuration.Architecture, configuration.Created = "linux", architecture, created
	configuration.Config = v1.Config{
		User: fmt.Sprintf("%[1]d:%[1]d", user), Entrypoint: []string{"forgeplane"}, WorkingDir: "/",
		Env: []string{"PATH=/usr/bin"}, Labels: labels(v),
	}
	return mutate.ConfigFile(image, configuration)
}

func labels(v version.Version) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "Forgeplane",
		"org.opencontainers.image.description": "A software forge whose settings are Kubernetes custom resources",
		"org.opencontainers.image.version":     v.Number,
		"org.opencontainers.image.revision":    v.Commit,
		"org.opencontainers.image.created":     v.Date.Format("2006-01-02T15:04:05Z07:00"),
		"org.opencontainers.image.licenses":    "Apache-2.0",
	}
}

// newIndex returns the index of the images, by architecture.
func newIndex(architectures []string, images map[string]v1.Image) v1.ImageIndex {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, architecture := range architectures {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: images[architecture], Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
	}
	return index
}

// save writes an index, with a tag, into a directory in the OCI layout. It replaces what an earlier build has written there.
func save(index v1.ImageIndex, tag, directory string) error {
	if err := os.RemoveAll(filepath.Join(directory, "blobs")); err != nil {
		return err
	}
	path, err := layout.Write(directory, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return err
	}
	return path.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag}))
}
