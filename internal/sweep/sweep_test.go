package sweep_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/subscription"
	"github.com/forgeplane/forgeplane/internal/sweep"
	"github.com/forgeplane/forgeplane/internal/tokenuse"
	"github.com/forgeplane/forgeplane/test/patience"
)

// objects exist from the beginning, except the objects that are gone and the objects that were recreated.
type objects struct {
	gone      []int64
	recreated map[int64]types.UID
	err       error
}

func (o *objects) having(_ context.Context, id int64) ([]types.UID, error) {
	switch known, ok := o.recreated[id]; {
	case o.err != nil || slices.Contains(o.gone, id):
		return nil, o.err
	case ok:
		return []types.UID{known}, nil
	default:
		return []types.UID{uid(id)}, nil
	}
}

// world is a sweeper of subscriptions to labels and uses of trigger tokens.
type world struct {
	labels, tokens objects
	clock          *clocktesting.FakeClock
	expired        int
	subscriptions  *subscription.Store
	uses           *tokenuse.Store
	*sweep.Sweeper
}

func newWorld(t *testing.T, name string) *world {
	t.Helper()
	db := databasetest.Open(t, name, subscription.Migrations(), tokenuse.Migrations())
	w := &world{clock: clocktesting.NewFakeClock(time.Now()), uses: tokenuse.New(db)}
	// An answer is remembered for a second, so it expires when an hour passes.
	w.subscriptions = subscription.New(db, w.clock)
	w.Sweeper = sweep.New([]sweep.Objects{
		{Kind: subscription.KindLabel, Having: w.labels.having, Rows: w.subscriptions.Subjects()},
		{Kind: tokenuse.KindTriggerToken, Having: w.tokens.having, Rows: w.uses.Subjects()},
	}, func(context.Context) error { w.expired++; return nil }, w.clock, logr.Discard())
	return w
}

// pass lets hours pass, and calls Look after each hour.
func (w *world) pass(t *testing.T, hours int) {
	t.Helper()
	for range hours {
		w.clock.Step(time.Hour)
		NewWithT(t).Expect(w.Look(t.Context())).To(Succeed())
	}
}

func TestSweeper_removesRowsAfterOneDay(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, w := NewWithT(t), newWorld(t, name)
		const many = 1234
		all := make([]int64, 0, many)
		for id := int64(1); id <= many; id++ {
			g.Expect(w.subscriptions.Subscribe(t.Context(), who(userMax), label(id))).To(BeTrue())
			all = append(all, id)
		}
		other := database.Subject{Kind: "issue", ID: 1, UID: uid(1)}
		g.Expect(w.subscriptions.Subscribe(t.Context(), who(userMax), other)).To(BeTrue())
		token := trigger(1)
		g.Expect(w.uses.Use(t.Context(), token, time.Now())).To(Succeed())
		used := func() map[types.UID]time.Time {
			last, err := w.uses.LastUsed(t.Context(), tokenuse.KindTriggerToken, uid(1))
			g.Expect(err).NotTo(HaveOccurred())
			return last
		}

		w.pass(t, 30)
		expectSubscribed(t, w, userMax, all...)

		w.labels.gone = all[1:]
		w.tokens.gone = []int64{1}
		w.pass(t, 23)
		g.Expect(used()).To(HaveLen(1))
		expectSubscribed(t, w, userMax, all...)
		w.pass(t, 2)
		left, err := w.subscriptions.Subscribed(t.Context(), who(userMax), subscription.KindLabel)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(len(left)+len(used())).To(Equal(many+1-1000), "one look does not take long")
		w.pass(t, 1)
		expectSubscribed(t, w, userMax, 1)
		g.Expect(used()).To(BeEmpty())
		g.Expect(w.subscriptions.Subscribed(t.Context(), who(userMax), "issue")).To(HaveKey(uid(1)))
	})
}

func TestSweeper_keepsRowsOfObjectsThatReturn(t *testing.T) {
	g, w := NewWithT(t), newWorld(t, databasetest.SQLite(t))
	g.Expect(w.subscriptions.Subscribe(t.Context(), who(userMax), label(1))).To(BeTrue())
	w.labels.gone = []int64{1}
	w.pass(t, 20)
	w.labels.gone = nil
	w.pass(t, 1)
	w.labels.gone = []int64{1}
	w.pass(t, 20)
	expectSubscribed(t, w, userMax, 1)
	w.pass(t, 5)
	expectSubscribed(t, w, userMax)
}

func TestSweeper_removesNothingOnError(t *testing.T) {
	g, w := NewWithT(t), newWorld(t, databasetest.SQLite(t))
	g.Expect(w.subscriptions.Subscribe(t.Context(), who(userMax), label(1))).To(BeTrue())
	w.labels = objects{gone: []int64{1}, err: errors.New("no cache")}
	for range 30 {
		w.clock.Step(time.Hour)
		g.Expect(w.Look(t.Context())).To(MatchError("no cache"))
	}
	expectSubscribed(t, w, userMax, 1)
}

// stuck are the rows of labels, of which it cannot remove those of label 1.
type stuck struct{ sweep.Rows }

func (s stuck) Remove(ctx context.Context, subject database.Subject) error {
	if subject.ID == 1 {
		return errors.New("too many rows")
	}
	return s.Rows.Remove(ctx, subject)
}

func TestSweeper_goesOnAfterErrorOfOneSubject(t *testing.T) {
	g, w := NewWithT(t), newWorld(t, databasetest.SQLite(t))
	w.Sweeper = sweep.New([]sweep.Objects{
		{Kind: subscription.KindLabel, Having: w.labels.having, Rows: stuck{w.subscriptions.Subjects()}},
		{Kind: tokenuse.KindTriggerToken, Having: w.tokens.having, Rows: w.uses.Subjects()},
	}, nil, w.clock, logr.Discard())
	w.labels.gone, w.tokens.gone = []int64{1, 2}, []int64{1, 2}
	for id := int64(1); id <= 2; id++ {
		g.Expect(w.subscriptions.Subscribe(t.Context(), who(userMax), label(id))).To(BeTrue())
	}
	g.Expect(w.uses.Use(t.Context(), trigger(1), noon)).To(Succeed())

	w.pass(t, 24)
	w.clock.Step(time.Hour)
	g.Expect(w.Look(t.Context())).To(MatchError("too many rows"))
	expectSubscribed(t, w, userMax, 1)
	expectLastUsed(t, w, map[int64]time.Time{})

	g.Expect(w.uses.Use(t.Context(), trigger(2), noon)).To(Succeed())
	for range 25 {
		w.clock.Step(time.Hour)
		g.Expect(w.Look(t.Context())).To(MatchError("too many rows"), "it tries again at each look")
	}
	expectLastUsed(t, w, map[int64]time.Time{})
}

func TestSweeper_removesRowsOfRecreatedObjects(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, w := NewWithT(t), newWorld(t, name)
		g.Expect(w.subscriptions.Subscribe(t.Context(), who(7), label(1))).To(BeTrue())
		g.Expect(w.uses.Use(t.Context(), trigger(1), noon)).To(Succeed())
		w.labels.recreated = map[int64]types.UID{1: "another"}
		w.tokens.recreated = w.labels.recreated
		another := label(1)
		another.UID = "another"
		g.Expect(w.subscriptions.Subscribe(t.Context(), who(7), another)).To(BeTrue(), "it has nothing of the former one")
		w.pass(t, 26)
		g.Expect(w.subscriptions.Subscribed(t.Context(), who(7), subscription.KindLabel)).To(And(HaveLen(1), HaveKey(another.UID)))
		expectLastUsed(t, w, map[int64]time.Time{})
	})
}

func TestSweeper_looksEveryHourUntilStopped(t *testing.T) {
	g, w := NewWithT(t), newWorld(t, databasetest.SQLite(t))
	g.Expect(w.subscriptions.Subscribe(t.Context(), who(userMax), label(1))).To(BeTrue())
	w.labels.gone = []int64{1}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Start(ctx) }()
	g.Eventually(w.clock.HasWaiters).Should(BeTrue())
	g.Eventually(func() (sets.Set[types.UID], error) {
		w.clock.Step(time.Hour)
		return w.subscriptions.Subscribed(t.Context(), who(userMax), subscription.KindLabel)
	}).WithTimeout(patience.Wait).Should(BeEmpty())
	stop()
	g.Eventually(ended).Should(Receive(BeNil()))
}

const userMax = 7

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// uid returns the UID of the object with an id, and who the user with an id.
func uid(id int64) types.UID { return types.UID(fmt.Sprint("uid-", id)) }

func who(id int64) database.User { return database.User{ID: id, UID: uid(id)} }

func label(id int64) database.Subject {
	return database.Subject{Kind: subscription.KindLabel, ID: id, UID: uid(id)}
}

func trigger(id int64) database.Subject {
	return database.Subject{Kind: tokenuse.KindTriggerToken, ID: id, UID: uid(id)}
}

func expectSubscribed(t *testing.T, w *world, user int64, ids ...int64) {
	t.Helper()
	g := NewWithT(t)
	got, err := w.subscriptions.Subscribed(t.Context(), who(user), subscription.KindLabel)
	g.Expect(err).NotTo(HaveOccurred())
	want := sets.New[types.UID]()
	for _, id := range ids {
		want.Insert(uid(id))
	}
	g.Expect(sets.List(got)).To(Equal(sets.List(want)))
}

func expectLastUsed(t *testing.T, w *world, want map[int64]time.Time) {
	t.Helper()
	g := NewWithT(t)
	got, err := w.uses.LastUsed(t.Context(), tokenuse.KindTriggerToken, uid(1), uid(2), uid(3))
	g.Expect(err).NotTo(HaveOccurred())
	expected := map[types.UID]time.Time{}
	for id, at := range want {
		expected[uid(id)] = at
	}
	g.Expect(got).To(Equal(expected))
}
