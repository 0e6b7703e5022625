package subscription_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/subscription"
	"github.com/forgeplane/forgeplane/test/seed"
)

func TestStore_readsWritesOfOtherStoresSoon(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		t.Parallel() // it waits for seconds to pass
		g, one, other := NewWithT(t), open(t, name), open(t, name)
		expectSubscribed(t, other, userMax)
		for _, change := range []struct {
			make func() error
			want []int64
		}{
			{func() error { _, err := one.Subscribe(t.Context(), who(userMax), label(1)); return err }, []int64{1}},
			{func() error { return one.Move(t.Context(), label(1), label(2)) }, []int64{2}},
			{func() error { return one.Remove(t.Context(), label(2)) }, nil},
		} {
			g.Expect(change.make()).To(Succeed())
			expectSubscribed(t, one, userMax, change.want...)
			g.Eventually(func() ([]types.UID, error) {
				ids, err := other.Subscribed(t.Context(), who(userMax), subscription.KindLabel)
				return ids.UnsortedList(), err
			}).Should(ConsistOf(uids(change.want...)))
		}
	})
}

func TestStore_remembersAnswersForOneSecond(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		now := clocktesting.NewFakePassiveClock(noon)
		g, one, other := NewWithT(t), openAt(t, name, now), openAt(t, name, now)
		expectSubscribed(t, other, userMax)
		g.Expect(one.Subscribe(t.Context(), who(userMax), label(1))).To(BeTrue())
		now.SetTime(noon.Add(999 * time.Millisecond))
		expectSubscribed(t, other, userMax)
		now.SetTime(noon.Add(time.Second))
		expectSubscribed(t, other, userMax, 1)
	})
}

// Time stands still, so a wrong answer would never expire.
func TestStore_readsItsOwnWritesAtOnce(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, store := NewWithT(t), openAt(t, name, clocktesting.NewFakePassiveClock(noon))
		done := make(chan struct{})
		var readers sync.WaitGroup
		for range 2 {
			readers.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
						_, err := store.Subscribed(t.Context(), who(userMax), subscription.KindLabel)
						g.Expect(err).NotTo(HaveOccurred())
					}
				}
			})
		}
		for range 30 {
			g.Expect(store.Subscribe(t.Context(), who(userMax), label(1))).To(BeTrue())
			expectSubscribed(t, store, userMax, 1)
			g.Expect(store.Move(t.Context(), label(1), label(2))).To(Succeed())
			expectSubscribed(t, store, userMax, 2)
			g.Expect(store.Unsubscribe(t.Context(), who(userMax), label(2))).To(BeTrue())
			expectSubscribed(t, store, userMax)
		}
		close(done)
		readers.Wait()
	})
}

func TestStore_behavesLikeSets(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, now := NewWithT(t), clocktesting.NewFakePassiveClock(noon)
		stores := []*subscription.Store{openAt(t, name, now), openAt(t, name, now)}
		random := rand.New(rand.NewPCG(seed.Value(), 0))
		const users, labels = 3, 4
		var model [users]sets.Set[int64]
		for user := range model {
			model[user] = sets.New[int64]()
		}
		for range 400 {
			store := stores[random.IntN(len(stores))]
			user, one, other := random.Int64N(users), random.Int64N(labels), random.Int64N(labels)
			has := model[user].Has(one)
			switch random.IntN(8) {
			case 0, 1, 2:
				g.Expect(store.Subscribe(t.Context(), who(user), label(one))).To(Equal(!has))
				model[user].Insert(one)
			case 3, 4:
				g.Expect(store.Unsubscribe(t.Context(), who(user), label(one))).To(Equal(has))
				model[user].Delete(one)
			case 5, 6:
				g.Expect(store.Move(t.Context(), label(one), label(other))).To(Succeed())
				for _, ids := range model {
					if ids.Has(one) {
						ids.Delete(one)
						ids.Insert(other)
					}
				}
			case 7:
				g.Expect(store.Remove(t.Context(), label(one))).To(Succeed())
				for _, ids := range model {
					ids.Delete(one)
				}
			}
			for user, ids := range model {
				expectSubscribed(t, store, int64(user), ids.UnsortedList()...)
			}
			now.SetTime(now.Now().Add(time.Second))
			for user, ids := range model {
				expectSubscribed(t, stores[random.IntN(len(stores))], int64(user), ids.UnsortedList()...)
			}
		}
	})
}

func BenchmarkSubscribed(b *testing.B) {
	for engine, name := range databasetest.Engines() {
		b.Run(engine, func(b *testing.B) {
			g, now := NewWithT(b), clocktesting.NewFakePassiveClock(noon)
			store := openAt(b, name(b), now)
			for user := range int64(100) {
				for id := range int64(20) {
					_, err := store.Subscribe(b.Context(), who(user), label(id))
					g.Expect(err).NotTo(HaveOccurred())
				}
			}
			for state, pass := range map[string]time.Duration{"warm": 0, "cold": time.Second} {
				b.Run(state, func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						now.SetTime(now.Now().Add(pass))
						if _, err := store.Subscribed(b.Context(), who(userMax), subscription.KindLabel); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		})
	}
}
