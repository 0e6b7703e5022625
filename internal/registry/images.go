package registry

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/distribution/distribution/v3"
	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/opencontainers/go-digest"

	"github.com/forgeplane/forgeplane/internal/registry/record"
)

// ErrNoTag says that a repository has no tag with a name.
var ErrNoTag = errors.New("the repository does not have the tag")

// Images is the images of a repository. It has the state of the record at the time at which the record was read.
type Images struct {
	registry *Registry
	record   record.Repository
	inner    distribution.Repository
}

// Tags returns the names of the tags in lexical order. The caller must not change the slice.
func (i *Images) Tags(ctx context.Context) ([]string, error) {
	l, err := i.list(ctx)
	return l.tags, err
}

func (i *Images) list(ctx context.Context) (tagList, error) {
	now := i.registry.clock.Now()
	if l, ok := i.registry.lists.get(i.record.ID); ok && l.changes == i.record.Changes && now.Sub(l.read) < listAge {
		return l, nil
	}
	tags, err := i.inner.Tags(ctx).All(ctx)
	if errors.As(err, new(distribution.ErrRepositoryUnknown)) {
		tags, err = nil, nil // nothing has been pushed yet
	}
	if err != nil {
		return tagList{}, fmt.Errorf("listing the tags of container repository %d: %w", i.record.ID, err)
	}
	for at, tag := range tags {
		tags[at] = strings.Clone(tag) // the library's are parts of whole paths
	}
	l := tagList{changes: i.record.Changes, read: now, tags: tags}
	if former, ok := i.registry.lists.get(i.record.ID); ok && former.settled && former.changes == l.changes && slices.Equal(former.tags, tags) {
		l.newest, l.settled = former.newest, true
	}
	i.registry.lists.add(i.record.ID, l)
	return l, nil
}

// validTag matches the tags that clients can push (OCI distribution specification 1.1, "Pulling manifests").
var validTag = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$`)

// Digest returns the digest of the manifest of a tag, or ErrNoTag.
func (i *Images) Digest(ctx context.Context, tag string) (digest.Digest, error) {
	if !validTag.MatchString(tag) {
		return "", ErrNoTag
	}
	d, err := i.inner.Tags(ctx).Get(ctx, tag)
	switch {
	case errors.As(err, new(distribution.ErrTagUnknown)), errors.As(err, new(driver.InvalidPathError)):
		return "", ErrNoTag
	case err != nil:
		return "", fmt.Errorf("reading the tag %s of container repository %d: %w", tag, i.record.ID, err)
	}
	return d.Digest, nil
}

// Untag removes a tag, or the rest of one. The error is ErrNoTag if it does not exist, and record.ErrDeleted if the repository takes no changes.
// The images stay until the garbage collection.
func (i *Images) Untag(ctx context.Context, tag string) error {
	_, err := i.Digest(ctx, tag)
	if errors.Is(err, ErrNoTag) {
		if removed, restErr := i.RemoveRest(ctx, tag); removed || restErr != nil {
			return restErr
		}
	}
	if err != nil {
		return err
	}
	return i.registry.changing(ctx, i.record.ID, []string{tag}, func(done *record.Result) error {
		err := i.remove(ctx, tag)
		if err == nil {
			done.Gone = []string{tag}
		}
		return err
	})
}

// changing counts a change of tags before and after it, and records its result.
func (r *Registry) changing(ctx context.Context, id int64, tags []string, change func(done *record.Result) error) error {
	began, err := r.Records.Change(ctx, id, tags...)
	if err != nil {
		return err
	}
	var done record.Result
	err = change(&done)
	if counted := r.Records.Changed(ctx, id, began, tags, done); counted != nil && !errors.Is(counted, record.ErrDeleted) && !errors.Is(counted, record.ErrNotFound) {
		err = errors.Join(err, counted)
	}
	return err
}
