package runnerjobs

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
)

func TestQueue_wakesAllRunnersIfItChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		pass := func(d time.Duration) {
			<-time.After(d)
			synctest.Wait()
		}
		var version atomic.Value
		var looks atomic.Int32
		version.Store("1")
		q := &queue{clock: clock.RealClock{}, versions: []versioned{func(context.Context) (string, error) {
			looks.Add(1)
			if v := version.Load().(string); v != "" {
				return v, nil
			}
			return "", errors.New("no database")
		}}}
		g.Expect(q.current(t.Context())).To(Equal("1"))
		first, second := q.changed(), q.changed()
		pass(10*time.Second + interval/2)
		g.Expect(first).NotTo(BeClosed())
		g.Expect(looks.Load()).To(BeEquivalentTo(11), "one look each second, however many runners wait")

		version.Store("2")
		pass(interval)
		g.Expect(first).To(BeClosed())
		g.Expect(second).To(BeClosed())

		third := q.changed()
		pass(interval)
		g.Expect(third).NotTo(BeClosed())
		version.Store("")
		pass(interval)
		g.Expect(third).To(BeClosed(), "the runners get the error")
	})
}
