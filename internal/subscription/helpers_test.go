package subscription_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/subscription"
)

const userMax, userDana = 7, 8

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// open opens a store until the test ends.
func open(tb testing.TB, name string) *subscription.Store {
	tb.Helper()
	return openAt(tb, name, clock.RealClock{})
}

// openAt opens a store with a clock of the test.
func openAt(tb testing.TB, name string, c clock.PassiveClock) *subscription.Store {
	tb.Helper()
	return subscription.New(databasetest.Open(tb, name, subscription.Migrations()), c)
}

func label(id int64) database.Subject {
	return database.Subject{Kind: subscription.KindLabel, ID: id, UID: uid(id)}
}

// uid returns the UID of the object with an id, and who the user with an id.
func uid(id int64) types.UID { return types.UID(fmt.Sprint("uid-", id)) }

func who(id int64) database.User { return database.User{ID: id, UID: uid(id)} }

func uids(ids ...int64) []types.UID {
	all := make([]types.UID, len(ids))
	for i, id := range ids {
		all[i] = uid(id)
	}
	return all
}

func expectSubscribed(t *testing.T, store *subscription.Store, user int64, ids ...int64) {
	t.Helper()
	g := NewWithT(t)
	got, err := store.Subscribed(t.Context(), who(user), subscription.KindLabel)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(sets.List(got)).To(Equal(sets.List(sets.New(uids(ids...)...))))
}
