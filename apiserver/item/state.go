package item

import (
	"context"
	"time"

	"github.com/forgeplane/forgeplane/internal/activity"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/stateevent"
)

// RecordState is RecordState of the stores.
func RecordState(ctx context.Context, s activity.Stores, in database.Subject, of database.Item, became stateevent.State, by database.User, at time.Time) error {
	return s.RecordState(ctx, in, of, became, by, at)
}
