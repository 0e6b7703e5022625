package registry

import (
	"context"
	"errors"

	"github.com/opencontainers/go-digest"
)

// removeLinks removes the marks of layers that the images of a repository no longer need, and aliases. Without a mark, the repository does not
// have the layer.
func (c *collection) removeLinks(ctx context.Context, of *Images, k *kept) error {
	return errors.Join(
		c.removeUnneeded(ctx, of.directory()+"/_layers/", digest.SHA256, k),
		c.removeUnneeded(ctx, of.directory()+"/_layers/", digest.SHA512, k),
		c.removeUnneeded(ctx, of.directory()+"/_manifests/revisions/", digest.SHA512, k),
	)
}

// removeUnneeded removes the links in a directory to contents that are not kept.
func (c *collection) removeUnneeded(ctx context.Context, directory string, a digest.Algorithm, k *kept) error {
	directory += string(a)
	all, err := list(ctx, c.storage, directory)
	if err != nil {
		return err
	}
	for _, name := range all {
		d := digest.NewDigestFromEncoded(a, name)
		if !valid(d) || k.needs(d) {
			continue
		}
		at := directory + "/" + name
		old, err := c.old(ctx, at+"/link")
		if err != nil {
			return err
		}
		if !old {
			continue
		}
		if a != digest.Canonical {
			means, err := c.readLink(ctx, at+"/link")
			if err != nil {
				return err
			}
			if k.needs(means) {
				continue
			}
		}
		if _, err := c.Records.Sweep(ctx, d.String(), c.since, func(ctx context.Context) error { return c.remove(ctx, at) }); err != nil {
			return err
		}
	}
	return nil
}
