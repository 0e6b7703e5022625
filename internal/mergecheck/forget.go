package mergecheck

import (
	"context"
	"errors"
	"fmt"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

// Forget deletes the refs of a merge request that was deleted. It does nothing if they do not exist.
func (c *Checker) Forget(ctx context.Context, m mergerequest.MergeRequest) error {
	r, err := c.repository(ctx, m.In)
	if err != nil || r == nil {
		return err
	}
	ctx, end, err := r.BeginWrite(ctx)
	if err != nil {
		return err
	}
	defer end()
	return forget(ctx, r, m.IID)
}

// forget is Forget in a write that has begun.
func forget(ctx context.Context, r *git.Repository, iid int64) error {
	names := []string{Head(iid), Merge(iid)}
	kept, err := heads(ctx, r, names...)
	if err != nil {
		return err
	}
	var all []update.Ref
	for i, id := range kept {
		if id != "" {
			all = append(all, update.Ref{Name: names[i], Old: id})
		}
	}
	err = refs.Apply(ctx, r, all...)
	if err != nil && !errors.Is(err, refs.ErrMoved) { // a check that moved them deletes them when it finds no merge request
		return fmt.Errorf("deleting the refs of merge request !%d: %w", iid, err)
	}
	return nil
}
