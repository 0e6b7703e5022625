package registry

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/opencontainers/go-digest"
)

const (
	// root is the directory of blobs and repositories of the library in a storage.
	root = "/docker/registry/v2"
	// repositories is the directory of the repositories of this registry.
	repositories = root + "/repositories/" + places + "/"
)

// data returns the file of the blob with a SHA-256.
func data(d digest.Digest) string {
	return fmt.Sprintf("%s/blobs/%s/%s/%s/data", root, d.Algorithm(), d.Encoded()[:2], d.Encoded())
}

// directory returns the directory of a repository.
func (i *Images) directory() string { return repositories + i.record.Place }

// uploads returns the directory of the unfinished uploads to a repository.
func (i *Images) uploads() string { return i.directory() + "/_uploads" }

// link returns the file that says that a repository has the manifest with a digest.
func (i *Images) link(d digest.Digest) string {
	return fmt.Sprintf("%s/_manifests/revisions/%s/%s/link", i.directory(), d.Algorithm(), d.Encoded())
}

// tag returns the directory of a tag of a repository, and tagLink the file that says which manifest the tag means.
func (i *Images) tag(name string) string     { return i.directory() + "/_manifests/tags/" + name }
func (i *Images) tagLink(name string) string { return i.tag(name) + "/current/link" }

// absent reports whether an error says that a file or directory of a storage does not exist.
func absent(err error) bool { return errors.As(err, new(driver.PathNotFoundError)) }

// payload returns the content of the manifest with a digest, past the library, which cannot read all of them; nil if the repository does not have
// the manifest.
func (i *Images) payload(ctx context.Context, d digest.Digest) ([]byte, error) {
	if !valid(d) {
		return nil, nil // the storage has no such manifests
	}
	d, err := i.canonical(ctx, d)
	if err != nil {
		return nil, err
	}
	_, err = i.registry.storage.Stat(ctx, i.link(d))
	var content []byte
	if err == nil {
		content, err = i.registry.storage.GetContent(ctx, data(d))
	}
	if absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the manifest %s of container repository %d: %w", d, i.record.ID, err)
	}
	return content, nil
}

// list returns the names in a directory of a storage; an empty list if the directory does not exist.
func list(ctx context.Context, in driver.StorageDriver, directory string) ([]string, error) {
	all, err := in.List(ctx, directory)
	if absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s in the storage of the registry: %w", directory, err)
	}
	for i, at := range all {
		all[i] = path.Base(at)
	}
	return all, nil
}
