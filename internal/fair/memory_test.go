package fair_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forgeplane/forgeplane/internal/fair"
)

func TestMemory_countsBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const mebibyte = 1 << 20
		m := fair.NewMemory("test", fair.Limits{Total: 8 * mebibyte, Share: 4 * mebibyte, Reserved: 2 * mebibyte, Wait: time.Second})
		ctx := fair.With(t.Context(), nobody("192.0.2.1"))
		weigh, err := m.Take(ctx, 3*mebibyte)
		if err != nil {
			t.Fatal(err)
		}
		var busy *fair.Busy
		begun := time.Now()
		if _, err := m.Take(ctx, mebibyte+1); !errors.As(err, &busy) || !busy.Own || time.Since(begun) != time.Second ||
			busy.Error() != "Your requests and their answers use all of the 4 MiB of memory that one caller can have. Please try again in 10 seconds." {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
		if m.Try(ctx, mebibyte+1) != nil {
			t.Error("one caller has more than a share")
		}
		second := m.Try(ctx, mebibyte)
		if second == nil {
			t.Fatal("a share is not what it was said to be")
		}
		third := fair.With(t.Context(), nobody("192.0.2.2"))
		if _, err := m.Take(third, 3*mebibyte); !errors.As(err, &busy) || busy.Own ||
			busy.Error() != "The server is busy: requests and their answers use all of the 8 MiB that it allows for them. Please try again in 10 seconds." {
			t.Error(err)
		}
		if m.Try(fair.With(t.Context(), fair.User(1)), 4*mebibyte) == nil {
			t.Error("nothing is kept for those who have signed in")
		}
		weigh(1) // a part of it is released
		weigh(0)
		weigh(0)
		if m.Try(third, 3*mebibyte) == nil {
			t.Error("what was given back is gone")
		}
		if _, err := (*fair.Memory)(nil).Take(ctx, 1<<40); err != nil || (*fair.Memory)(nil).Try(ctx, 1<<40) == nil || fair.NewMemory("test", fair.Limits{}) != nil {
			t.Error("there is no memory where there is any amount")
		}
	})
}
