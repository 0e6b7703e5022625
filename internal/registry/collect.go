package registry

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/distribution/distribution/v3"
	"github.com/opencontainers/go-digest"

	"github.com/forgeplane/forgeplane/internal/registry/record"
)

const (
	// DefaultGrace is the default of CollectOptions.Grace.
	DefaultGrace = 24 * time.Hour
	// MinGrace is the shortest grace period.
	MinGrace = time.Hour
	// uploadAge is the age at which an unfinished upload is removed.
	uploadAge = 7 * 24 * time.Hour
)

// CollectOptions of a garbage collection.
type CollectOptions struct {
	// Grace is the time for which content stays that no client has needed. It must be far longer than a push takes. The default is
	// DefaultGrace.
	Grace time.Duration
	// KeepUntagged keeps images without a tag, which clients can still pull by their digest.
	KeepUntagged bool
	// Progress is told what is being done; it may be nil.
	Progress func(text string)
}

// Collected has the number and size of the contents that a garbage collection removed.
type Collected struct {
	Repositories, Manifests, Blobs int
	// Bytes is the size of the blobs.
	Bytes int64
}

// Collect removes content that no image needs: images without a tag, blobs of no image, unfinished uploads, and what deleted repositories and
// tags have left. Clients can push and pull meanwhile: a push records each digest that it needs before it looks whether the content exists, and content that
// was needed within the grace period stays. A client that needs a blob at the moment of its removal waits, and then uploads it. A storage that
// cannot be read ends the collection before blobs are removed.
func (r *Registry) Collect(ctx context.Context, o CollectOptions) (Collected, error) {
	if o.Grace == 0 {
		o.Grace = DefaultGrace
	}
	if o.Grace < MinGrace {
		return Collected{}, fmt.Errorf("the grace period of a garbage collection must be at least %s, not %s", MinGrace, o.Grace)
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	c := &collection{Registry: r, CollectOptions: o, since: r.clock.Now().Add(-o.Grace), needed: map[digest.Digest]struct{}{}}
	for _, step := range []func(context.Context) error{c.removeLeftovers, c.mark, c.sweep} {
		if err := step(ctx); err != nil {
			return c.Collected, fmt.Errorf("collecting garbage of the registry: %w", err)
		}
	}
	return c.Collected, r.Records.Forget(ctx, c.since)
}

// collection is a garbage collection that runs.
type collection struct {
	*Registry
	CollectOptions
	Collected
	// since is the time of the last use that keeps content.
	since time.Time
	// needed are the digests that images need.
	needed map[digest.Digest]struct{}
}

// errForeign says that the storage has repositories, and that the database has the record of none of them. So the database is probably not the
// one of this storage, and everything in the storage would look unused.
var errForeign = errors.New("the activity database has no record of any repository in the storage: check that both belong together. If the repositories are leftovers, push an image, and collect again")

// removeLeftovers removes what is stored of repositories without a record. Their places are never used again, so no client can need it.
func (c *collection) removeLeftovers(ctx context.Context) error {
	stored, err := list(ctx, c.storage, path.Clean(repositories))
	if err != nil {
		return err
	}
	known, err := c.Records.Places(ctx, stored)
	if err != nil {
		return err
	}
	if len(stored) > 0 && len(known) == 0 {
		return errForeign
	}
	slices.Sort(known)
	for _, name := range stored {
		if _, ok := slices.BinarySearch(known, name); ok {
			continue
		}
		leftover := record.Repository{Place: name}
		if _, err := place(leftover); err != nil {
			continue // it is nothing of this registry
		}
		old, err := c.old(ctx, repositories+name)
		if err != nil {
			return err
		}
		if !old {
			continue
		}
		if err := c.Remove(ctx, leftover); err != nil {
			return err
		}
		c.Repositories++
	}
	return nil
}

// old reports whether a file or directory has not changed within the grace period. The directories of object stores have no time, so they are
// always old.
func (c *collection) old(ctx context.Context, at string) (bool, error) {
	info, err := c.storage.Stat(ctx, at)
	if absent(err) {
		return false, nil
	}
	return err == nil && info.ModTime().Before(c.since), err
}

// mark finds what the images of all repositories need, and removes images that nothing needs.
func (c *collection) mark(ctx context.Context) error {
	for after := int64(0); ; {
		page, err := c.Records.After(ctx, after, recordsAtOnce)
		if err != nil {
			return err
		}
		for _, r := range page {
			c.Progress(fmt.Sprintf("looking at container repository %d", r.ID))
			if err := c.markRepository(ctx, r); err != nil && !c.leaving(ctx, r) {
				return fmt.Errorf("container repository %d: %w", r.ID, err)
			}
			after = r.ID
		}
		if len(page) < recordsAtOnce {
			return nil
		}
	}
}

// leaving reports whether a repository is being deleted or gone, so that its images need nothing. A storage can fail in any way while the
// content that it reads is deleted.
func (c *collection) leaving(ctx context.Context, r record.Repository) bool {
	now, err := c.Records.Get(ctx, r.ID)
	return errors.Is(err, record.ErrNotFound) || err == nil && now.Status != ""
}

func (c *collection) markRepository(ctx context.Context, r record.Repository) error {
	images, err := c.Images(ctx, r)
	if err != nil {
		return err
	}
	kept := newKept(images)
	if err := kept.read(ctx); err != nil {
		return err
	}
	if err := kept.keepTagged(ctx); err != nil {
		return err
	}
	for d := range kept.references {
		stays := c.KeepUntagged
		if !stays && !kept.needs(d) {
			if stays, err = c.recent(ctx, images, d); err != nil {
				return err
			}
		}
		if stays {
			kept.keep(d)
		}
	}
	for _, d := range kept.unneeded() {
		if kept.needs(d) {
			continue
		}
		removed, err := c.removeManifest(ctx, images, d)
		if err != nil {
			return err
		}
		if !removed {
			kept.keep(d) // a client has just needed it
		}
	}
	for d := range kept.needed {
		c.needed[d] = struct{}{}
	}
	return c.tidy(ctx, images, kept)
}

// tidy removes what a repository does not need besides images, and measures it.
func (c *collection) tidy(ctx context.Context, of *Images, k *kept) error {
	for _, remove := range []func(context.Context, *Images, *kept) error{c.removeTags, c.unlearn, c.removeReferrers, c.removeLinks, c.removeUploads, c.account} {
		if err := remove(ctx, of, k); err != nil {
			return err
		}
	}
	if err := of.measure(ctx); err != nil {
		c.Progress(fmt.Sprintf("the size of container repository %d is unknown: %v", of.record.ID, err)) // it is worth no failure
	}
	return ctx.Err()
}

// removeTags removes the rests of tags.
func (c *collection) removeTags(ctx context.Context, of *Images, k *kept) error {
	for _, tag := range k.rests {
		if _, err := of.removeRest(ctx, tag, c.since); err != nil {
			return err
		}
	}
	return nil
}

// recent reports whether an image was stored or needed within the grace period.
func (c *collection) recent(ctx context.Context, of *Images, d digest.Digest) (bool, error) {
	old, err := c.old(ctx, of.link(d))
	if err != nil || !old {
		return true, err
	}
	return c.Records.Touched(ctx, d.String(), c.since)
}

// removeManifest removes an image from its repository, unless a client has just needed it.
func (c *collection) removeManifest(ctx context.Context, of *Images, d digest.Digest) (bool, error) {
	removed, err := c.Records.Sweep(ctx, d.String(), c.since, func(ctx context.Context) error {
		manifests, err := of.inner.Manifests(ctx)
		if err != nil {
			return err
		}
		if err := of.deleteManifest(ctx, manifests, d); err != nil && !errors.Is(err, distribution.ErrBlobUnknown) {
			return err
		}
		return c.Records.Unrefer(ctx, of.record.ID, d.String())
	})
	if removed {
		c.Manifests++
	}
	return removed, err
}

// removeReferrers removes what is recorded of referrers that do not exist.
func (c *collection) removeReferrers(ctx context.Context, of *Images, k *kept) error {
	for after := ""; ; {
		page, err := c.Records.ReferrersAfter(ctx, of.record.ID, after, recordsAtOnce)
		if err != nil {
			return err
		}
		for _, text := range page {
			after = text
			if _, known := k.references[digest.Digest(text)]; known {
				continue
			}
			exists, err := of.has(ctx, digest.Digest(text))
			if err != nil {
				return err
			}
			if exists {
				continue
			}
			if err := c.Records.Unrefer(ctx, of.record.ID, text); err != nil {
				return err
			}
		}
		if len(page) < recordsAtOnce {
			return nil
		}
	}
}

// remove removes a file or directory, if it exists.
func (c *collection) remove(ctx context.Context, at string) error {
	if err := c.storage.Delete(ctx, at); err != nil && !absent(err) {
		return err
	}
	return nil
}

// sweep removes the blobs that no image needs.
func (c *collection) sweep(ctx context.Context) error {
	c.Progress("looking for unused blobs")
	below := root + "/blobs/" + string(digest.SHA256)
	prefixes, err := list(ctx, c.storage, below)
	if err != nil {
		return err
	}
	for _, prefix := range prefixes {
		all, err := list(ctx, c.storage, below+"/"+prefix)
		if err != nil {
			return err
		}
		for _, name := range all {
			d := digest.NewDigestFromEncoded(digest.SHA256, name)
			if !valid(d) {
				continue // it is nothing of a registry
			}
			if err := c.sweepBlob(ctx, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// sweepBlob removes a blob that no image needs, and what a process that was killed has left of one.
func (c *collection) sweepBlob(ctx context.Context, d digest.Digest) error {
	if _, ok := c.needed[d]; ok {
		return nil
	}
	at, size := data(d), int64(0)
	info, err := c.storage.Stat(ctx, at)
	switch {
	case absent(err):
		at = path.Dir(at)
	case err != nil:
		return err
	default:
		size = info.Size()
	}
	if old, err := c.old(ctx, at); err != nil || !old {
		return err
	}
	swept, err := c.Records.Sweep(ctx, d.String(), c.since, func(ctx context.Context) error { return c.remove(ctx, path.Dir(data(d))) })
	if swept {
		c.Blobs++
		c.Bytes += size
	}
	return err
}

// removeRest removes what a request has written to an upload that had ended meanwhile.
func (c *collection) removeRest(ctx context.Context, upload string) error {
	info, err := c.storage.Stat(ctx, upload)
	if absent(err) {
		return nil
	}
	if err != nil || time.Since(info.ModTime()) < uploadAge {
		return err
	}
	return c.remove(ctx, upload)
}

// removeUploads removes the uploads to a repository that were begun long ago and never finished.
func (c *collection) removeUploads(ctx context.Context, of *Images, _ *kept) error {
	uploads := of.uploads() + "/"
	all, err := list(ctx, c.storage, of.uploads())
	if err != nil {
		return err
	}
	for _, name := range all {
		upload := uploads + name
		text, err := c.storage.GetContent(ctx, upload+"/startedat")
		if absent(err) {
			if err := c.removeRest(ctx, upload); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		// The library dates uploads with the time of the machine.
		began, err := time.Parse(time.RFC3339, string(text))
		if err != nil || time.Since(began) < uploadAge {
			continue
		}
		if err := c.remove(ctx, upload); err != nil {
			return err
		}
	}
	return nil
}
