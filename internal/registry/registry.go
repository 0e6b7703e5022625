// Package registry stores the images of projects, with the storage of the distribution registry. It maps the names that clients use to
// records, which name the places of the images.
package registry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/distribution/distribution/v3" // the reference implementation of the OCI distribution specification, which can be embedded
	"github.com/distribution/distribution/v3/registry/storage"
	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/opencontainers/go-digest"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/forgeplane/forgeplane/internal/registry/record"
)

const (
	// cachedLists and cachedDetails are how many lists of tags and details of manifests are remembered.
	cachedLists, cachedDetails = 200, 20_000
	// cachedList is the maximum number of tags in a cached list, and cachedTags the maximum of all cached lists.
	cachedList, cachedTags = 20_000, 500_000
	// listAge is the time for which a list of tags is used, even if the record shows no change: a process can end between a change and its
	// count.
	listAge = 10 * time.Second
	// cachedUses is the number of cached uses of blobs, and useAge the time for which a use is not recorded again. It is far shorter than
	// the grace period of a garbage collection.
	cachedUses, useAge = 50_000, 10 * time.Minute
)

// Registry is the images of all projects. It is safe for concurrent use, by several processes on one storage, too.
type Registry struct {
	// Names and Records belong to the repositories.
	Names   *Names
	Records *record.Store
	// MaxSize is the number of bytes that all repositories of a project together can have; 0 for any number. Set it before use.
	MaxSize int64

	storage driver.StorageDriver
	inner   distribution.Namespace
	clock   clock.PassiveClock
	lists   *lists
	details *lru.Cache
	uses    *lru.Cache
}

// New returns the registry in a storage.
func New(ctx context.Context, in driver.StorageDriver, records *record.Store, names *Names, c clock.PassiveClock) (*Registry, error) {
	inner, err := storage.NewRegistry(ctx, in, storage.EnableDelete)
	if err != nil {
		return nil, fmt.Errorf("opening the registry: %w", err)
	}
	return &Registry{
		Names: names, Records: records, storage: in, inner: inner, clock: c, lists: newLists(), details: lru.New(cachedDetails), uses: lru.New(cachedUses),
	}, nil
}

// Storage returns the storage of the images.
func (r *Registry) Storage() driver.StorageDriver { return r.storage }

// need records that a client needs contents, so that no garbage collection removes them now. Call it before the check whether they exist.
func (r *Registry) need(ctx context.Context, digests ...digest.Digest) error {
	now := r.clock.Now()
	var further []string
	for _, d := range digests {
		if used, ok := r.uses.Get(d); !ok || now.Sub(used.(time.Time)) >= useAge {
			further = append(further, d.String())
		}
	}
	if err := r.Records.Touch(ctx, further...); err != nil {
		return err
	}
	for _, d := range further {
		r.uses.Add(digest.Digest(d), now)
	}
	return nil
}

// Check returns an error if the storage cannot be read.
func (r *Registry) Check(ctx context.Context) error {
	_, err := r.storage.Stat(ctx, "/")
	if absent(err) {
		return nil // nothing has been pushed yet
	}
	return err
}

// Images returns the images of a repository.
func (r *Registry) Images(ctx context.Context, of record.Repository) (*Images, error) {
	at, err := place(of)
	if err != nil {
		return nil, err
	}
	inner, err := r.inner.Repository(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("opening container repository %d: %w", of.ID, err)
	}
	return &Images{registry: r, record: of, inner: inner}, nil
}

// Remove removes all images of a repository. It does nothing if there are none.
func (r *Registry) Remove(ctx context.Context, images record.Repository) error {
	remover, ok := r.inner.(distribution.RepositoryRemover)
	if !ok {
		return errors.New("the storage of the registry cannot remove repositories")
	}
	at, err := place(images)
	if err != nil {
		return err
	}
	if err := remover.Remove(ctx, at); err != nil && !absent(err) {
		return fmt.Errorf("removing the images of container repository %d: %w", images.ID, err)
	}
	return nil
}
