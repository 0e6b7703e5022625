package follower_test

import (
	"testing"
	"testing/fstest"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/follower"
)

func TestChoices_areKeptForEachUserAndItem(t *testing.T) {
	table := &fstest.MapFile{Data: []byte("CREATE TABLE followers (thing_id BIGINT, user_id BIGINT, user_uid TEXT, subscribed BOOLEAN, PRIMARY KEY (thing_id, user_uid))")}
	migrations := fstest.MapFS{"migrations/sqlite3/00001_followers.sql": table, "migrations/postgres/00001_followers.sql": table}
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		choices := follower.New(databasetest.Open(t, name, migrations), "followers", "thing_id")
		ann, bob := database.User{ID: 2, UID: "ann"}, database.User{ID: 3, UID: "bob"}
		expect := func(id int64, u types.UID, wantOn, wantKnown bool) {
			t.Helper()
			on, known, err := choices.Subscribed(t.Context(), id, u)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect([]bool{on, known}).To(Equal([]bool{wantOn, wantKnown}))
		}
		g.Expect(choices.Subscribe(t.Context(), 1, ann, true)).To(Succeed())
		expect(1, bob.UID, false, false)
		g.Expect(choices.Subscribe(t.Context(), 1, bob, true)).To(Succeed())
		expect(1, bob.UID, true, true)
		g.Expect(choices.Subscribe(t.Context(), 1, bob, false)).To(Succeed())
		expect(1, bob.UID, false, true)
		expect(1, ann.UID, true, true)
		expect(2, ann.UID, false, false)
	})
}
