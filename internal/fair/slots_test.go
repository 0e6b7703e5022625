package fair_test

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/forgeplane/forgeplane/internal/fair"
)

func nobody(text string) fair.Key { return fair.Address(netip.MustParseAddr(text)) }

// enter takes a slot that must be available at once.
func enter(t *testing.T, s *fair.Slots, k fair.Key) (leave func()) {
	t.Helper()
	leave, err := s.Enter(fair.With(t.Context(), k))
	if err != nil {
		t.Fatal(err)
	}
	return leave
}

// queue lets requests of a caller wait one after the other, and calls tell for each request that has its slot.
func queue(t *testing.T, s *fair.Slots, k fair.Key, number int, tell func(leave func())) {
	t.Helper()
	for range number {
		go func() {
			leave, err := s.Enter(fair.With(t.Context(), k))
			if err != nil {
				t.Error(err)
				return
			}
			tell(leave)
		}()
		synctest.Wait()
	}
}

func TestSlots_limitCallersToTheirShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fair.New("test", "requests", fair.Limits{Total: 4, Share: 2, Wait: time.Second})
		first := enter(t, s, fair.User(1))
		enter(t, s, fair.User(1))
		begun := time.Now()
		_, err := s.Enter(fair.With(t.Context(), fair.User(1)))
		var busy *fair.Busy
		if !errors.As(err, &busy) || !busy.Own || busy.Limit != 2 || busy.RetryAfter <= 0 || time.Since(begun) != time.Second {
			t.Errorf("got %v after %s", err, time.Since(begun))
		}
		if want := "You have 2 of 2 requests running at once, and others waiting. Please try again in 10 seconds."; err.Error() != want {
			t.Errorf("got %q", err)
		}
		enter(t, s, fair.User(2))
		first()
		enter(t, s, fair.User(1))
	})
}

func TestSlots_reserveSomeForSignedInCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fair.New("test", "requests", fair.Limits{Total: 4, Share: 1, Reserved: 2, Wait: time.Second})
		enter(t, s, nobody("192.0.2.1"))
		enter(t, s, nobody("192.0.2.2"))
		_, err := s.Enter(fair.With(t.Context(), nobody("192.0.2.3")))
		var busy *fair.Busy
		if !errors.As(err, &busy) || busy.Own || !strings.HasPrefix(err.Error(), "The server is busy.") {
			t.Errorf("got %v", err)
		}
		if _, err := s.Enter(fair.With(t.Context(), fair.Identity("ann").Unsigned())); !errors.As(err, &busy) || busy.Own {
			t.Errorf("an identity that is no user's: %v", err)
		}
		enter(t, s, fair.User(1))
		enter(t, s, fair.Identity("ann"))
		if _, err := s.Enter(fair.With(t.Context(), fair.User(2))); !errors.As(err, &busy) || busy.Own {
			t.Errorf("when all are taken: %v", err)
		}
	})
}

// A tenant can create any number of service accounts.
func TestSlots_countServiceAccountsOfNamespaceAsOneCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fair.New("test", "requests", fair.Limits{Total: 8, Share: 2, Wait: time.Second})
		account := func(name string) fair.Key { return fair.Identity("system:serviceaccount:" + name).Unsigned() }
		enter(t, s, account("acme:a"))
		enter(t, s, account("acme:b"))
		_, err := s.Enter(fair.With(t.Context(), account("acme:c")))
		var busy *fair.Busy
		if !errors.As(err, &busy) || !busy.Own {
			t.Errorf("got %v", err)
		}
		enter(t, s, account("other:a"))
		enter(t, s, fair.Identity("system:serviceaccount:acme").Unsigned())
	})
}

func TestSlots_areGivenToCallersInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fair.New("test", "requests", fair.Limits{Total: 1})
		leave := enter(t, s, fair.User(9))
		var order []string
		next := func(name string) func(func()) {
			return func(leave func()) { order = append(order, name); leave() }
		}
		queue(t, s, fair.User(1), 4, next("many"))
		queue(t, s, nobody("192.0.2.1"), 2, next("nobody"))
		queue(t, s, fair.User(2), 1, next("one"))
		leave()
		synctest.Wait()
		if want := []string{"many", "nobody", "one", "many", "nobody", "many", "many"}; !slices.Equal(order, want) {
			t.Errorf("got %v, want %v", order, want)
		}
	})
}

func TestSlots_areNotBlockedByCallerWithFullShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fair.New("test", "requests", fair.Limits{Total: 3, Share: 2})
		first := enter(t, s, fair.User(1))
		second := enter(t, s, fair.User(1))
		var mine int
		queue(t, s, fair.User(1), 2, func(func()) { mine++ })
		other := enter(t, s, fair.User(2))
		other()
		if synctest.Wait(); mine != 0 {
			t.Error("a caller has more than a share")
		}
		first()
		second()
		if synctest.Wait(); mine != 2 {
			t.Errorf("%d of 2 that waited have a slot", mine)
		}
	})
}

func TestSlots_serveUsersWhileAnonymousCallersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fair.New("test", "requests", fair.Limits{Total: 2, Reserved: 1})
		leave := enter(t, s, nobody("192.0.2.1"))
		last := enter(t, s, fair.User(1))
		var order []string
		queue(t, s, nobody("192.0.2.2"), 1, func(func()) { order = append(order, "nobody") })
		queue(t, s, fair.User(2), 1, func(func()) { order = append(order, "user") })
		last()
		synctest.Wait()
		leave()
		synctest.Wait()
		if want := []string{"user", "nobody"}; !slices.Equal(order, want) {
			t.Errorf("got %v", order)
		}
	})
}

func TestSlots_limitWaitingRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fair.New("test", "requests", fair.Limits{Total: 2, Share: 1, Reserved: 1, Wait: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		var refused, ended atomic.Int64
		ask := func(k fair.Key, number int) {
			for range number {
				go func() {
					leave, err := s.Enter(fair.With(ctx, k))
					var busy *fair.Busy
					switch {
					case errors.As(err, &busy):
						refused.Add(1)
					case err != nil:
						ended.Add(1)
					default:
						<-ctx.Done()
						leave()
					}
				}()
			}
			synctest.Wait()
		}
		ask(fair.User(1), 100)
		if got := refused.Swap(0); got != 100-1-64 {
			t.Errorf("one caller: %d of 100 were refused at once, want all but one that runs and 64 that wait", got)
		}
		const addresses = 1100
		for i := range addresses {
			ask(nobody(fmt.Sprintf("192.0.%d.%d", i/256, i%256)), 1)
		}
		if got := refused.Swap(0); got != addresses-1-1024 {
			t.Errorf("%d addresses: %d were refused at once", addresses, got)
		}
		ask(fair.User(2), 2)
		if got := refused.Load(); got != 0 {
			t.Error("addresses that wait leave no room for a user to wait")
		}
		cancel()
		synctest.Wait()
		if ended.Load() == 0 {
			t.Error("nobody heard of the end")
		}
		enter(t, s, fair.User(1))
		enter(t, s, fair.User(2))
	})
}

func TestSlots_preferCallersWithFewWaitingRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fair.New("test", "requests", fair.Limits{Total: 1, Wait: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		leave := enter(t, s, fair.User(1000))
		var mu sync.Mutex
		refused, served := map[fair.Key]int{}, map[fair.Key]int{}
		ask := func(k fair.Key) {
			go func() {
				leave, err := s.Enter(fair.With(ctx, k))
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					refused[k]++
					return
				}
				served[k]++
				leave()
			}()
			synctest.Wait()
		}
		const crowd, each = 16, 64
		for range each {
			for i := range crowd {
				ask(fair.User(int64(i)))
			}
		}
		if len(refused) > 0 {
			t.Fatalf("%v were refused before the queue is full", refused)
		}
		for i := range 100 {
			ask(fair.User(int64(100 + i)))
		}
		ask(fair.User(0))
		sum := 0
		for i := range crowd {
			n := refused[fair.User(int64(i))]
			if n < 100/crowd || n > 100/crowd+2 {
				t.Errorf("%d of the requests of one of the many were refused", n)
			}
			sum += n
		}
		if sum != 101 || len(refused) != crowd {
			t.Errorf("%d were refused: %v", sum, refused)
		}
		leave()
		synctest.Wait()
		for i := range 100 {
			if k := fair.User(int64(100 + i)); served[k] != 1 {
				t.Errorf("newcomer %d was not served", i)
			}
		}
		if n := fair.Callers(s); n != 0 {
			t.Errorf("%d callers are remembered", n)
		}
	})
}

func TestSlots_forgetFormerCallers(t *testing.T) {
	s := fair.New("test", "requests", fair.Limits{Total: 8, Share: 2, Reserved: 2, Wait: 50 * time.Microsecond})
	var all sync.WaitGroup
	var most, now atomic.Int64
	for i := range 16 {
		all.Go(func() {
			for j := range 500 {
				k := fair.User(int64(i*1000 + j))
				if i%2 == 0 {
					k = nobody(fmt.Sprintf("10.%d.%d.%d", i, j/256, j%256))
				}
				leave, err := s.Enter(fair.With(t.Context(), k))
				if err != nil {
					continue
				}
				most.Store(max(most.Load(), now.Add(1)))
				now.Add(-1)
				leave()
			}
		})
	}
	all.Wait()
	if n := fair.Callers(s); n != 0 || most.Load() > 8 {
		t.Errorf("%d callers are remembered; %d held slots at once", n, most.Load())
	}
}

func TestSlots_limitForgeplaneToItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fair.New("test", "requests", fair.Limits{Total: 3, Share: 2, Wait: time.Second})
		for range 2 {
			if _, err := s.Enter(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		_, err := s.Enter(t.Context())
		if busy := (*fair.Busy)(nil); !errors.As(err, &busy) || !busy.Own || busy.Limit != 2 {
			t.Errorf("got %v", err)
		}
		enter(t, s, fair.User(1))
	})
}

func TestNoWait_waitsForOthersOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fair.New("test", "requests", fair.Limits{Total: 2, Share: 1, Wait: time.Minute})
		enter(t, s, fair.User(1))
		prompt := func(k fair.Key) error {
			_, err := s.Enter(fair.NoWait(fair.With(t.Context(), k)))
			return err
		}
		begun := time.Now()
		if busy := (*fair.Busy)(nil); !errors.As(prompt(fair.User(1)), &busy) || !busy.Own || time.Since(begun) > 0 {
			t.Errorf("with the whole share: got %v after %s", busy, time.Since(begun))
		}
		leave := enter(t, s, fair.User(2))
		waiting := make(chan error, 1)
		go func() { waiting <- prompt(fair.User(3)) }()
		synctest.Wait()
		if busy := (*fair.Busy)(nil); !errors.As(prompt(fair.User(3)), &busy) || time.Since(begun) > 0 {
			t.Errorf("behind another request of the same caller: got %v after %s", busy, time.Since(begun))
		}
		<-time.After(time.Second)
		leave()
		if err := <-waiting; err != nil {
			t.Errorf("behind others: got %v", err)
		}
	})
}

func TestSlots_haveMetrics(t *testing.T) {
	s := fair.New("test", "requests", fair.Limits{Total: 2, Share: 1, Wait: time.Nanosecond})
	registry := prometheus.NewRegistry()
	registry.MustRegister(s, fair.New("other", "other requests", fair.Limits{Total: 1}))
	enter(t, s, fair.User(1))
	for range 2 {
		if _, err := s.Enter(fair.With(t.Context(), fair.User(1))); err == nil {
			t.Error("more than the share")
		}
	}
	enter(t, s, fair.User(2))
	if _, err := s.Enter(fair.With(t.Context(), fair.User(3))); err == nil {
		t.Error("more than there is")
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			got[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	for name, want := range map[string]float64{
		"forgeplane_slots test": 2, "forgeplane_slots other": 1, "forgeplane_slots_held test": 2, "forgeplane_slots_waiting signed-in test": 0,
		"forgeplane_slots_refused_total share test": 2, "forgeplane_slots_refused_total total test": 1,
	} {
		if value, ok := got[name]; !ok || value != want {
			t.Errorf("%s is %v, want %v; of %v", name, value, want, got)
		}
	}
}

func TestOf_computesSharesByPercent(t *testing.T) {
	for total, want := range map[int]fair.Limits{
		64: {Total: 64, Share: 16, Reserved: 16}, 4: {Total: 4, Share: 1, Reserved: 1}, 1: {Total: 1, Share: 1},
	} {
		if got := fair.Of(total, 25, 25); got != want {
			t.Errorf("of %d: got %+v, want %+v", total, got, want)
		}
	}
}

func TestKey_distinguishesCallers(t *testing.T) {
	all := []fair.Key{
		{}, fair.User(1), fair.User(2), fair.Identity("1"), fair.Identity("1").Unsigned(), fair.Identity(""), fair.Namespace("1"), fair.Namespace(""),
		nobody("0.0.0.1"), nobody("192.0.2.1"),
		nobody("2001:db8::1"), nobody("2001:db8:0:1::1"), fair.Address(netip.Addr{}),
	}
	seed, seen := maphash.MakeSeed(), map[uint64]fair.Key{}
	for i, k := range all {
		if slices.Index(all, k) != i {
			t.Errorf("%+v is there twice", k)
		}
		var h maphash.Hash
		h.SetSeed(seed)
		k.Hash(&h)
		if other, taken := seen[h.Sum64()]; taken {
			t.Errorf("%+v and %+v have the same hash", k, other)
		}
		seen[h.Sum64()] = k
	}
	for a, b := range map[string]string{
		"2001:db8::1": "2001:db8::ffff:2", "::ffff:192.0.2.1": "192.0.2.1", "fe80::1%eth0": "fe80::2",
	} {
		if nobody(a) != nobody(b) {
			t.Errorf("%s and %s are not one caller", a, b)
		}
	}
}
