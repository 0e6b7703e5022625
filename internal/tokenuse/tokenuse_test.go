package tokenuse_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/tokenuse"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func expectLastUsed(t *testing.T, store *tokenuse.Store, want map[int64]time.Time) {
	t.Helper()
	g := NewWithT(t)
	got, err := store.LastUsed(t.Context(), tokenuse.KindTriggerToken, uid(1), uid(2), uid(3))
	g.Expect(err).NotTo(HaveOccurred())
	expected := map[types.UID]time.Time{}
	for id, at := range want {
		expected[uid(id)] = at
	}
	g.Expect(got).To(Equal(expected))
}

// uid returns the UID of the token with an id.
func uid(id int64) types.UID { return types.UID(fmt.Sprint("uid-", id)) }

// open opens a store until the test ends.
func open(t *testing.T, name string) *tokenuse.Store {
	t.Helper()
	return tokenuse.New(databasetest.Open(t, name, tokenuse.Migrations()))
}

func trigger(id int64) database.Subject {
	return database.Subject{Kind: tokenuse.KindTriggerToken, ID: id, UID: uid(id)}
}

func TestLastUsed_returnsLatestUse(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, store, other := NewWithT(t), open(t, name), open(t, name)
		expectLastUsed(t, store, map[int64]time.Time{})
		g.Expect(store.Use(t.Context(), trigger(1), noon)).To(Succeed())
		g.Expect(store.Use(t.Context(), database.Subject{Kind: "label", ID: 1, UID: uid(1)}, noon.Add(time.Hour))).To(Succeed())
		g.Expect(store.Use(t.Context(), trigger(2), noon.In(time.FixedZone("", 3600)))).To(Succeed())
		expectLastUsed(t, store, map[int64]time.Time{1: noon, 2: noon})

		g.Expect(store.Use(t.Context(), trigger(1), noon.Add(time.Hour))).To(Succeed())
		g.Expect(other.Use(t.Context(), trigger(1), noon.Add(time.Minute))).To(Succeed())
		expectLastUsed(t, other, map[int64]time.Time{1: noon.Add(time.Hour), 2: noon})
	})
}

func TestLastUsed_distinguishesFractionsOfSeconds(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, earlier, later := NewWithT(t), open(t, name), open(t, name)
		for id, fractions := range map[int64][2]time.Duration{
			1: {0, time.Microsecond},
			2: {500 * time.Millisecond, 510 * time.Millisecond},
			3: {999999 * time.Microsecond, time.Second},
		} {
			g.Expect(later.Use(t.Context(), trigger(id), noon.Add(fractions[1]))).To(Succeed())
			g.Expect(earlier.Use(t.Context(), trigger(id), noon.Add(fractions[0]))).To(Succeed())
		}
		expectLastUsed(t, earlier, map[int64]time.Time{
			1: noon.Add(time.Microsecond), 2: noon.Add(510 * time.Millisecond), 3: noon.Add(time.Second),
		})
	})
}

func TestRemove_forgetsUses(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, store := NewWithT(t), open(t, name)
		g.Expect(store.Use(t.Context(), trigger(1), noon)).To(Succeed())
		g.Expect(store.Use(t.Context(), trigger(2), noon)).To(Succeed())
		for range 2 {
			g.Expect(store.Remove(t.Context(), trigger(1))).To(Succeed())
			expectLastUsed(t, store, map[int64]time.Time{2: noon})
		}
		g.Expect(store.Use(t.Context(), trigger(1), noon.Add(time.Second))).To(Succeed())
		expectLastUsed(t, store, map[int64]time.Time{1: noon.Add(time.Second), 2: noon})
		g.Expect(store.LastUsed(t.Context(), tokenuse.KindTriggerToken)).To(BeEmpty())
	})
}
