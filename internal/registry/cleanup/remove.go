package cleanup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/record"
)

// tagsAtOnce is the number of tags that are deleted between two records of the progress.
const tagsAtOnce = 100

// remove deletes the selected ones of all tags of a repository.
func (a *attempt) remove(ctx context.Context, of record.Repository, images *registry.Images, selected []Tag, all int, since time.Time) error {
	now := &a.current
	// An earlier attempt may have ended before it could record everything, or could not read some tags.
	switch left := now.Selected - now.Deleted - int64(len(selected)); {
	case !now.Decided:
		now.Decided, now.Selected = true, int64(len(selected))
	case left > 0:
		now.Deleted += left
	default:
		now.Selected -= left
	}
	before := now.Deleted
	now.Kept = int64(all-len(selected)) - now.failed
	if err := a.record(ctx, of); err != nil {
		return err
	}
	for some := range slices.Chunk(selected, tagsAtOnce) {
		each, err := images.UntagAll(ctx, tagged(some), since)
		a.tell(of, some, each)
		if err != nil {
			return err
		}
		if err := a.count(ctx, each); err != nil {
			return err
		}
		if err := a.record(ctx, of); err != nil {
			return err
		}
		a.report(a.total())
	}
	now.Done = now.failed == 0
	now.Kept = int64(all) - (now.Deleted - before) - now.failed
	return a.record(ctx, of)
}

func tagged(tags []Tag) []registry.Tagged {
	all := make([]registry.Tagged, len(tags))
	for i, t := range tags {
		all[i] = registry.Tagged{Name: t.Name, Digest: t.Digest}
	}
	return all
}

// tell says which tags were deleted.
func (a *attempt) tell(of record.Repository, tags []Tag, each []error) {
	var deleted []string
	for i, t := range tags {
		if each[i] == nil {
			deleted = append(deleted, t.Name)
		}
	}
	if a.run.Deleted != nil && len(deleted) > 0 {
		a.run.Deleted(of.Name, deleted)
	}
}

// count adds the results of some deletions. It returns an error if the storage does not answer.
func (a *attempt) count(ctx context.Context, each []error) error {
	failed := a.current.failed
	for _, err := range each {
		switch {
		case err == nil:
			a.current.Deleted++
			a.ended.Removed++
		case errors.Is(err, registry.ErrNoTag):
			a.current.Deleted++ // by another client
		case errors.Is(err, registry.ErrPushed):
			a.current.Kept++
		default:
			a.fail(err)
		}
	}
	if a.current.failed == failed {
		return nil
	}
	return a.registry.Check(ctx)
}

// record keeps the progress in the present repository.
func (a *attempt) record(ctx context.Context, of record.Repository) error {
	text, err := json.Marshal(a.current)
	if err != nil {
		return fmt.Errorf("recording the progress of a cleanup: %w", err)
	}
	return a.registry.Records.RecordCleanup(ctx, of.ID, a.run.ID, string(text))
}
