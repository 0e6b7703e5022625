package item

import (
	"context"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/activity"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/note"
)

// Remove deletes an item with what belongs to it, in one transaction. row deletes the row of the item, which must exist.
func Remove(ctx context.Context, s activity.Stores, i database.Item, row func(context.Context) error) error {
	return s.Database.Atomically(ctx, fmt.Sprintf("deleting %s", i), func(ctx context.Context, _ bun.IDB) error {
		// Draft notes and notes go first, as their writers lock one before the item.
		if err := s.DraftNotes.Remove(ctx, i); err != nil {
			return err
		}
		notes, err := s.Notes.Remove(ctx, i)
		if err != nil {
			return err
		}
		if err := row(ctx); err != nil {
			return err
		}
		late, err := s.Notes.Remove(ctx, i) // notes written before row locked the item
		if err == nil {
			err = s.DraftNotes.Remove(ctx, i)
		}
		if err != nil {
			return err
		}
		if err := s.Reactions.Remove(ctx, note.Kind, append(notes, late...)...); err != nil {
			return err
		}
		if err := s.Reactions.Remove(ctx, i.Kind, i.ID); err != nil {
			return err
		}
		return s.StateEvents.Remove(ctx, i)
	})
}

// CheckUnmodified refuses a Conditional request about an item that has changed since the time that the request names.
func CheckUnmodified(ctx context.Context, updated time.Time) error {
	if at := endpoint.UnmodifiedSince(ctx); !at.IsZero() && updated.Truncate(time.Second).After(at) {
		return endpoint.PreconditionFailed()
	}
	return nil
}
