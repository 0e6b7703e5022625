package fair_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forgeplane/forgeplane/internal/fair"
)

// hold takes slots that must be available at once.
func hold(t *testing.T, s *fair.Slots, k fair.Key, weight int) *fair.Hold {
	t.Helper()
	h := s.Try(fair.With(t.Context(), k), weight)
	if h == nil {
		t.Fatalf("%d slots are not there", weight)
	}
	return h
}

func TestHold_takesItsWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fair.New("test", "MiB", fair.Limits{Total: 100, Share: 50, Reserved: 20, Wait: time.Second}).
			WithMessages("You have the %d MiB of one caller.", "All have %d MiB together.")
		mine := hold(t, s, fair.User(1), 40)
		for caller, weights := range map[int64]map[int]bool{1: {10: false, 11: true}, 2: {100: false}} {
			for weight, want := range weights {
				if got := s.OverShare(fair.With(t.Context(), fair.User(caller)), weight); got != want {
					t.Errorf("%d more for the caller %d are more than a share: %t", weight, caller, got)
				}
			}
		}
		if s.Try(fair.With(t.Context(), fair.User(1)), 11) != nil {
			t.Error("a caller has more than a share")
		}
		_, err := s.Take(fair.With(t.Context(), fair.User(1)), 11)
		if want := "You have the 50 MiB of one caller. Please try again in 10 seconds."; err == nil || err.Error() != want {
			t.Errorf("got %v", err)
		}
		hold(t, s, fair.User(1), 10)
		hold(t, s, fair.User(2), 50).Leave()
		other := hold(t, s, nobody("192.0.2.1"), 30)
		if s.Try(fair.With(t.Context(), nobody("192.0.2.2")), 1) == nil {
			t.Error("80 of 100 are taken")
		}
		if s.Try(fair.With(t.Context(), nobody("192.0.2.3")), 50) != nil {
			t.Error("callers who have not signed in take what is reserved")
		}
		_, err = s.Take(fair.With(t.Context(), fair.User(2)), 30)
		if want := "All have 100 MiB together. Please try again in 10 seconds."; err == nil || err.Error() != want {
			t.Errorf("got %v", err)
		}
		other.Leave()
		mine.Leave()
	})
}

func TestHold_excludesOthersIfHeavierThanShare(t *testing.T) {
	s := fair.New("test", "MiB", fair.Limits{Total: 10, Share: 5})
	mine := hold(t, s, fair.User(1), 20)
	if s.Try(fair.With(t.Context(), fair.User(1)), 1) != nil || s.Try(fair.With(t.Context(), fair.User(2)), 1) != nil {
		t.Error("another one is there beside it")
	}
	mine.Leave()
	hold(t, s, fair.User(2), 1)
}

func TestHold_keepsOthersWaitingAfterItGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fair.New("test", "MiB", fair.Limits{Total: 100, Share: 50})
		mine, more := hold(t, s, fair.User(1), 10), hold(t, s, fair.User(1), 10)
		mine.Resize(90)
		var order []string
		queue(t, s, fair.User(1), 1, func(func()) { order = append(order, "own") })
		if s.Short() {
			t.Error("who has more than a share counts as one who waits for others")
		}
		queue(t, s, fair.User(2), 1, func(func()) { order = append(order, "other") })
		if !s.Short() || len(order) > 0 {
			t.Errorf("%v have slots that are taken", order)
		}
		more.Leave()
		synctest.Wait()
		if want := []string{"other"}; !slices.Equal(order, want) || s.Short() {
			t.Errorf("got %v, want %v", order, want)
		}
		mine.Resize(49)
		synctest.Wait()
		if want := []string{"other", "own"}; !slices.Equal(order, want) {
			t.Errorf("got %v, want %v", order, want)
		}
	})
}

func TestHold_letsLighterRequestPassAfterTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fair.New("test", "MiB", fair.Limits{Total: 10, Wait: time.Minute})
		hold(t, s, fair.User(1), 8)
		heavy := make(chan error, 1)
		go func() { _, err := s.Take(fair.With(t.Context(), fair.User(2)), 5); heavy <- err }()
		synctest.Wait()
		<-time.After(30 * time.Second)
		light := make(chan error, 1)
		go func() { _, err := s.Take(fair.With(t.Context(), fair.User(2)), 1); light <- err }()
		synctest.Wait()
		if err := <-heavy; err == nil {
			t.Error("5 of 2 were there")
		}
		if err := <-light; err != nil {
			t.Errorf("the lighter one behind it: %v", err)
		}
	})
}
