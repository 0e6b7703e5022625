package epics

import (
	"context"
	"time"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/epic"
	"github.com/forgeplane/forgeplane/internal/note"
	"github.com/forgeplane/forgeplane/internal/stateevent"
)

// turn closes or reopens an epic for a user and records the change, in the transaction that stores the epic. It does nothing if the epic already has
// the new state.
func (f *Family) turn(ctx context.Context, e *epic.Epic, event string, by database.User) error {
	var into stateevent.State
	switch {
	case event == "close" && e.State == epic.Opened:
		e.State, e.Closer, e.ClosedAt, into = epic.Closed, by, e.Updated, stateevent.Closed
	case event == "reopen" && e.State == epic.Closed:
		e.State, e.Closer, e.ClosedAt, into = epic.Opened, database.User{}, time.Time{}, stateevent.Reopened
	default:
		return nil
	}
	err := f.Activity.StateEvents.Add(ctx, &stateevent.Event{In: e.In, Of: e.Item(), State: into, User: by, Created: e.Updated})
	if err != nil {
		return err
	}
	return f.Activity.Notes.Create(ctx, &note.Note{
		In: e.In, On: e.Item(), Individual: true, System: true, Body: string(into), Author: by, Created: e.Updated,
	})
}
