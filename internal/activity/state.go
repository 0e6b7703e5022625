package activity

import (
	"context"
	"time"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/note"
	"github.com/forgeplane/forgeplane/internal/stateevent"
)

// RecordState adds the state event and the system note of a change of the state of an item, in the transaction of the change.
func (s Stores) RecordState(ctx context.Context, in database.Subject, of database.Item, became stateevent.State, by database.User, at time.Time) error {
	if err := s.StateEvents.Add(ctx, &stateevent.Event{In: in, Of: of, State: became, User: by, Created: at}); err != nil {
		return err
	}
	return s.Notes.Create(ctx, &note.Note{In: in, On: of, Individual: true, System: true, Body: string(became), Author: by, Created: at})
}
