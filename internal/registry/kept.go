package registry

import (
	"context"
	"errors"
	"slices"

	"github.com/distribution/distribution/v3"
	"github.com/opencontainers/go-digest"
)

// kept has the contents of a repository that a garbage collection keeps.
type kept struct {
	of *Images
	// references are all manifests of the repository, with what belongs to them, by SHA-256, and referrers the manifests by their subjects, as they name them.
	references map[digest.Digest][]digest.Digest
	referrers  map[digest.Digest][]digest.Digest
	// alias has the SHA-512 of the manifests.
	alias map[digest.Digest]digest.Digest
	// needed are the digests of the kept manifests, and of what belongs to them.
	needed map[digest.Digest]struct{}
	// tags are the manifests of the tags, and rests the tags without a digest.
	tags  map[string]digest.Digest
	rests []string
}

func newKept(of *Images) *kept {
	return &kept{
		of: of, references: map[digest.Digest][]digest.Digest{}, referrers: map[digest.Digest][]digest.Digest{},
		alias: map[digest.Digest]digest.Digest{}, needed: map[digest.Digest]struct{}{}, tags: map[string]digest.Digest{},
	}
}

// read reads all manifests. Clients can add and delete some meanwhile.
func (k *kept) read(ctx context.Context) error {
	revisions := k.of.directory() + "/_manifests/revisions/" + string(digest.SHA256)
	all, err := list(ctx, k.of.registry.storage, revisions)
	if err != nil {
		return err
	}
	for _, name := range all {
		if err := k.readManifest(ctx, digest.NewDigestFromEncoded(digest.SHA256, name)); err != nil {
			return err
		}
	}
	return nil
}

// readManifest reads a manifest, unless it does not exist.
func (k *kept) readManifest(ctx context.Context, d digest.Digest) error {
	payload, err := k.of.payload(ctx, d)
	if err != nil {
		return err
	}
	if payload == nil {
		return nil // it was deleted just now, or a deletion did not come to its end
	}
	references, subject := digestsIn(payload)
	for n, r := range references {
		if references[n], err = k.of.canonical(ctx, r); err != nil {
			return err
		}
	}
	k.references[d] = references
	k.alias[d] = digest.SHA512.FromBytes(payload)
	if subject != "" {
		k.referrers[subject] = append(k.referrers[subject], d)
	}
	return nil
}

// keep keeps a manifest with everything that belongs to it, and with the manifests that refer to it, such as signatures.
func (k *kept) keep(d digest.Digest) {
	for waiting := []digest.Digest{d}; len(waiting) > 0; {
		next := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		if _, known := k.needed[next]; known {
			continue
		}
		k.needed[next] = struct{}{}
		waiting = append(append(waiting, k.references[next]...), k.referring(next)...)
	}
}

// referring returns the manifests that refer to one, by any of its digests.
func (k *kept) referring(d digest.Digest) []digest.Digest {
	return slices.Concat(k.referrers[d], k.referrers[k.alias[d]])
}

// needs reports whether a digest is kept.
func (k *kept) needs(d digest.Digest) bool {
	_, ok := k.needed[d]
	return ok
}

// unneeded returns the manifests that are not kept, each before what belongs to it and before those that refer to it.
func (k *kept) unneeded() []digest.Digest {
	var last []digest.Digest
	seen := map[digest.Digest]struct{}{}
	var visit func(d digest.Digest)
	visit = func(d digest.Digest) {
		if _, done := seen[d]; done {
			return
		}
		seen[d] = struct{}{}
		for _, next := range k.references[d] {
			visit(next)
		}
		for _, next := range k.referring(d) {
			visit(next)
		}
		if _, manifest := k.references[d]; manifest && !k.needs(d) {
			last = append(last, d)
		}
	}
	for d := range k.references {
		visit(d)
	}
	slices.Reverse(last)
	return last
}

// keepTagged keeps the manifests of all tags.
func (k *kept) keepTagged(ctx context.Context) error {
	names, err := k.of.inner.Tags(ctx).All(ctx)
	if errors.As(err, new(distribution.ErrRepositoryUnknown)) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		d, err := k.of.Digest(ctx, name)
		if errors.Is(err, ErrNoTag) {
			k.rests = append(k.rests, name)
			continue
		}
		if err != nil {
			return err
		}
		k.tags[name] = d
		if _, read := k.references[d]; !read {
			// It was pushed after the manifests were listed.
			if err := k.readManifest(ctx, d); err != nil {
				return err
			}
		}
	}
	for _, d := range k.tags {
		k.keep(d)
	}
	return nil
}
