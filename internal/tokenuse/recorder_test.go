package tokenuse_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/tokenuse"
	"github.com/forgeplane/forgeplane/test/patience"
)

// run runs a recorder until the test ends.
func run(t *testing.T, r *tokenuse.Recorder) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
}

// last returns when a trigger token was last used.
func last(t *testing.T, store *tokenuse.Store, id int64) func() time.Time {
	t.Helper()
	return func() time.Time {
		got, err := store.LastUsed(t.Context(), tokenuse.KindTriggerToken, uid(id))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return got[uid(id)]
	}
}

func TestRecorder_writesOncePerMinute(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, store := NewWithT(t), open(t, name)
		recorder := tokenuse.NewRecorder(store, logr.Discard())
		for second := range 150 {
			recorder.Note(trigger(1), noon.Add(time.Duration(second)*time.Second))
		}
		recorder.Note(trigger(2), noon)
		g.Expect(last(t, store, 1)()).To(BeZero(), "nothing is written before it runs")
		run(t, recorder)
		g.Eventually(last(t, store, 2)).WithTimeout(patience.Wait).Should(Equal(noon))
		g.Expect(last(t, store, 1)()).To(Equal(noon.Add(2 * time.Minute)))
	})
}

func TestRecorder_neverWaits(t *testing.T) {
	g, store := NewWithT(t), open(t, databasetest.SQLite(t))
	recorder := tokenuse.NewRecorder(store, logr.Discard())
	const many = 5000
	for id := range int64(many) {
		recorder.Note(trigger(id), noon)
	}
	run(t, recorder)
	g.Eventually(func() time.Time {
		recorder.Note(trigger(many-1), noon.Add(time.Second))
		return last(t, store, many-1)()
	}).WithTimeout(patience.Wait).Should(Equal(noon.Add(time.Second)), "a use that was lost is followed by one that is not")
	g.Expect(last(t, store, 1)()).To(Equal(noon))
}

func TestRecorder_triesAgainAfterAnError(t *testing.T) {
	g := NewWithT(t)
	name := databasetest.SQLite(t)
	db, err := database.Open(t.Context(), name, tokenuse.Migrations())
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(db.Close()).To(Succeed()) }()
	said := make(chan string, 1)
	recorder := tokenuse.NewRecorder(tokenuse.New(db), funcr.New(func(_, args string) { said <- args }, funcr.Options{}))
	sql := databasetest.SQL(t, name)
	_, err = sql.ExecContext(t.Context(), "ALTER TABLE uses RENAME TO away")
	g.Expect(err).NotTo(HaveOccurred())
	run(t, recorder)
	recorder.Note(trigger(1), noon)
	g.Eventually(said).WithTimeout(patience.Wait).Should(Receive(ContainSubstring("Failed to record the use of a token")))
	_, err = sql.ExecContext(t.Context(), "ALTER TABLE away RENAME TO uses")
	g.Expect(err).NotTo(HaveOccurred())
	recorder.Note(trigger(1), noon.Add(time.Second))
	g.Eventually(last(t, tokenuse.New(db), 1)).WithTimeout(patience.Wait).Should(Equal(noon.Add(time.Second)))
}

func TestLastUsed_readsAnyNumberOfTokens(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, store := NewWithT(t), open(t, name)
		const many = 2500
		g.Expect(store.Use(t.Context(), trigger(1), noon)).To(Succeed())
		g.Expect(store.Use(t.Context(), trigger(many), noon)).To(Succeed())
		var uids []types.UID
		for id := range int64(many + 1) {
			uids = append(uids, uid(id))
		}
		g.Expect(store.LastUsed(t.Context(), tokenuse.KindTriggerToken, uids...)).To(Equal(map[types.UID]time.Time{uid(1): noon, uid(many): noon}))
	})
}
