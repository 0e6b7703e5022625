package git

import (
	"context"
	"fmt"
	"slices"

	"github.com/forgeplane/forgeplane/internal/git/internal/recall"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

// commitBatch is the number of commits that are requested at a time: this many ids fit into a pipe.
const commitBatch = 256

// ReadCommit returns the commit with an id. The error is ErrObjectNotFound if there is none. It cuts a commit of more than 4 MiB to the
// part within that limit, with a message that ends with "...". Callers must not change the commit.
func (r *Repository) ReadCommit(ctx context.Context, id string) (*object.Commit, error) {
	if err := object.CheckIDs(id); err != nil {
		return nil, err
	}
	return recall.Find(ctx, r.Results(), "reading a commit", id, (*object.Commit).Size, func(ctx context.Context) (*object.Commit, error) {
		found, err := r.ReadCommits(ctx, []string{id}, object.WholeCommits)
		if err != nil {
			return nil, err
		}
		return found[0], nil
	})
}

// ReadCommits reads many commits in one request. It keeps what is within the limits.
func (r *Repository) ReadCommits(ctx context.Context, ids []string, limits object.CommitLimits) ([]*object.Commit, error) {
	all := make([]*object.Commit, 0, len(ids))
	err := r.engine.readers.use(ctx, r.dir, r.pin, func(from *reader) error {
		all = all[:0]
		text := 0
		for batch := range slices.Chunk(ids, commitBatch) {
			if err := from.ask("contents", batch...); err != nil {
				return err
			}
			for _, id := range batch {
				c, err := from.commit(id)
				if err != nil {
					return err
				}
				limits.Trim(c, text)
				text += len(c.Message)
				all = append(all, c)
			}
		}
		return nil
	})
	return all, err
}

// commit reads the answer for a commit.
func (r *reader) commit(id string) (*object.Commit, error) {
	o, err := r.answer(id)
	if err != nil {
		return nil, err
	}
	if o.Type != "commit" {
		return nil, fmt.Errorf("%s is a %s: %w", id, o.Type, ErrObjectNotFound)
	}
	content, err := r.beginning(o, object.MaxCommit)
	if err != nil {
		return nil, err
	}
	c, err := object.ParseCommit(id, content)
	if err == nil && o.Size > object.MaxCommit {
		c.Message += object.Ellipsis
	}
	return c, err
}

// ReadTag returns the annotated tag with an id. The error is ErrObjectNotFound if there is none, and ErrFileTooLarge if it has more than 4
// MiB. Callers must not change the tag.
func (r *Repository) ReadTag(ctx context.Context, id string) (*object.Tag, error) {
	if err := object.CheckIDs(id); err != nil {
		return nil, err
	}
	size := func(t *object.Tag) int { return len(t.Message) + len(t.Name) + len(t.Type) + 400 }
	return recall.Find(ctx, r.Results(), "reading a tag", id, size, func(ctx context.Context) (*object.Tag, error) {
		o, content, err := r.Read(ctx, id, object.MaxCommit)
		if err != nil {
			return nil, err
		}
		if o.Type != "tag" {
			return nil, fmt.Errorf("%s is a %s: %w", id, o.Type, ErrObjectNotFound)
		}
		return object.ParseTag(id, content)
	})
}
