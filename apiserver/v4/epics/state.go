package epics

import (
	"context"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/epic"
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
	return item.RecordState(ctx, f.Activity, e.In, e.Item(), into, by, e.Updated)
}
