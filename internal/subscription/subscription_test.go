package subscription_test

import (
	"sync"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/subscription"
)

func TestSubscription_beginsAndEndsOnce(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, store := NewWithT(t), open(t, name)
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

func TestKinds_areIndependent(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, store := NewWithT(t), open(t, name)
		g.Expect(store.Subscribe(t.Context(), who(userMax), database.Subject{Kind: "issue", ID: 1, UID: uid(1)})).To(BeTrue())
		expectSubscribed(t, store, userMax)
		g.Expect(store.Remove(t.Context(), label(1))).To(Succeed())
		g.Expect(store.Subscribed(t.Context(), who(userMax), "issue")).To(HaveKey(uid(1)))
	})
}

func TestMove_keepsEachSubscriberOnce(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, store := NewWithT(t), open(t, name)
		const many = 1234
		for user := range int64(many) {
			g.Expect(store.Subscribe(t.Context(), who(user), label(1))).To(BeTrue())
		}
		g.Expect(store.Subscribe(t.Context(), who(userMax), label(2))).To(BeTrue())
		g.Expect(store.Subscribe(t.Context(), who(many), label(2))).To(BeTrue())
		expectSubscribed(t, store, userMax, 1, 2)
		g.Expect(store.Move(t.Context(), label(1), label(2))).To(Succeed())
		for user := range int64(many + 1) {
			expectSubscribed(t, store, user, 2)
		}
		g.Expect(store.Move(t.Context(), label(1), label(2))).To(Succeed(), "nothing is left to move")
		g.Expect(store.Move(t.Context(), label(2), label(2))).To(Succeed(), "to where it is")
		expectSubscribed(t, store, userMax, 2)
	})
}

func TestRemove_endsAllSubscriptionsToSubject(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, store := NewWithT(t), open(t, name)
		for _, user := range []int64{userMax, userDana} {
			for _, id := range []int64{1, 2} {
				g.Expect(store.Subscribe(t.Context(), who(user), label(id))).To(BeTrue())
			}
		}
		for range 2 {
			g.Expect(store.Remove(t.Context(), label(1))).To(Succeed())
			expectSubscribed(t, store, userMax, 2)
			expectSubscribed(t, store, userDana, 2)
		}
	})
}

func TestSubscribe_reportsOneChangeForConcurrentCalls(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		stores := []*subscription.Store{open(t, name), open(t, name)}
		for _, change := range []func(*subscription.Store) (bool, error){
			func(s *subscription.Store) (bool, error) { return s.Subscribe(t.Context(), who(userMax), label(1)) },
			func(s *subscription.Store) (bool, error) { return s.Unsubscribe(t.Context(), who(userMax), label(1)) },
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
