package registry

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/distribution/distribution/v3"
	"github.com/opencontainers/go-digest"

	"github.com/forgeplane/forgeplane/internal/registry/record"
)

// The storage has every content by its SHA-256. Clients can name contents by their SHA-512 too. Then a file in the repository, the alias, says
// which SHA-256 the content has. The library writes the aliases of blobs, and this package those of manifests.

// valid reports whether a digest is one that clients can name contents with.
func valid(d digest.Digest) bool {
	return d.Validate() == nil && (d.Algorithm() == digest.Canonical || d.Algorithm() == digest.SHA512)
}

// layerLink returns the file that says that a repository has the blob with a digest.
func (i *Images) layerLink(d digest.Digest) string {
	return fmt.Sprintf("%s/_layers/%s/%s/link", i.directory(), d.Algorithm(), d.Encoded())
}

// canonical returns the SHA-256 of the content that has a digest in the repository; the digest itself if the repository does not know it.
func (i *Images) canonical(ctx context.Context, d digest.Digest) (digest.Digest, error) {
	if !valid(d) || d.Algorithm() == digest.Canonical {
		return d, nil
	}
	for _, alias := range []string{i.link(d), i.layerLink(d)} {
		means, err := i.registry.readLink(ctx, alias)
		if err != nil {
			return "", fmt.Errorf("looking for %s in container repository %d: %w", d, i.record.ID, err)
		}
		if means != "" {
			return means, nil
		}
	}
	return d, nil
}

// readLink returns the digest in a file of the storage, or an empty one if the file does not exist.
func (r *Registry) readLink(ctx context.Context, at string) (digest.Digest, error) {
	text, err := r.storage.GetContent(ctx, at)
	if absent(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	d, err := digest.Parse(string(text))
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", at, err)
	}
	return d, nil
}

// need records that a client needs contents of the repository, as Registry.need does.
func (i *Images) need(ctx context.Context, digests ...digest.Digest) error {
	all := slices.Clip(digests)
	for _, d := range digests {
		means, err := i.canonical(ctx, d)
		if err != nil {
			return err
		}
		if means != d {
			all = append(all, means)
		}
	}
	return i.registry.need(ctx, all...)
}

// aliasKey is the context key of the alias of a manifest.
type aliasKey struct{}

// WithAlias returns a context in which a manifest that is stored can be pulled by another digest as well. The caller must have checked that it is
// one of the manifest.
func WithAlias(ctx context.Context, d digest.Digest) context.Context {
	return context.WithValue(ctx, aliasKey{}, d)
}

// alias writes the alias of a manifest, if there is one in the context.
func (i *Images) alias(ctx context.Context, of digest.Digest) error {
	d, ok := ctx.Value(aliasKey{}).(digest.Digest)
	if !ok {
		return nil
	}
	if err := i.registry.need(ctx, d); err != nil {
		return err
	}
	if err := i.registry.storage.PutContent(ctx, i.link(d), []byte(of)); err != nil {
		return fmt.Errorf("writing the alias %s of a manifest of container repository %d: %w", d, i.record.ID, err)
	}
	return nil
}

// deleteManifest deletes a manifest and its alias, if there is one. The library would follow an alias although its manifest is gone, so the alias
// goes first.
func (i *Images) deleteManifest(ctx context.Context, manifests distribution.ManifestService, d digest.Digest) error {
	payload, err := i.payload(ctx, d)
	if err != nil {
		return err
	}
	at := path.Dir(i.link(digest.SHA512.FromBytes(payload)))
	if err := i.registry.storage.Delete(ctx, at); err != nil && !absent(err) {
		return fmt.Errorf("removing the alias of a manifest of container repository %d: %w", i.record.ID, err)
	}
	return manifests.Delete(ctx, d)
}

// committed makes a blob stay whose SHA-256 was not known before it was stored. A garbage collection that has been removing the same content
// meanwhile may have removed it.
func (i *Images) committed(ctx context.Context, d digest.Digest) error {
	if err := i.registry.need(ctx, d); err != nil {
		return unavailable(ctx, err)
	}
	switch _, err := i.registry.storage.Stat(ctx, data(d)); {
	case absent(err):
		return unavailable(ctx, record.ErrSweeping)
	case err != nil:
		return err
	default:
		return nil
	}
}
