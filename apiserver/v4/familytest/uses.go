package familytest

import (
	"context"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/internal/activity"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
)

// Activity opens an activity database of its own for a test.
func Activity(t testing.TB, c clock.PassiveClock) activity.Stores {
	t.Helper()
	return ActivityIn(t, databasetest.SQLite(t), c)
}

// ActivityIn opens the activity database with a name for a test.
func ActivityIn(t testing.TB, name string, c clock.PassiveClock) activity.Stores {
	t.Helper()
	s, err := activity.Open(t.Context(), name, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Database.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Uses keeps when tokens were last used in memory, as a tokenuse.Recorder and a tokenuse.Store do in the activity database.
type Uses struct {
	// Asked are the UIDs of the tokens that were last asked for.
	Asked []types.UID
	// Broken, unless nil, is the error of the database.
	Broken error

	mu   sync.Mutex
	last map[database.Subject]time.Time
}

// Note implements auth.Uses.
func (u *Uses) Note(token database.Subject, at time.Time) {
	token.ID = 0
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last[token] = at
}

// Use implements tokenuse.Writer.
func (u *Uses) Use(_ context.Context, token database.Subject, at time.Time) error {
	u.Note(token, at)
	return nil
}

// LastUsed implements tokenuse.Reader.
func (u *Uses) LastUsed(_ context.Context, kind string, uids ...types.UID) (map[types.UID]time.Time, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.Asked = uids
	if u.Broken != nil {
		return nil, u.Broken
	}
	last := map[types.UID]time.Time{}
	for _, uid := range uids {
		if at, used := u.last[database.Subject{Kind: kind, UID: uid}]; used {
			last[uid] = at
		}
	}
	return last, nil
}
