package registry

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/forgeplane/forgeplane/internal/registry/record"
)

// ErrOrdering says that it takes too long to read the times of images that are not recorded.
var ErrOrdering = errors.New("the times of the images are being read: try again in some seconds")

// learnedAtOnce is the number of tags that are read before their digests are recorded.
const learnedAtOnce = 100

// Newest returns the names of the tags in the order of their images, the newest first, as cleanups spare them: an image without a time counts as made
// now, and of tags with the same time the last in the order of names is the newest. The records have the times, as pushes have left them; it reads
// the images of other tags, and records them. The caller must not change the slice. The error is ErrOrdering if that takes too long; then another
// attempt gets further, in any process.
func (i *Images) Newest(ctx context.Context) ([]string, error) {
	l, err := i.list(ctx)
	if err != nil || l.newest != nil {
		return l.newest, err
	}
	var all bool
	err = patiently(ctx, ErrOrdering, func(ctx context.Context) (err error) {
		all, err = i.order(ctx, &l)
		return err
	})
	if err == nil && all {
		i.registry.lists.add(i.record.ID, l)
	}
	return l.newest, err
}

// dated is a tag with the time of its image.
type dated struct {
	name string
	made time.Time
}

// order sorts a list, and reports whether it could read all tags. A tag that cannot be read has no time. The order is settled if all tags are recorded,
// and no time is yet to come.
func (i *Images) order(ctx context.Context, l *tagList) (all bool, err error) {
	now := i.registry.clock.Now()
	recorded, err := i.recorded(ctx)
	if err != nil {
		return false, err
	}
	sorted, unknown, at := make([]dated, len(l.tags)), []record.Tag{}, map[string]int{}
	l.settled = true
	for n, name := range l.tags {
		known := recorded[name]
		sorted[n] = dated{name, madeAt(known, now)}
		l.settled = l.settled && known.Digest != "" && !sorted[n].made.After(now)
		if known.Digest == "" {
			unknown = append(unknown, record.Tag{Name: name, Change: known.Change})
			at[name] = n
		}
	}
	all = true
	for some := range slices.Chunk(unknown, learnedAtOnce) {
		learned, complete, err := i.learn(ctx, some)
		if err != nil {
			return false, err
		}
		all = all && complete
		for _, t := range learned {
			sorted[at[t.Name]].made = madeAt(t, now)
		}
	}
	slices.SortFunc(sorted, func(a, b dated) int { return cmp.Or(b.made.Compare(a.made), cmp.Compare(b.name, a.name)) })
	l.newest = make([]string, len(sorted))
	for n, t := range sorted {
		l.newest[n] = t.name
	}
	return all, nil
}

// recorded returns the records of all tags, by their names.
func (i *Images) recorded(ctx context.Context) (map[string]record.Tag, error) {
	all := map[string]record.Tag{}
	for after := ""; ; {
		page, err := i.registry.Records.Tags(ctx, i.record.ID, after, recordsAtOnce)
		if err != nil {
			return nil, err
		}
		for _, t := range page {
			all[t.Name], after = t, t.Name
		}
		if len(page) < recordsAtOnce {
			return all, nil
		}
	}
}

// learn reads what tags mean, and records it, even if the context ends meanwhile. It returns the tags that it could read, and whether these
// are all that exist.
func (i *Images) learn(ctx context.Context, tags []record.Tag) (learned []record.Tag, all bool, err error) {
	read, failures := make([]record.Tag, len(tags)), make([]error, len(tags))
	ended := Parallel(ctx, tags, func(ctx context.Context, n int, t record.Tag) {
		d, err := i.Digest(ctx, t.Name)
		if err == nil {
			read[n], err = i.meaning(ctx, t.Name, d)
		}
		read[n].Change, failures[n] = t.Change, err
	})
	all = true
	for n, t := range read {
		switch {
		case failures[n] == nil && t.Digest != "":
			learned = append(learned, t)
		case failures[n] != nil && !errors.Is(failures[n], ErrNoTag):
			all = false
		}
	}
	if err := i.registry.Records.Learn(context.WithoutCancel(ctx), i.record.ID, slices.Clone(learned)); err != nil {
		return nil, false, err
	}
	if ended == nil && !all {
		ended = i.registry.Check(ctx)
	}
	return learned, all, ended
}

// meaning returns the record of a tag that means the manifest with a digest.
func (i *Images) meaning(ctx context.Context, tag string, d digest.Digest) (record.Tag, error) {
	t := record.Tag{Name: tag, Digest: d.String()}
	found, err := i.detail(ctx, d)
	if err != nil && !errors.Is(err, ErrNoTag) {
		return record.Tag{}, err
	}
	if err == nil && found.Created != nil {
		t.Made = found.Created.Format(time.RFC3339Nano)
	}
	return t, nil
}

// madeAt returns when the image of a tag was made: now if it has no time.
func madeAt(t record.Tag, now time.Time) time.Time {
	made, err := time.Parse(time.RFC3339Nano, t.Made)
	if err != nil {
		return now
	}
	return made
}

// unlearn removes what is recorded of tags that the storage no longer has, or that mean something else there: a process can end between a change and
// its record, and a database that was restored from a backup knows other tags.
func (c *collection) unlearn(ctx context.Context, of *Images, k *kept) error {
	recorded, err := of.recorded(ctx)
	if err != nil {
		return err
	}
	var outdated []record.Tag
	for name, t := range recorded {
		means, exists := k.tags[name]
		if (!exists || means.String() != t.Digest) && t.Changed.Before(c.since) {
			outdated = append(outdated, t)
		}
	}
	return c.Records.Unlearn(ctx, of.record.ID, outdated)
}
