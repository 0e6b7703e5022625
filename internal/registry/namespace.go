package registry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/distribution/distribution/v3"
	"github.com/distribution/distribution/v3/registry/api/errcode"
	"github.com/distribution/distribution/v3/registry/storage"
	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/registry/record"
)

// Named returns a namespace of the distribution registry in which repositories have the names that clients use. inner is the namespace of the
// same storage, as the registry's handler has configured it.
func (r *Registry) Named(inner distribution.Namespace) distribution.Namespace {
	return &namespace{Namespace: inner, registry: r}
}

// namespace is a namespace with the names of clients. The handler of the library uses it.
type namespace struct {
	distribution.Namespace
	registry *Registry
}

// Repository implements distribution.Namespace. It returns only errors that the handler can answer.
func (n *namespace) Repository(ctx context.Context, named reference.Named) (distribution.Repository, error) {
	found, err := n.registry.find(ctx, named.Name())
	switch {
	case errors.Is(err, ErrNoProject), errors.Is(err, record.ErrNotFound):
		return nil, distribution.ErrRepositoryUnknown{Name: named.Name()}
	case err != nil:
		return nil, unavailable(ctx, err)
	}
	at, err := place(found.Repository)
	if err != nil {
		return nil, err
	}
	inner, err := n.Namespace.Repository(ctx, at)
	if err != nil {
		return nil, errcode.ErrorCodeUnknown.WithMessage("the repository cannot be opened")
	}
	return &repository{Repository: inner, named: named, found: found, registry: n.registry}, nil
}

// found is the record that a name means, and whether its project is archived.
type found struct {
	record.Repository
	archived bool
}

// find returns the record that a name means now.
func (r *Registry) find(ctx context.Context, name string) (found, error) {
	means, err := r.Names.Resolve(ctx, name)
	if err != nil {
		return found{}, err
	}
	if means.Project.Spec.Features.ContainerRegistry == v1alpha1.FeatureDisabled {
		return found{}, ErrNoProject
	}
	known, err := r.Records.Find(ctx, means.Project.UID, means.Image)
	return found{known, means.Project.Spec.Archived}, err
}

// recordsAtOnce is the maximum number of records that one query of a catalog returns.
const recordsAtOnce = 1000

// Repositories implements distribution.Namespace: it fills in the names after last, in lexical order.
func (n *namespace) Repositories(ctx context.Context, repos []string, last string) (int, error) {
	var names []string
	for after := int64(0); ; {
		page, err := n.registry.Records.After(ctx, after, recordsAtOnce)
		if err != nil {
			return 0, err
		}
		for _, r := range page {
			name, err := n.registry.Names.Of(ctx, r)
			switch {
			case errors.Is(err, ErrNoProject):
			case err != nil:
				return 0, err
			case name > last:
				names = append(names, name)
			}
			after = r.ID
		}
		if len(page) < recordsAtOnce {
			break
		}
	}
	slices.Sort(names)
	filled := copy(repos, names)
	if filled == len(names) {
		return filled, io.EOF
	}
	return filled, nil
}

// repository is a repository with the name that the client has used.
type repository struct {
	distribution.Repository
	found
	named    reference.Named
	registry *Registry
}

// images returns the images of the repository.
func (r *repository) images() *Images {
	return &Images{registry: r.registry, record: r.found.Repository, inner: r.Repository}
}

// Named implements distribution.Repository.
func (r *repository) Named() reference.Named { return r.named }

// Tags implements distribution.Repository.
func (r *repository) Tags(ctx context.Context) distribution.TagService {
	return &tags{TagService: r.Repository.Tags(ctx), of: r}
}

// Blobs implements distribution.Repository.
func (r *repository) Blobs(ctx context.Context) distribution.BlobStore {
	return &blobs{BlobStore: r.Repository.Blobs(ctx), of: r}
}

// Manifests implements distribution.Repository.
func (r *repository) Manifests(ctx context.Context, options ...distribution.ManifestServiceOption) (distribution.ManifestService, error) {
	inner, err := r.Repository.Manifests(ctx, options...)
	if err != nil {
		return nil, err
	}
	return &manifests{ManifestService: inner, of: r}, nil
}

// errArchived says that the project of a repository is archived.
var errArchived = errors.New("the project is archived: its images cannot be changed")

// writable returns an error that the handler can answer if the repository takes no changes.
func (r *repository) writable(ctx context.Context) error {
	switch {
	case r.Status != "":
		return refused(ctx, record.ErrDeleted)
	case r.archived:
		return refused(ctx, errArchived)
	default:
		return nil
	}
}

// explained returns the reason why a change has failed: a deletion that has begun meanwhile removes what the change needs. It returns err if the
// repository is not being deleted.
func (r *repository) explained(ctx context.Context, err error) error {
	if err == nil || errors.As(err, new(distribution.ErrBlobMounted)) {
		return err
	}
	now, reading := r.registry.Records.Get(ctx, r.ID)
	switch {
	case errors.Is(reading, record.ErrNotFound):
		return refused(ctx, record.ErrNotFound)
	case reading == nil && now.Status != "":
		return refused(ctx, record.ErrDeleted)
	default:
		return err
	}
}

// blobs are the blobs of a repository.
type blobs struct {
	distribution.BlobStore
	of *repository
}

// Create implements distribution.BlobStore. A mount names its source as clients do.
func (b *blobs) Create(ctx context.Context, options ...distribution.BlobCreateOption) (distribution.BlobWriter, error) {
	if err := b.of.writable(ctx); err != nil {
		return nil, err
	}
	var asked distribution.CreateOptions
	for _, o := range options {
		if err := o.Apply(&asked); err != nil {
			return nil, err
		}
	}
	if !asked.Mount.ShouldMount || asked.Mount.From.Digest().Algorithm() != digest.Canonical {
		return b.create(ctx)
	}
	source, err := b.of.registry.find(ctx, asked.Mount.From.Name())
	if err != nil {
		return b.create(ctx) // the client uploads the blob then
	}
	if err := b.of.registry.need(ctx, asked.Mount.From.Digest()); err != nil {
		return nil, unavailable(ctx, err)
	}
	at, err := place(source.Repository)
	if err != nil {
		return nil, err
	}
	from, err := reference.WithDigest(at, asked.Mount.From.Digest())
	if err != nil {
		return nil, err
	}
	if err := b.admitMount(ctx, source.Repository, from.Digest()); err != nil {
		return nil, err
	}
	w, err := b.BlobStore.Create(ctx, storage.WithMountFrom(from))
	if mounted := (distribution.ErrBlobMounted{}); errors.As(err, &mounted) {
		if err := b.of.keep(ctx, mounted.Descriptor.Digest.String(), mounted.Descriptor.Size); err != nil {
			return nil, err
		}
		mounted.From = asked.Mount.From
		return nil, mounted
	}
	return b.writer(ctx, w, err)
}

// admitMount returns an error that the handler can answer unless there is room for the blob of a mount, if it exists.
func (b *blobs) admitMount(ctx context.Context, source record.Repository, blob digest.Digest) error {
	images, err := b.of.registry.Images(ctx, source)
	if err != nil {
		return err
	}
	d, err := images.inner.Blobs(ctx).Stat(ctx, blob)
	if errors.Is(err, distribution.ErrBlobUnknown) {
		return nil // the client uploads the blob then
	}
	if err != nil {
		return err
	}
	return b.of.admit(ctx, d.Digest, d.Size)
}

func (b *blobs) create(ctx context.Context) (distribution.BlobWriter, error) {
	if err := b.of.admit(ctx, "", 1); err != nil {
		return nil, err
	}
	w, err := b.BlobStore.Create(ctx)
	return b.writer(ctx, w, err)
}

// Resume implements distribution.BlobStore.
func (b *blobs) Resume(ctx context.Context, id string) (distribution.BlobWriter, error) {
	if err := b.of.writable(ctx); err != nil {
		return nil, err
	}
	w, err := b.BlobStore.Resume(ctx, id)
	return b.writer(ctx, w, err)
}

// Stat implements distribution.BlobStore. Clients do not upload what exists, so it must stay. It need not stay for clients who only read.
func (b *blobs) Stat(ctx context.Context, d digest.Digest) (v1.Descriptor, error) {
	stored, err := b.BlobStore.Stat(ctx, d)
	if err != nil || reads(ctx) {
		return stored, err
	}
	if err := b.of.registry.need(ctx, d, stored.Digest); err != nil {
		return v1.Descriptor{}, unavailable(ctx, err)
	}
	return b.BlobStore.Stat(ctx, d)
}

// reads reports whether a context belongs to a request that downloads something.
func reads(ctx context.Context) bool { return ctx.Value("http.request.method") == http.MethodGet }

// Delete implements distribution.BlobStore.
func (b *blobs) Delete(ctx context.Context, d digest.Digest) error {
	if err := b.of.writable(ctx); err != nil {
		return err
	}
	return b.BlobStore.Delete(ctx, d)
}
