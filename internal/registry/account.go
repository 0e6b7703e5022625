package registry

import (
	"context"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/forgeplane/forgeplane/internal/registry/record"
)

// account records what a repository has in the storage: a process can end between a change and its record, and a database that was restored from a
// backup knows other contents. Deleted contents count until the collection that removes them.
func (c *collection) account(ctx context.Context, of *Images, k *kept) error {
	contents, err := c.contents(ctx, of, k)
	if err != nil {
		return err
	}
	recorded, err := c.dropGone(ctx, of, contents)
	if err != nil {
		return err
	}
	for name, file := range contents {
		was, known := recorded[name]
		if known && !strings.HasPrefix(name, record.UploadPrefix) {
			continue
		}
		info, err := c.storage.Stat(ctx, file)
		if absent(err) {
			continue
		}
		if err != nil {
			return err
		}
		if known && was == info.Size() {
			continue
		}
		if err := c.Records.Keep(ctx, record.Content{RepositoryID: of.record.ID, Name: name, Size: info.Size()}, name); err != nil {
			return err
		}
	}
	return nil
}

// contents returns the files of the contents of a repository by their names.
func (c *collection) contents(ctx context.Context, of *Images, k *kept) (map[string]string, error) {
	files := map[string]string{}
	for _, directory := range []string{of.directory() + "/_layers/", of.directory() + "/_manifests/revisions/"} {
		for _, a := range []digest.Algorithm{digest.SHA256, digest.SHA512} {
			all, err := list(ctx, c.storage, directory+string(a))
			if err != nil {
				return nil, err
			}
			for _, name := range all {
				d := digest.NewDigestFromEncoded(a, name)
				if a != digest.Canonical || !k.needs(d) {
					if d, err = c.readLink(ctx, directory+string(a)+"/"+name+"/link"); err != nil {
						return nil, err
					}
				}
				if valid(d) && d.Algorithm() == digest.Canonical {
					files[d.String()] = data(d)
				}
			}
		}
	}
	uploads, err := list(ctx, c.storage, of.uploads())
	for _, id := range uploads {
		files[record.Upload(id)] = of.uploads() + "/" + id + "/data"
	}
	return files, err
}

// dropGone forgets the contents that a repository no longer has and no client has needed within the grace period, and returns the sizes of the others
// that are recorded.
func (c *collection) dropGone(ctx context.Context, of *Images, contents map[string]string) (map[string]int64, error) {
	recorded := map[string]int64{}
	var gone []string
	for after := ""; ; {
		page, err := c.Records.Contents(ctx, of.record.ID, after, recordsAtOnce)
		if err != nil {
			return nil, err
		}
		for _, known := range page {
			after = known.Name
			if _, there := contents[known.Name]; there {
				recorded[known.Name] = known.Size
				continue
			}
			needed, err := c.Records.Touched(ctx, known.Name, c.since)
			if err != nil {
				return nil, err
			}
			if !needed {
				gone = append(gone, known.Name)
			}
		}
		if len(page) < recordsAtOnce {
			break
		}
	}
	return recorded, c.Records.Drop(ctx, of.record.ID, gone...)
}
