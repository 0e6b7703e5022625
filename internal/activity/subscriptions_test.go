package activity_test

import (
	"sync"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/forgeplane/forgeplane/internal/activity"
)

const userMax, userDana = 7, 8

func expectSubscribed(t *testing.T, store *activity.Store, user int64, ids ...int64) {
	t.Helper()
	g := NewWithT(t)
	got, err := store.Subscribed(t.Context(), who(user), activity.KindLabel)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(sets.List(got)).To(Equal(sets.List(sets.New(uids(ids...)...))))
}

func TestASubscriptionIsMadeAndEndedOnce(t *testing.T) {
	onEachEngine(t, func(t *testing.T, database string) {
		g, store := NewWithT(t), open(t, database)
		expectSubscribed(t, store, userMax)
		g.Expect(store.Subscribe(t.Context(), who(userMax), label(1))).To(BeTrue())
		expectSubscribed(t, store, userMax, 1)
		g.Expect(store.Subscribe(t.Context(), who(userMax), label(1))).To(BeFalse())
		g.Expect(store.Subscribe(t.Context(), who(userMax), label(2))).To(BeTrue())
		g.Expect(store.Subscribe(t.Context(), who(userDana), label(1))).To(BeTrue())
		expectSubscribed(t, store, userMax, 1, 2)
		expectSubscribed(t, store, userDana, 1)
		g.Expect(store.Unsubscribe(t.Context(), who(userMax), label(1))).To(BeTrue())
		expectSubscribed(t, store, userMax, 2)
		g.Expect(store.Unsubscribe(t.Context(), who(userMax), label(1))).To(BeFalse())
		g.Expect(store.Unsubscribe(t.Context(), who(99), label(1))).To(BeFalse())
		expectSubscribed(t, store, userDana, 1)
	})
}

func TestKindsAreApart(t *testing.T) {
	onEachEngine(t, func(t *testing.T, database string) {
		g, store := NewWithT(t), open(t, database)
		g.Expect(store.Subscribe(t.Context(), who(userMax), activity.Subject{Kind: "issue", ID: 1, UID: uid(1)})).To(BeTrue())
		expectSubscribed(t, store, userMax)
		g.Expect(store.RemoveSubscriptions(t.Context(), label(1))).To(Succeed())
		g.Expect(store.Subscribed(t.Context(), who(userMax), "issue")).To(HaveKey(uid(1)))
	})
}

func TestMovedSubscriptionsLeaveEachSubscriberOnce(t *testing.T) {
	onEachEngine(t, func(t *testing.T, database string) {
		g, store := NewWithT(t), open(t, database)
		const many = 1234
		for user := range int64(many) {
			g.Expect(store.Subscribe(t.Context(), who(user), label(1))).To(BeTrue())
		}
		g.Expect(store.Subscribe(t.Context(), who(userMax), label(2))).To(BeTrue())
		g.Expect(store.Subscribe(t.Context(), who(many), label(2))).To(BeTrue())
		expectSubscribed(t, store, userMax, 1, 2)
		g.Expect(store.MoveSubscriptions(t.Context(), label(1), label(2))).To(Succeed())
		for user := range int64(many + 1) {
			expectSubscribed(t, store, user, 2)
		}
		g.Expect(store.MoveSubscriptions(t.Context(), label(1), label(2))).To(Succeed(), "nothing is left to move")
		g.Expect(store.MoveSubscriptions(t.Context(), label(2), label(2))).To(Succeed(), "to where it is")
		expectSubscribed(t, store, userMax, 2)
	})
}

func TestRemovedSubscriptionsAreThoseOfTheSubject(t *testing.T) {
	onEachEngine(t, func(t *testing.T, database string) {
		g, store := NewWithT(t), open(t, database)
		for _, user := range []int64{userMax, userDana} {
			for _, id := range []int64{1, 2} {
				g.Expect(store.Subscribe(t.Context(), who(user), label(id))).To(BeTrue())
			}
		}
		for range 2 {
			g.Expect(store.RemoveSubscriptions(t.Context(), label(1))).To(Succeed())
			expectSubscribed(t, store, userMax, 2)
			expectSubscribed(t, store, userDana, 2)
		}
	})
}

func TestOfManyWhoSubscribeTheSameAtOnceOneChangesIt(t *testing.T) {
	onEachEngine(t, func(t *testing.T, database string) {
		g := NewWithT(t)
		stores := []*activity.Store{open(t, database), open(t, database)}
		for _, change := range []func(*activity.Store) (bool, error){
			func(s *activity.Store) (bool, error) { return s.Subscribe(t.Context(), who(userMax), label(1)) },
			func(s *activity.Store) (bool, error) { return s.Unsubscribe(t.Context(), who(userMax), label(1)) },
		} {
			var group sync.WaitGroup
			var changes atomic.Int32
			errs := make(chan error, 64)
			for i := range cap(errs) {
				group.Go(func() {
					changed, err := change(stores[i%len(stores)])
					if changed {
						changes.Add(1)
					}
					errs <- err
				})
			}
			group.Wait()
			for range cap(errs) {
				g.Expect(<-errs).NotTo(HaveOccurred())
			}
			g.Expect(changes.Load()).To(BeEquivalentTo(1))
		}
	})
}
