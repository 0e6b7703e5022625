package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"

	"github.com/forgeplane/forgeplane/internal/registry/record"
)

// ErrPushed says that a tag was pushed again.
var ErrPushed = errors.New("the tag was pushed again")

// errUntried says that the removal of a tag was not tried.
var errUntried = errors.New("the tag was not removed, because the removal of another one has failed")

// Tagged is a tag with the digest of the image that it means.
type Tagged struct {
	Name   string
	Digest digest.Digest
}

// atOnce is the number of tags of a repository that are read or removed at once.
const atOnce = 8

// Parallel calls do for each of some tags, several at once, until the context ends.
func Parallel[T any](ctx context.Context, tags []T, do func(ctx context.Context, i int, tag T)) error {
	var all errgroup.Group
	all.SetLimit(atOnce)
	for i, tag := range tags {
		if ctx.Err() != nil {
			break
		}
		all.Go(func() error {
			do(ctx, i, tag)
			return nil
		})
	}
	_ = all.Wait()
	return context.Cause(ctx)
}

// UntagAll removes those of some tags that still mean the same images, and that were not pushed after a time. It returns an error for each tag:
// nil for a tag that it has removed, ErrNoTag for a tag that is gone, and ErrPushed for a tag that was pushed again. The error is record.ErrDeleted or
// record.ErrNotFound if the repository takes no changes. A push at the very moment between the comparison and the removal of a tag, less
// than a millisecond for a directory, is lost like one before it.
func (i *Images) UntagAll(ctx context.Context, tags []Tagged, since time.Time) (each []error, err error) {
	each = slices.Repeat([]error{errUntried}, len(tags))
	names := make([]string, len(tags))
	for at, t := range tags {
		names[at] = t.Name
	}
	err = i.registry.changing(ctx, i.record.ID, names, func(done *record.Result) error {
		err := Parallel(ctx, tags, func(ctx context.Context, at int, t Tagged) { each[at] = i.untag(ctx, t, since) })
		for at, name := range names {
			if each[at] == nil || errors.Is(each[at], ErrNoTag) {
				done.Gone = append(done.Gone, name)
			}
		}
		return err
	})
	return each, err
}

func (i *Images) untag(ctx context.Context, t Tagged, since time.Time) error {
	found, err := i.Digest(ctx, t.Name)
	if err != nil {
		return err
	}
	if found != t.Digest {
		return ErrPushed
	}
	pushed, err := i.pushed(ctx, t.Name)
	if err != nil {
		return err
	}
	if after(pushed, since) {
		return ErrPushed
	}
	return i.remove(ctx, t.Name)
}

// lag is the maximum time by which the clock of an object store is behind the clock of Forgeplane.
const lag = 5 * time.Second

// after reports whether a push was perhaps after a time. The times of object stores are whole seconds of another clock.
func after(pushed, since time.Time) bool {
	if pushed.Nanosecond() == 0 {
		since = since.Truncate(time.Second).Add(-lag)
	}
	return pushed.After(since)
}

// pushed returns the time at which a tag was last pushed, by the clock of the storage.
func (i *Images) pushed(ctx context.Context, tag string) (time.Time, error) {
	info, err := i.registry.storage.Stat(ctx, i.tagLink(tag))
	if absent(err) {
		return time.Time{}, ErrNoTag
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("reading the tag %s of container repository %d: %w", tag, i.record.ID, err)
	}
	return info.ModTime(), nil
}

// remove removes a tag. The error is ErrNoTag if it does not exist.
func (i *Images) remove(ctx context.Context, tag string) error {
	err := i.inner.Tags(ctx).Untag(ctx, tag)
	if absent(err) {
		return ErrNoTag // another call was faster
	}
	if err != nil {
		return fmt.Errorf("removing the tag %s of container repository %d: %w", tag, i.record.ID, err)
	}
	return nil
}

// restAge is the minimum age of the rest of a tag. A push of a tag without a digest is almost done.
const restAge = time.Minute

// RemoveRest removes what a process that was killed while it removed a tag has left of it, and reports whether there was anything. Such a tag
// is listed, but has no digest.
func (i *Images) RemoveRest(ctx context.Context, tag string) (bool, error) {
	return i.removeRest(ctx, tag, i.registry.clock.Now())
}

// removeRest is RemoveRest for the rest of a tag that has not changed since a time either. An object store removes a tag in one call, and its directories
// have no times, so it has no rests.
func (i *Images) removeRest(ctx context.Context, tag string, since time.Time) (removed bool, err error) {
	if rest, err := i.isRest(ctx, tag, since); err != nil || !rest {
		return false, err
	}
	err = i.registry.changing(ctx, i.record.ID, []string{tag}, func(done *record.Result) error {
		// Counting the change takes time in which a client can push the tag.
		rest, err := i.isRest(ctx, tag, since)
		if err == nil && rest {
			err = i.remove(ctx, tag)
			removed = err == nil
		}
		if removed {
			done.Gone = []string{tag}
		}
		return err
	})
	if errors.Is(err, ErrNoTag) {
		err = nil // another call was faster
	}
	return removed, err
}

// isRest reports whether there is a rest of a tag that has not changed since a time.
func (i *Images) isRest(ctx context.Context, tag string, since time.Time) (bool, error) {
	if _, err := i.Digest(ctx, tag); !errors.Is(err, ErrNoTag) || !validTag.MatchString(tag) {
		return false, err
	}
	found := false
	// A push first changes one of them.
	for _, at := range []string{i.tag(tag), i.tag(tag) + "/index", i.tag(tag) + "/current"} {
		info, err := i.registry.storage.Stat(ctx, at)
		switch {
		case absent(err):
		case err != nil:
			return false, fmt.Errorf("reading the tag %s of container repository %d: %w", tag, i.record.ID, err)
		case info.ModTime().IsZero(), !info.ModTime().Before(since), time.Since(info.ModTime()) < restAge: // by the clock of the machine
			return false, nil
		default:
			found = true
		}
	}
	return found, nil
}
