// Package activitytest opens activity databases for tests of what uses one.
package activitytest

import (
	"path/filepath"
	"testing"

	"github.com/forgeplane/forgeplane/internal/activity"
)

// Open opens a new, empty database for the time of a test.
func Open(tb testing.TB) *activity.Store {
	tb.Helper()
	store, err := activity.Open(tb.Context(), activity.Options{Database: filepath.Join(tb.TempDir(), "activity.db")})
	if err != nil {
		tb.Fatalf("opening an activity database: %v", err)
	}
	tb.Cleanup(func() {
		if err := store.Close(); err != nil {
			tb.Errorf("closing the activity database: %v", err)
		}
	})
	return store
}
