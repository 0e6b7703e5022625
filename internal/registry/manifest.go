package registry

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/distribution/distribution/v3"
	"github.com/distribution/distribution/v3/registry/api/errcode"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/registry/record"
)

// subjectHeader tells the client that the registry lists the manifest as a referrer (OCI distribution specification 1.1, "Pushing Manifests
// with Subject").
const subjectHeader = "OCI-Subject"

// manifests are the manifests of a repository.
type manifests struct {
	distribution.ManifestService
	of *repository
}

// Put implements distribution.ManifestService. It records the manifest as a referrer of its subject before it stores the manifest: after a kill
// between the two, the client would find the manifest and not push it again. It records it once more afterwards, because a deletion of the same
// manifest can have removed the record meanwhile.
func (m *manifests) Put(ctx context.Context, manifest distribution.Manifest, options ...distribution.ManifestServiceOption) (digest.Digest, error) {
	if err := m.of.writable(ctx); err != nil {
		return "", err
	}
	mediaType, payload, err := manifest.Payload()
	if err != nil {
		return "", err
	}
	c, err := check(mediaType, payload)
	if err != nil {
		return "", errcode.ErrorCodeManifestInvalid.WithMessage(err.Error())
	}
	descriptor, text, err := c.referrer(mediaType, payload)
	if err != nil && c.Subject != nil {
		return "", errcode.ErrorCodeManifestInvalid.WithMessage(err.Error())
	}
	needed := []digest.Digest{descriptor.Digest}
	for _, d := range c.references() {
		needed = append(needed, d.Digest)
	}
	if err := m.of.images().need(ctx, needed...); err != nil {
		return "", unavailable(ctx, err)
	}
	if err := m.of.admit(ctx, descriptor.Digest, descriptor.Size); err != nil {
		return "", err
	}
	if err := m.refer(ctx, &c, descriptor, text); err != nil {
		return "", err
	}
	d, err := m.ManifestService.Put(ctx, manifest, options...)
	if err == nil {
		err = m.of.images().alias(ctx, d)
	}
	if err != nil {
		m.unrefer(ctx, &c, descriptor.Digest)
		return d, m.of.explained(ctx, err)
	}
	audit.From(ctx).Did("push", audit.ContainerImage, m.of.named.Name()+"@"+d.String(), 0)
	if err := m.of.keep(ctx, d.String(), descriptor.Size); err != nil {
		return "", err
	}
	if err := m.refer(ctx, &c, descriptor, text); err != nil {
		return "", err
	}
	if w, ok := ctx.Value("http.response").(http.ResponseWriter); ok && c.Subject != nil {
		w.Header().Set(subjectHeader, c.Subject.Digest.String())
	}
	return d, nil
}

// refer records a manifest as a referrer of its subject, if it has one.
func (m *manifests) refer(ctx context.Context, c *content, d v1.Descriptor, text string) error {
	if c.Subject == nil {
		return nil
	}
	err := m.of.registry.Records.Refer(ctx, record.Referrer{
		RepositoryID: m.of.ID, Subject: c.Subject.Digest.String(), Digest: d.Digest.String(), ArtifactType: d.ArtifactType, Descriptor: text,
	})
	if err != nil {
		return unavailable(ctx, err)
	}
	return nil
}

// unrefer removes the record of a manifest that was not stored. If that fails, a garbage collection removes it; lists leave it out meanwhile.
func (m *manifests) unrefer(ctx context.Context, c *content, d digest.Digest) {
	if c.Subject == nil {
		return
	}
	if exists, err := m.of.images().has(ctx, d); err != nil || exists {
		return
	}
	_ = m.of.registry.Records.Unrefer(ctx, m.of.ID, d.String())
}

// Exists implements distribution.ManifestService.
func (m *manifests) Exists(ctx context.Context, d digest.Digest) (bool, error) {
	d, err := m.of.images().canonical(ctx, d)
	if err != nil {
		return false, err
	}
	return m.ManifestService.Exists(ctx, d)
}

// Get implements distribution.ManifestService. Clients ask with HEAD whether they need to push an image, so it must stay.
func (m *manifests) Get(ctx context.Context, d digest.Digest, options ...distribution.ManifestServiceOption) (distribution.Manifest, error) {
	named := d
	d, err := m.of.images().canonical(ctx, d)
	if err != nil {
		return nil, err
	}
	if !reads(ctx) {
		if exists, err := m.ManifestService.Exists(ctx, d); err == nil && exists {
			if err := m.of.registry.need(ctx, named, d); err != nil {
				return nil, unavailable(ctx, err)
			}
		}
	}
	return m.ManifestService.Get(ctx, d, options...)
}

// Delete implements distribution.ManifestService. The tags come first: they must not outlive the manifest if the process ends in the middle.
func (m *manifests) Delete(ctx context.Context, d digest.Digest) error {
	if err := m.of.writable(ctx); err != nil {
		return err
	}
	d, err := m.of.images().canonical(ctx, d)
	if err != nil {
		return err
	}
	if exists, err := m.ManifestService.Exists(ctx, d); err != nil {
		return err
	} else if !exists {
		return distribution.ErrBlobUnknown
	}
	tags := m.of.Tags(ctx)
	names, err := tags.Lookup(ctx, v1.Descriptor{Digest: d})
	if err != nil && !errors.As(err, new(distribution.ErrRepositoryUnknown)) {
		return err
	}
	for _, name := range names {
		if err := tags.Untag(ctx, name); err != nil && !errors.As(err, new(distribution.ErrTagUnknown)) {
			return err
		}
	}
	if err := m.of.images().deleteManifest(ctx, m.ManifestService, d); err != nil {
		return err
	}
	audit.From(ctx).Did("delete", audit.ContainerImage, m.of.named.Name()+"@"+d.String(), 0)
	if err := m.of.registry.Records.Unrefer(ctx, m.of.ID, d.String()); err != nil {
		return unavailable(ctx, err)
	}
	return nil
}

// tags are the tags of a repository.
type tags struct {
	distribution.TagService
	of *repository
}

// Tag implements distribution.TagService.
func (t *tags) Tag(ctx context.Context, tag string, desc v1.Descriptor) error {
	known, unknown := t.of.images().meaning(ctx, tag, desc.Digest)
	return t.change(ctx, "push", tag, func(done *record.Result) error {
		err := t.TagService.Tag(ctx, tag, desc)
		if err == nil && unknown == nil { // the next list of tags reads what cannot be read now
			done.Known = []record.Tag{known}
		}
		return err
	})
}

// Untag implements distribution.TagService.
func (t *tags) Untag(ctx context.Context, tag string) error {
	if err := t.of.writable(ctx); err != nil {
		return err
	}
	if _, err := t.Get(ctx, tag); err != nil {
		return err
	}
	return t.change(ctx, "delete", tag, func(done *record.Result) error {
		err := t.TagService.Untag(ctx, tag)
		if err == nil {
			done.Gone = []string{tag}
		}
		return err
	})
}

// change changes a tag, and tells the audit log of it.
func (t *tags) change(ctx context.Context, verb, tag string, change func(done *record.Result) error) error {
	if err := t.of.registry.changing(ctx, t.of.ID, []string{tag}, change); err != nil {
		return refused(ctx, err)
	}
	audit.From(ctx).Did(verb, audit.ContainerTag, t.of.named.Name()+":"+tag, 0)
	return nil
}

// List implements distribution.TagService, from the list that is remembered. A limit below 0 stands for all tags.
func (t *tags) List(ctx context.Context, limit int, last string) ([]string, error) {
	all, err := t.of.images().Tags(ctx)
	if err != nil {
		return nil, err
	}
	from, found := slices.BinarySearch(all, last)
	if found {
		from++
	}
	all = all[from:]
	if limit < 0 || len(all) <= limit {
		return all, io.EOF
	}
	return all[:limit], nil
}

const (
	// referrersAtOnce is the maximum number of referrers in a page, and referrersRead the number that are read from the database at once.
	referrersAtOnce, referrersRead = 500, 50
	// maxPage is the size at which a page ends, in bytes. Clients read 4 MiB.
	maxPage = 3 << 20
)

// Referrers returns the descriptors of the manifests that refer to a subject in the repository with a name, after a digest, and the digest from
// which to go on; it is empty at the end. An unknown repository has none.
func (r *Registry) Referrers(ctx context.Context, name string, subject digest.Digest, artifactType, after string) (page []json.RawMessage, next string, err error) {
	found, err := r.find(ctx, name)
	if errors.Is(err, ErrNoProject) || errors.Is(err, record.ErrNotFound) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	images, err := r.Images(ctx, found.Repository)
	if err != nil {
		return nil, "", err
	}
	for size := 0; ; {
		referrers, err := r.Records.Referrers(ctx, found.ID, subject.String(), artifactType, after, referrersRead)
		if err != nil {
			return nil, "", err
		}
		for _, f := range referrers {
			if size += len(f.Descriptor); len(page) == referrersAtOnce || size > maxPage {
				return page, after, nil
			}
			exists, err := images.has(ctx, digest.Digest(f.Digest))
			if err != nil {
				return nil, "", err
			}
			if exists {
				page = append(page, json.RawMessage(f.Descriptor))
			}
			after = f.Digest
		}
		if len(referrers) < referrersRead {
			return page, "", nil
		}
	}
}

// has reports whether the repository has the manifest with a digest.
func (i *Images) has(ctx context.Context, d digest.Digest) (bool, error) {
	manifests, err := i.inner.Manifests(ctx)
	if err != nil {
		return false, err
	}
	exists, err := manifests.Exists(ctx, d)
	if absent(err) {
		return false, nil
	}
	return exists, err
}
