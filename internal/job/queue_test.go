package job_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/test/patience"
)

var acme, beta = fair.Namespace("acme"), fair.User(7)

// worker runs the tasks of a queue until they are released.
type worker struct {
	queue *job.Queue
	// began receives each attempt that begins, and end determines its result.
	began chan job.Attempt
	end   chan error
	// ended receives the cause of each attempt whose context ended.
	ended chan error
	// tell is the progress that an attempt reports at its beginning.
	tell string
	stop func()
}

// newWorker starts a queue that appears to the database as a separate process.
func newWorker(t *testing.T, name string, o job.QueueOptions) *worker {
	t.Helper()
	w := &worker{began: make(chan job.Attempt, 100), end: make(chan error), ended: make(chan error, 100)}
	if o.Run == nil {
		o.Run = func(ctx context.Context, a job.Attempt, progress func(string)) error {
			if w.tell != "" {
				progress(w.tell)
			}
			w.began <- a
			select {
			case err := <-w.end:
				return err
			case <-ctx.Done():
				w.ended <- context.Cause(ctx)
				return ctx.Err()
			}
		}
	}
	if o.Name = "tests"; o.Poll == 0 {
		o.Poll = 10 * time.Millisecond
	}
	w.queue = job.NewQueue(databasetest.Open(t, name, job.Migrations()), o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.queue.Start(ctx)
	}()
	w.stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(w.stop)
	return w
}

// next waits for an attempt.
func (w *worker) next(g Gomega) (a job.Attempt) {
	g.Eventually(w.began).WithTimeout(patience.Wait).Should(Receive(&a))
	return a
}

func add(t *testing.T, q *job.Queue, key, payload string, tenant fair.Key) {
	t.Helper()
	NewWithT(t).Expect(q.Add(t.Context(), job.Task{Key: key, Tenant: tenant, Payload: []byte(payload)})).To(Succeed())
}

// inQueue waits until a task is in a phase.
func inQueue(t *testing.T, q *job.Queue, key string, phase job.Phase) (s job.State) {
	t.Helper()
	NewWithT(t).Eventually(func() (job.Phase, error) {
		var err error
		s, err = q.Look(t.Context(), key)
		return s.Phase, err
	}).WithTimeout(patience.Wait).WithPolling(5 * time.Millisecond).Should(Equal(phase))
	return s
}

func TestQueue_runsTaskOfAnotherProcess(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		adder := job.NewQueue(databasetest.Open(t, name, job.Migrations()), job.QueueOptions{Name: "tests"})
		w := newWorker(t, name, job.QueueOptions{})
		inQueue(t, adder, "a", job.Idle)
		for _, tenant := range []fair.Key{{}, acme, beta} {
			add(t, adder, "a", "binary \x00\xff", tenant)
			g.Expect(w.next(g)).To(And(HaveField("Task", job.Task{Key: "a", Tenant: tenant, Payload: []byte("binary \x00\xff")}),
				HaveField("Failed", 0), HaveField("Progress", "")))
			inQueue(t, adder, "a", job.Running)
			w.end <- nil
			inQueue(t, adder, "a", job.Idle)
		}
	})
}

func TestQueue_runsTaskOfSameProcessAtOnce(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, w := NewWithT(t), newWorker(t, name, job.QueueOptions{Poll: time.Hour})
		for _, key := range []string{"a", "b", "c"} {
			add(t, w.queue, key, "", acme)
		}
		for _, key := range []string{"a", "b", "c"} {
			g.Expect(w.next(g).Key).To(Equal(key), "the oldest goes first")
			w.end <- nil
		}
	})
}

func TestQueue_addsTaskOnlyIfTransactionCommits(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, db := NewWithT(t), databasetest.Open(t, name, job.Migrations())
		q, failure := job.NewQueue(db, job.QueueOptions{Name: "tests"}), errors.New("failure")
		for key, want := range map[string]error{"a": nil, "b": failure} {
			err := db.Atomically(t.Context(), "writing", func(ctx context.Context, _ bun.IDB) error {
				g.Expect(q.Add(ctx, job.Task{Key: key})).To(Succeed())
				g.Expect(q.Look(ctx, key)).To(HaveField("Phase", job.Waiting))
				g.Expect(q.Look(t.Context(), key)).To(BeZero(), "others do not see it")
				return want
			})
			g.Expect(errors.Is(err, want)).To(BeTrue())
		}
		g.Expect(q.Look(t.Context(), "a")).To(HaveField("Phase", job.Waiting))
		g.Expect(q.Look(t.Context(), "b")).To(BeZero())
	})
}

func TestQueue_hasOneTaskPerKey(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, q := NewWithT(t), job.NewQueue(databasetest.Open(t, name, job.Migrations()), job.QueueOptions{Name: "tests"})
		for _, payload := range []string{"1", "2", "3"} {
			add(t, q, "a", payload, acme)
		}
		w := newWorker(t, name, job.QueueOptions{Limits: fair.Limits{Total: 4}})
		g.Expect(w.next(g).Payload).To(BeEquivalentTo("3"), "what was added before is one task")
		for _, payload := range []string{"4", "5"} {
			add(t, w.queue, "a", payload, acme)
		}
		g.Expect(inQueue(t, w.queue, "a", job.Running)).To(Equal(job.State{Phase: job.Running}))
		add(t, w.queue, "b", "", acme)
		g.Expect(w.next(g).Key).To(Equal("b"), "a runs still")
		w.end <- nil
		w.end <- nil
		g.Expect(w.next(g).Payload).To(BeEquivalentTo("5"), "what was added meanwhile is one more")
		w.end <- nil
		inQueue(t, w.queue, "a", job.Idle)
		inQueue(t, w.queue, "b", job.Idle)
		g.Expect(w.began).To(BeEmpty())
	})
}

func TestAdd_refusesInvalidKeysAndLargePayloads(t *testing.T) {
	g, q := NewWithT(t), job.NewQueue(databasetest.Open(t, databasetest.SQLite(t), job.Migrations()), job.QueueOptions{Name: "tests"})
	for key, payload := range map[string]int{
		"":                                  0,
		strings.Repeat("k", job.MaxKey+1):   0,
		"\xff":                              0,
		"\x00":                              0,
		strings.Repeat("p", job.MaxPayload): job.MaxPayload,
		"p":                                 job.MaxPayload + 1,
	} {
		g.Expect(q.Add(t.Context(), job.Task{Key: key, Payload: make([]byte, payload)})).To(MatchError(ContainSubstring("must")), key)
	}
	g.Expect(q.Add(t.Context(), job.Task{Key: strings.Repeat("k", job.MaxKey), Payload: make([]byte, job.MaxPayload)})).To(Succeed())
}

func TestQueue_runsTenantsInTurn(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		q := job.NewQueue(databasetest.Open(t, name, job.Migrations()), job.QueueOptions{Name: "tests"})
		for i := range 5 {
			add(t, q, fmt.Sprint("a", i), "", acme)
		}
		add(t, q, "b0", "", beta)
		add(t, q, "b1", "", beta)
		add(t, q, "c0", "", fair.Key{})
		w := newWorker(t, name, job.QueueOptions{})
		var keys []string
		for range 8 {
			keys = append(keys, w.next(g).Key)
			w.end <- nil
		}
		g.Expect(keys).To(Equal([]string{"a0", "c0", "b0", "a1", "b1", "a2", "a3", "a4"}))
	})
}

func TestQueue_limitsConcurrentTasks(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		q := job.NewQueue(databasetest.Open(t, name, job.Migrations()), job.QueueOptions{Name: "tests"})
		for i := range 4 {
			add(t, q, fmt.Sprint("a", i), "", acme)
		}
		w := newWorker(t, name, job.QueueOptions{Limits: fair.Limits{Total: 3, Share: 2}})
		g.Expect([]string{w.next(g).Key, w.next(g).Key}).To(ConsistOf("a0", "a1"))
		g.Consistently(w.began).WithTimeout(50*time.Millisecond).ShouldNot(Receive(), "a tenant has its share")
		add(t, q, "b0", "", beta)
		add(t, q, "b1", "", beta)
		g.Expect(w.next(g).Key).To(Equal("b0"))
		g.Consistently(w.began).WithTimeout(50*time.Millisecond).ShouldNot(Receive(), "these are all")
		other := newWorker(t, name, job.QueueOptions{Limits: fair.Limits{Total: 3, Share: 1}})
		g.Expect([]string{other.next(g).Key, other.next(g).Key}).To(ConsistOf("a2", "b1"), "another process has its own")
		for range 3 {
			w.end <- nil
		}
		g.Expect(w.next(g).Key).To(Equal("a3"))
	})
}

func TestQueue_retriesWhenRetryIsDue(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		type failure struct {
			failed int
			err    string
		}
		asked := make(chan failure, 10)
		retry := time.Hour
		w := newWorker(t, name, job.QueueOptions{Retry: func(failed int, err error) time.Duration {
			asked <- failure{failed, err.Error()}
			return retry
		}})
		w.tell = `{"copied":7}`
		add(t, w.queue, "a", "", acme)
		g.Expect(w.next(g)).To(And(HaveField("Failed", 0), HaveField("Progress", "")))
		w.end <- errors.New("it was \x00 " + strings.Repeat("€", 5000))
		s := inQueue(t, w.queue, "a", job.Done)
		g.Expect(s.Err).To(MatchError(And(HavePrefix("it was \uFFFD €€"), HaveSuffix("€"))))
		g.Expect(len(s.Err.Error())).To(BeNumerically("~", 4<<10, 4))
		g.Expect(s.Retry).To(BeNumerically("~", time.Hour, time.Minute))
		g.Expect((<-asked).failed).To(Equal(0))

		retry = 10 * time.Millisecond
		add(t, w.queue, "a", "", acme)
		g.Expect(w.next(g)).To(And(HaveField("Failed", 1), HaveField("Progress", `{"copied":7}`)), "who adds it again does not wait")
		w.end <- errors.New("again")
		g.Expect(<-asked).To(Equal(failure{1, "again"}))
		g.Expect(w.next(g).Failed).To(Equal(2), "the queue itself tries again")
		retry = time.Hour
		add(t, w.queue, "a", "", acme)
		w.end <- errors.New("and again")
		g.Expect(<-asked).To(Equal(failure{2, "and again"}))
		g.Expect(w.next(g).Failed).To(Equal(3), "what was added meanwhile does not wait either")
		add(t, w.queue, "a", "", acme)
		w.end <- nil
		g.Expect(w.next(g)).To(And(HaveField("Failed", 0), HaveField("Progress", "")), "a success begins the count anew")
		w.end <- nil
		inQueue(t, w.queue, "a", job.Idle)
	})
}

func TestQueue_waitsUntilTaskIsDue(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, w := NewWithT(t), newWorker(t, name, job.QueueOptions{Limits: fair.Limits{Total: 4}})
		later := func(delay time.Duration) {
			g.Expect(w.queue.AddAfter(t.Context(), job.Task{Key: "a"}, delay)).To(Succeed())
		}
		later(time.Hour)
		g.Consistently(w.began).WithTimeout(50 * time.Millisecond).ShouldNot(Receive())
		later(2 * time.Hour)
		later(time.Millisecond)
		w.next(g)
		later(time.Hour)
		w.end <- nil
		inQueue(t, w.queue, "a", job.Waiting)
		g.Consistently(w.began).WithTimeout(50*time.Millisecond).ShouldNot(Receive(), "also when it ran meanwhile")
		add(t, w.queue, "a", "", acme)
		w.next(g)
		later(time.Hour)
		later(time.Millisecond)
		later(time.Hour)
		w.end <- nil
		w.next(g)
	})
}

func TestGrowing_increasesDelay(t *testing.T) {
	g, retry := NewWithT(t), job.Growing(time.Second, time.Minute)
	for failed, want := range map[int]time.Duration{0: time.Second, 1: 2 * time.Second, 5: 32 * time.Second, 6: time.Minute, 1000: time.Minute} {
		g.Expect(retry(failed, nil)).To(And(BeNumerically(">=", want), BeNumerically("<=", want*6/5)))
	}
}

func TestQueue_isIndependentOfOtherQueues(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, w := NewWithT(t), newWorker(t, name, job.QueueOptions{})
		other := job.NewQueue(databasetest.Open(t, name, job.Migrations()), job.QueueOptions{Name: "others"})
		add(t, other, "a", "", acme)
		g.Expect(w.queue.Forget(t.Context(), "a")).To(Succeed())
		add(t, w.queue, "b", "", acme)
		g.Expect(w.next(g).Key).To(Equal("b"))
		inQueue(t, other, "a", job.Waiting)
	})
}

// Many tenants have waiting tasks, as in a backlog.
func BenchmarkQueue_runsTask(b *testing.B) {
	const tenants, tasks = 100, 10_000
	for engine, name := range databasetest.Engines() {
		b.Run(engine, func(b *testing.B) {
			db := databasetest.Open(b, name(b), job.Migrations())
			ran := make(chan struct{})
			q := job.NewQueue(db, job.QueueOptions{Name: "tests", Run: func(ctx context.Context, _ job.Attempt, _ func(string)) error {
				select {
				case ran <- struct{}{}:
				case <-ctx.Done():
				}
				return ctx.Err()
			}})
			err := db.Atomically(b.Context(), "adding", func(ctx context.Context, _ bun.IDB) (err error) {
				for i := range tasks {
					err = errors.Join(err, q.Add(ctx, job.Task{Key: fmt.Sprint(i), Tenant: fair.User(int64(i % tenants))}))
				}
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(b.Context())
			done := make(chan error)
			go func() { done <- q.Start(ctx) }()
			for b.Loop() {
				<-ran
			}
			cancel()
			if err := <-done; err != nil {
				b.Fatal(err)
			}
		})
	}
}
