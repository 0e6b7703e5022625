package recall

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
)

// errNothing is the error of a question without an answer.
var errNothing = errors.New("there is nothing")

// questions asks one engine questions that need a slot and a second to answer.
type questions struct {
	about Results
	slots *fair.Slots
	mu    sync.Mutex
	// found are the callers who found an answer, in order.
	found []fair.Key
}

func newQuestions(t *testing.T, l fair.Limits) *questions {
	m := New()
	t.Cleanup(m.Close)
	return &questions{about: m.About("/a/b.git"), slots: fair.New("test", "walks", l)}
}

type answer struct {
	text  string
	err   error
	after time.Duration
}

// ask asks a question for a caller, and reports the answer.
func (q *questions) ask(ctx context.Context, k fair.Key, what string, find func(context.Context) (string, error)) <-chan answer {
	told, begun := make(chan answer, 1), time.Now()
	go func() {
		text, err := Find(fair.With(ctx, k), q.about, what, "", func(s string) int { return len(s) }, find)
		told <- answer{text, err, time.Since(begun)}
	}()
	synctest.Wait()
	return told
}

// walk answers a question: it takes a slot, and then a second.
func (q *questions) walk(ctx context.Context) (string, error) {
	leave, err := process.Enter(ctx, q.slots)
	if err != nil {
		return "", err
	}
	defer leave()
	q.mu.Lock()
	q.found = append(q.found, fair.From(ctx))
	q.mu.Unlock()
	return "found", pass(ctx, time.Second)
}

// pass lets time pass.
func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// busy makes a caller hold a number of slots.
func (q *questions) busy(t *testing.T, k fair.Key, number int) {
	t.Helper()
	for range number {
		if q.slots.Try(fair.With(t.Context(), k), 1) == nil {
			t.Fatal("a slot is not there")
		}
	}
}

func (a answer) want(t *testing.T, who string, after time.Duration) {
	t.Helper()
	if a.err != nil || a.text != "found" || a.after != after {
		t.Errorf("%s: got %q (%v) after %s, want it after %s", who, a.text, a.err, a.after, after)
	}
}

var nobody, ann, bob = fair.Address(netip.MustParseAddr("192.0.2.1")), fair.User(1), fair.User(2)

func TestRecall_isNotBehindTheQueueOfAnotherCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuestions(t, fair.Limits{Total: 16, Share: 4, Reserved: 4, Wait: 30 * time.Second})
		q.busy(t, nobody, 4)
		first := q.ask(t.Context(), nobody, "contributors", q.walk)
		second := q.ask(t.Context(), nobody, "contributors", q.walk)
		(<-q.ask(t.Context(), ann, "contributors", q.walk)).want(t, "who has free slots", time.Second)
		(<-first).want(t, "who waits for a slot when the answer is there", time.Second)
		(<-second).want(t, "another request of that caller", time.Second)
		if len(q.found) != 1 || q.found[0] != ann {
			t.Errorf("it was found by %v", q.found)
		}
	})
}

func TestRecall_refusesEachForTheirOwnSlotsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuestions(t, fair.Limits{Total: 4, Share: 2, Wait: 30 * time.Second})
		q.busy(t, nobody, 2)
		leave, err := q.slots.Enter(fair.With(t.Context(), ann))
		if err != nil {
			t.Fatal(err)
		}
		q.busy(t, bob, 1)
		refused := q.ask(t.Context(), nobody, "contributors", q.walk)
		refusedToo := q.ask(t.Context(), nobody, "contributors", q.walk)
		<-time.After(10 * time.Second)
		waits := q.ask(t.Context(), bob, "contributors", q.walk)
		for _, told := range []<-chan answer{refused, refusedToo} {
			got := <-told
			busy := (*fair.Busy)(nil)
			if !errors.As(got.err, &busy) || !busy.Own || !errors.Is(got.err, process.ErrBusy) || got.after != 30*time.Second {
				t.Errorf("who has a whole share: got %q (%v) after %s", got.text, got.err, got.after)
			}
		}
		leave()
		(<-waits).want(t, "who came later", 21*time.Second)
	})
}

func TestRecall_findsOnceForAllAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuestions(t, fair.Limits{Total: 3, Share: 1, Wait: 30 * time.Second})
		q.busy(t, nobody, 1)
		told := []<-chan answer{q.ask(t.Context(), bob, "contributors", q.walk)}
		for i := range 1000 {
			told = append(told, q.ask(t.Context(), fair.User(int64(i)), "contributors", q.walk))
		}
		told = append(told, q.ask(t.Context(), nobody, "contributors", q.walk))
		if free := q.slots.Try(fair.With(t.Context(), fair.User(2000)), 1); free == nil {
			t.Error("those who wait for what another one finds hold slots")
		} else {
			free.Leave()
		}
		for i, a := range told {
			(<-a).want(t, fmt.Sprint("request ", i), time.Second)
		}
		if len(q.found) != 1 {
			t.Errorf("it was found %d times", len(q.found))
		}
		(<-q.ask(t.Context(), nobody, "contributors", q.walk)).want(t, "who comes later", 0)
	})
}

// All slots are taken: the first caller who gets one answers for all.
func TestRecall_findsOnceForAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuestions(t, fair.Limits{Total: 2, Share: 2, Wait: 30 * time.Second})
		leave, err := q.slots.Enter(fair.With(t.Context(), fair.User(9)))
		if err != nil {
			t.Fatal(err)
		}
		q.busy(t, fair.User(8), 1)
		var told []<-chan answer
		for i := range 200 {
			told = append(told, q.ask(t.Context(), fair.User(int64(i%3)), "contributors", q.walk))
		}
		leave()
		for i, a := range told {
			(<-a).want(t, fmt.Sprint("request ", i), time.Second)
		}
		if len(q.found) != 1 {
			t.Errorf("it was found %d times", len(q.found))
		}
		if h := q.slots.Try(fair.With(t.Context(), ann), 1); h == nil {
			t.Error("a slot was not given back")
		}
	})
}

func TestFind_continuesIfAnAttemptIsStopped(t *testing.T) {
	for name, stopped := range map[string]func(context.Context, context.CancelFunc) error{
		"the client has gone": func(ctx context.Context, cancel context.CancelFunc) error { cancel(); return ctx.Err() },
		"its process was ended for others' sake": func(context.Context, context.CancelFunc) error {
			return &process.LimitError{Text: "not enough memory", Passing: true}
		},
		"its caller has too much memory": func(context.Context, context.CancelFunc) error {
			return fmt.Errorf("%w: %w", process.ErrBusy, &fair.Busy{What: "walks", Limit: 1, Own: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQuestions(t, fair.Limits{Total: 4})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				first := q.ask(ctx, ann, "contributors", func(context.Context) (string, error) {
					<-time.After(time.Second)
					return "", stopped(ctx, cancel)
				})
				second := q.ask(t.Context(), bob, "contributors", q.walk)
				if got := <-first; got.err == nil {
					t.Errorf("whoever is stopped got %q", got.text)
				}
				(<-second).want(t, "another caller", 2*time.Second)
			})
		})
	}
}

// The caller who works on the question may have to wait again, for example for memory.
func TestRecall_isNotBehindWhoStallsInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuestions(t, fair.Limits{Total: 4})
		scarce := fair.New("test", "memory", fair.Limits{Total: 4, Share: 2, Wait: 30 * time.Second})
		inTwoSteps := func(ctx context.Context) (string, error) {
			if _, err := q.walk(ctx); err != nil {
				return "", err
			}
			leave, err := process.Enter(ctx, scarce)
			if err != nil {
				return "", err
			}
			leave()
			return "found", nil
		}
		for range 2 {
			if scarce.Try(fair.With(t.Context(), nobody), 1) == nil {
				t.Fatal("a slot is not there")
			}
		}
		first := q.ask(t.Context(), nobody, "contributors", inTwoSteps)
		second := q.ask(t.Context(), ann, "contributors", inTwoSteps)
		(<-second).want(t, "who may have more memory", 2*time.Second)
		(<-first).want(t, "who may not", 2*time.Second)
	})
}

func TestRecall_ofWhatIsTooLargeIsForAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuestions(t, fair.Limits{Total: 2, Share: 1, Wait: 30 * time.Second})
		q.busy(t, nobody, 1)
		found := 0
		large := func(ctx context.Context) (string, error) {
			_, err := q.walk(ctx)
			if err == nil {
				found++
			}
			return string(make([]byte, MaxResult+1)), err
		}
		told := []<-chan answer{
			q.ask(t.Context(), nobody, "all", large), q.ask(t.Context(), ann, "all", large), q.ask(t.Context(), bob, "all", large),
		}
		for i, a := range told {
			if got := <-a; len(got.text) != MaxResult+1 || got.err != nil || got.after != time.Second {
				t.Errorf("request %d: got %d bytes (%v) after %s", i, len(got.text), got.err, got.after)
			}
		}
		<-q.ask(t.Context(), ann, "all", large)
		if found != 2 {
			t.Errorf("it was found %d times, want once for those who waited and once later", found)
		}
	})
}

func TestRecall_returnsErrorToAllWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuestions(t, fair.Limits{Total: 4})
		missing := func(ctx context.Context) (string, error) {
			_, _ = q.walk(ctx)
			return "", errNothing
		}
		for i, a := range []<-chan answer{q.ask(t.Context(), ann, "blob", missing), q.ask(t.Context(), bob, "blob", missing)} {
			if got := <-a; !errors.Is(got.err, errNothing) || got.after != time.Second {
				t.Errorf("request %d: got %v after %s", i, got.err, got.after)
			}
		}
		if len(q.found) != 1 {
			t.Errorf("it was looked for %d times", len(q.found))
		}
	})
}

func TestRecall_endsWithTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuestions(t, fair.Limits{Total: 4})
		first := q.ask(t.Context(), ann, "contributors", q.walk)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if got := <-q.ask(ctx, bob, "contributors", q.walk); !errors.Is(got.err, context.DeadlineExceeded) || got.after != time.Millisecond {
			t.Errorf("got %v after %s", got.err, got.after)
		}
		(<-first).want(t, "the other", time.Second)
	})
}

// Another repository may have taken the path.
func TestRecall_ofWhatIsForgottenMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuestions(t, fair.Limits{Total: 4})
		first := q.ask(t.Context(), ann, "contributors", q.walk)
		q.about.answers.Forget(q.about.dir)
		(<-q.ask(t.Context(), bob, "contributors", func(context.Context) (string, error) { return "found", nil })).want(t, "who asks anew", 0)
		q.about.answers.Forget(q.about.dir)
		(<-first).want(t, "who asked before", time.Second)
		if _, ok := Known[string](q.about, "contributors", ""); ok {
			t.Error("what was found before is remembered")
		}
	})
}

func TestRecall_afterAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuestions(t, fair.Limits{Total: 4})
		go func() {
			defer func() { _ = recover() }()
			_, _ = Find(fair.With(t.Context(), ann), q.about, "contributors", "", func(string) int { return 0 }, func(context.Context) (string, error) {
				<-time.After(time.Second)
				panic("a flaw")
			})
		}()
		synctest.Wait()
		(<-q.ask(t.Context(), bob, "contributors", q.walk)).want(t, "another caller", 2*time.Second)
	})
}
