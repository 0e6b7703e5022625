package subscription

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
)

func TestMemory_readsOncePerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var reads, readers atomic.Int32
		m := newMemory(clock.RealClock{}, func(context.Context, string) (int32, error) {
			g.Expect(readers.Add(1)).To(BeEquivalentTo(1))
			defer readers.Add(-1)
			<-time.After(100 * time.Millisecond)
			return reads.Add(1), nil
		})
		for second := range int32(3) {
			var group sync.WaitGroup
			for range 50 {
				group.Go(func() {
					value, err := m.get(t.Context(), "key")
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(value).To(Equal(second + 1))
				})
			}
			group.Wait()
			<-time.After(maxAge)
		}
	})
}

func TestMemory_readsForWaiterIfReaderGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		m := newMemory(clock.RealClock{}, func(ctx context.Context, _ string) (string, error) {
			select {
			case <-ctx.Done():
				return "", ctx.Err()
			case <-time.After(time.Second):
				return "answer", nil
			}
		})
		impatient, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() {
			_, err := m.get(impatient, "key")
			g.Expect(err).To(MatchError(context.Canceled))
		})
		synctest.Wait()
		group.Go(func() { g.Expect(m.get(t.Context(), "key")).To(Equal("answer")) })
		group.Go(func() {
			_, err := m.get(impatient, "key")
			g.Expect(err).To(MatchError(context.Canceled), "who gives up waiting")
		})
		synctest.Wait()
		cancel()
		group.Wait()
	})
}

func TestMemory_doesNotRememberFailures(t *testing.T) {
	g := NewWithT(t)
	failure := errors.New("failure")
	m := newMemory(clock.RealClock{}, func(context.Context, string) (string, error) { return "answer", failure })
	_, err := m.get(t.Context(), "key")
	g.Expect(err).To(MatchError(failure))
	failure = nil
	g.Expect(m.get(t.Context(), "key")).To(Equal("answer"))
}

func TestMemory_doesNotRememberOutdatedAnswers(t *testing.T) {
	for name, change := range map[string]func(*memory[string, int]){
		"forget": func(m *memory[string, int]) { m.forget("key") },
		"clear":  func(m *memory[string, int]) { m.clear() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				value := 1
				m := newMemory(clock.RealClock{}, func(context.Context, string) (int, error) {
					read := value
					<-time.After(time.Millisecond)
					return read, nil
				})
				go func() { g.Expect(m.get(t.Context(), "key")).To(Equal(1)) }()
				synctest.Wait()
				value = 2
				change(m)
				g.Expect(m.get(t.Context(), "key")).To(Equal(2))
				synctest.Wait()
				g.Expect(m.get(t.Context(), "key")).To(Equal(2))
			})
		})
	}
}

func TestMemory_isBounded(t *testing.T) {
	g := NewWithT(t)
	m := newMemory(clock.RealClock{}, func(_ context.Context, key int) (int, error) { return key, nil })
	for key := range maxRemembered + 10 {
		g.Expect(m.get(t.Context(), key)).To(Equal(key))
	}
	g.Expect(m.entries.Len()).To(Equal(maxRemembered))
}
