package activity_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/internal/activity"
)

// objects are those that are gone, and those that were made anew; all others exist, and have from the beginning.
type objects struct {
	gone []int64
	anew map[int64][]activity.Known
	err  error
}

func (o *objects) having(_ context.Context, id int64) ([]activity.Known, error) {
	switch known, ok := o.anew[id]; {
	case o.err != nil || slices.Contains(o.gone, id):
		return nil, o.err
	case ok:
		return known, nil
	default:
		return []activity.Known{{UID: uid(id)}}, nil
	}
}

// world is a sweeper of labels and trigger tokens.
type world struct {
	labels, tokens, users objects
	clock                 *clocktesting.FakeClock
	*activity.Sweeper
}

func newWorld(store *activity.Store) *world {
	w := &world{clock: clocktesting.NewFakeClock(time.Now())}
	w.Sweeper = activity.NewSweeper(store, map[string]activity.Having{
		activity.KindLabel: w.labels.having, activity.KindTriggerToken: w.tokens.having,
		activity.KindUser: w.users.having,
	}, w.clock, logr.Discard())
	return w
}

// pass lets hours pass, each with a look.
func (w *world) pass(t *testing.T, hours int) {
	t.Helper()
	for range hours {
		w.clock.Step(time.Hour)
		NewWithT(t).Expect(w.Look(t.Context())).To(Succeed())
	}
}

func TestWhatIsGoneForADayLeavesNoRows(t *testing.T) {
	onEachEngine(t, func(t *testing.T, database string) {
		g, store := NewWithT(t), open(t, database)
		const many = 1234
		w := newWorld(store)
		all := make([]int64, 0, many)
		for id := int64(1); id <= many; id++ {
			g.Expect(store.Subscribe(t.Context(), who(userMax), label(id))).To(BeTrue())
			all = append(all, id)
		}
		other := activity.Subject{Kind: "issue", ID: 1, UID: uid(1)}
		g.Expect(store.Subscribe(t.Context(), who(userMax), other)).To(BeTrue())
		token := trigger(1)
		g.Expect(store.Use(t.Context(), token, time.Now())).To(Succeed())
		used := func() map[types.UID]time.Time {
			last, err := store.LastUsed(t.Context(), activity.KindTriggerToken, uid(1))
			g.Expect(err).NotTo(HaveOccurred())
			return last
		}

		w.pass(t, 30)
		expectSubscribed(t, store, userMax, all...)

		w.labels.gone = all[1:]
		w.tokens.gone = []int64{1}
		w.pass(t, 23)
		g.Expect(used()).To(HaveLen(1))
		expectSubscribed(t, store, userMax, all...)
		w.pass(t, 2)
		left, err := store.Subscribed(t.Context(), who(userMax), activity.KindLabel)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(len(left)+len(used())).To(Equal(many+1-1000), "one look does not take long")
		w.pass(t, 1)
		expectSubscribed(t, store, userMax, 1)
		g.Expect(used()).To(BeEmpty())
		g.Expect(store.Subscribed(t.Context(), who(userMax), "issue")).To(HaveKey(uid(1)))
	})
}

func TestWhatComesBackWithinADayKeepsItsRows(t *testing.T) {
	g, store := NewWithT(t), open(t, newSQLite(t))
	w := newWorld(store)
	g.Expect(store.Subscribe(t.Context(), who(userMax), label(1))).To(BeTrue())
	w.labels.gone = []int64{1}
	w.pass(t, 20)
	w.labels.gone = nil
	w.pass(t, 1)
	w.labels.gone = []int64{1}
	w.pass(t, 20)
	expectSubscribed(t, store, userMax, 1)
	w.pass(t, 5)
	expectSubscribed(t, store, userMax)
}

func TestWhileNobodyKnowsWhatExistsNothingIsRemoved(t *testing.T) {
	g, store := NewWithT(t), open(t, newSQLite(t))
	w := newWorld(store)
	g.Expect(store.Subscribe(t.Context(), who(userMax), label(1))).To(BeTrue())
	w.labels = objects{gone: []int64{1}, err: errors.New("no cache")}
	for range 30 {
		w.clock.Step(time.Hour)
		g.Expect(w.Look(t.Context())).To(MatchError("no cache"))
	}
	expectSubscribed(t, store, userMax, 1)
}

func TestASweeperLooksEveryHourUntilItIsStopped(t *testing.T) {
	g, store := NewWithT(t), open(t, newSQLite(t))
	w := newWorld(store)
	g.Expect(store.Subscribe(t.Context(), who(userMax), label(1))).To(BeTrue())
	w.labels.gone = []int64{1}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Start(ctx) }()
	g.Eventually(w.clock.HasWaiters).Should(BeTrue())
	g.Eventually(func() (sets.Set[types.UID], error) {
		w.clock.Step(time.Hour)
		return store.Subscribed(t.Context(), who(userMax), activity.KindLabel)
	}).WithTimeout(20 * time.Second).Should(BeEmpty())
	stop()
	g.Eventually(ended).Should(Receive(BeNil()))
}
