package job_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/test/patience"
)

// short is the duration of a lease that is renewed soon. long is for leases that must not be lost, however busy the machine is.
const short, long = 300 * time.Millisecond, 20 * time.Second

// leaseEnd returns the end of the lease of the only task.
func leaseEnd(t *testing.T, db *sql.DB) (end int64) {
	t.Helper()
	NewWithT(t).Expect(db.QueryRowContext(t.Context(), "SELECT due FROM jobs").Scan(&end)).To(Succeed())
	return end
}

func change(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), statement)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

func TestQueue_renewsLeaseAndRecordsProgress(t *testing.T) {
	t.Parallel() // it waits for leases
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		t.Parallel() // it takes some seconds
		const lease = 4 * time.Second
		g, db := NewWithT(t), databasetest.SQL(t, name)
		w := newWorker(t, name, job.QueueOptions{Lease: lease})
		w.tell = "half of it"
		other := newWorker(t, name, job.QueueOptions{})
		other.stop()
		add(t, w.queue, "a", "", acme)
		w.next(g)
		claimed := leaseEnd(t, db)
		g.Eventually(func() int64 { return leaseEnd(t, db) }).WithTimeout(patience.Wait).Should(BeNumerically(">", claimed+lease.Milliseconds()), "the lease would be over")
		g.Expect(inQueue(t, other.queue, "a", job.Running)).To(HaveField("Progress", "half of it"))
		g.Expect(w.ended).To(BeEmpty())
		w.end <- nil
		inQueue(t, w.queue, "a", job.Idle)
	})
}

func TestQueue_endsRunThatLostItsLease(t *testing.T) {
	t.Parallel() // it waits for leases
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		for outcome, end := range map[string]error{"done": nil, "failed": errors.New("failure")} {
			t.Run(outcome, func(t *testing.T) {
				g, db := NewWithT(t), databasetest.SQL(t, name)
				ended, began := make(chan error, 100), make(chan struct{}, 100)
				w := newWorker(t, name, job.QueueOptions{Lease: short, Limits: fair.Limits{Total: 2}, Run: func(ctx context.Context, _ job.Attempt, _ func(string)) error {
					began <- struct{}{}
					<-ctx.Done()
					ended <- context.Cause(ctx)
					return end
				}})
				add(t, w.queue, "a", "", acme)
				g.Eventually(began).WithTimeout(patience.Wait).Should(Receive())
				// Another process has taken over the task while this one was paused.
				change(t, db, "UPDATE jobs SET owner = 'another', number = number + 1, due = due + 3600000")
				g.Eventually(ended).WithTimeout(patience.Wait).Should(Receive(MatchError(job.ErrLost)))
				w.stop()
				var owner, failure string
				g.Expect(db.QueryRowContext(t.Context(), "SELECT owner, failure FROM jobs").Scan(&owner, &failure)).To(Succeed())
				g.Expect([]string{owner, failure}).To(Equal([]string{"another", ""}), "it changes nothing any more")
				change(t, db, "DELETE FROM jobs")
			})
		}
	})
}

func TestConfirm_failsForReplacedAttempt(t *testing.T) {
	t.Parallel() // it waits for leases
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, db := NewWithT(t), databasetest.SQL(t, name)
		own := databasetest.Open(t, name, job.Migrations())
		numbers := func() (all []int64) {
			g.Expect(own.Read(t.Context(), "reading", func(ctx context.Context, db bun.IDB) error {
				return db.NewRaw("SELECT number FROM job_numbers WHERE queue = 'side effects'").Scan(ctx, &all)
			})).To(Succeed())
			return all
		}
		// write is a side effect of an attempt.
		write := func(a job.Attempt, value int) error {
			return own.Atomically(t.Context(), "writing", func(ctx context.Context, db bun.IDB) error {
				if _, err := db.NewRaw("DELETE FROM job_numbers WHERE queue = 'side effects'").Exec(ctx); err != nil {
					return err
				}
				if _, err := db.NewRaw("INSERT INTO job_numbers (queue, number) VALUES ('side effects', ?)", value).Exec(ctx); err != nil {
					return err
				}
				return a.Confirm(ctx)
			})
		}
		type run struct {
			job.Attempt
			tell func(string)
			end  chan error
		}
		begin := func() (*worker, chan run) {
			began := make(chan run, 10)
			// The first attempt ignores its context and the time, like a process that was paused.
			return newWorker(t, name, job.QueueOptions{Lease: long, Run: func(_ context.Context, a job.Attempt, tell func(string)) error {
				r := run{a, tell, make(chan error)}
				began <- r
				return <-r.end
			}}), began
		}
		var stale, fresh, next run
		first, began := begin()
		add(t, first.queue, "a", "", acme)
		g.Eventually(began).WithTimeout(patience.Wait).Should(Receive(&stale))
		g.Expect(write(stale.Attempt, 1)).To(Succeed())
		g.Expect(numbers()).To(Equal([]int64{1}))

		second, taken := begin()
		change(t, db, "UPDATE jobs SET due = 0") // the lease has expired
		g.Eventually(taken).WithTimeout(patience.Wait).Should(Receive(&fresh))
		g.Expect(fresh.Number).To(BeNumerically(">", stale.Number))
		g.Expect(write(stale.Attempt, 2)).To(MatchError(job.ErrLost))
		g.Expect(stale.Confirm(t.Context())).To(MatchError(job.ErrLost))
		g.Expect(write(fresh.Attempt, 3)).To(Succeed())
		g.Expect(numbers()).To(Equal([]int64{3}))
		stale.tell("progress of the first")
		stale.end <- errors.New("failure of the first")
		first.stop()
		g.Expect(second.queue.Look(t.Context(), "a")).To(Equal(job.State{Phase: job.Running}), "neither its failure nor its progress counts")

		fresh.end <- nil
		inQueue(t, second.queue, "a", job.Idle)
		g.Expect(fresh.Confirm(t.Context())).To(MatchError(job.ErrLost), "it is done")
		add(t, second.queue, "a", "", acme)
		g.Eventually(taken).WithTimeout(patience.Wait).Should(Receive(&next))
		g.Expect(next.Number).To(BeNumerically(">", fresh.Number), "the numbers outlive the row of a task")
		next.end <- nil
		inQueue(t, second.queue, "a", job.Idle)
	})
}

func TestQueue_runsTaskOnceDespiteLostLease(t *testing.T) {
	t.Parallel() // it waits for leases
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, db := NewWithT(t), databasetest.SQL(t, name)
		began, end, lost := make(chan int, 10), make(chan struct{}), make(chan struct{}, 10)
		w := newWorker(t, name, job.QueueOptions{Lease: short, Limits: fair.Limits{Total: 2}, Run: func(ctx context.Context, a job.Attempt, _ func(string)) error {
			began <- a.Failed
			select {
			case <-end: // it ignores its context
			case <-ctx.Done():
				lost <- struct{}{}
				<-end
			}
			return nil
		}})
		add(t, w.queue, "a", "", acme)
		g.Eventually(began).WithTimeout(patience.Wait).Should(Receive(Equal(0)))
		change(t, db, "UPDATE jobs SET number = number + 1, due = 0") // as if another process had claimed it and was killed
		g.Eventually(lost).WithTimeout(patience.Wait).Should(Receive())
		g.Consistently(began).WithTimeout(50*time.Millisecond).ShouldNot(Receive(), "it still runs")
		end <- struct{}{}
		g.Eventually(began).WithTimeout(patience.Wait).Should(Receive(Equal(1)))
		close(end)
		inQueue(t, w.queue, "a", job.Idle)
	})
}

func TestQueue_repeatsRunIfLeaseCannotBeRenewed(t *testing.T) {
	t.Parallel() // it waits for leases
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		t.Parallel() // it waits for the end of leases
		for outcome, end := range map[string]error{"done": nil, "failed": errors.New("failure")} {
			t.Run(outcome, func(t *testing.T) {
				g := NewWithT(t)
				began, finish, ended := make(chan job.Attempt, 100), make(chan struct{}), make(chan error, 100)
				w := newWorker(t, name, job.QueueOptions{Lease: time.Second, Run: func(ctx context.Context, a job.Attempt, _ func(string)) error {
					began <- a
					select {
					case <-finish:
						return nil
					case <-ctx.Done():
						ended <- context.Cause(ctx)
						return end
					}
				}})
				add(t, w.queue, "a", "", acme)
				g.Eventually(began).WithTimeout(patience.Wait).Should(Receive())
				unlock := databasetest.Lock(t, name, "jobs")
				g.Eventually(ended).WithTimeout(patience.Wait).Should(Receive(MatchError(job.ErrLost)))
				unlock()
				g.Eventually(began).WithTimeout(patience.Wait).Should(Receive(HaveField("Failed", BeNumerically("<=", 1))))
				close(finish)
				inQueue(t, w.queue, "a", job.Idle)
			})
		}
	})
}

func TestQueue_releasesLeasesWhenItStops(t *testing.T) {
	t.Parallel() // it waits for leases
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, w := NewWithT(t), newWorker(t, name, job.QueueOptions{Lease: time.Hour})
		w.tell = "half of it"
		add(t, w.queue, "a", "", acme)
		w.next(g)
		w.stop()
		g.Expect(w.ended).To(Receive(MatchError(context.Canceled)), "it is waited for")
		other := newWorker(t, name, job.QueueOptions{})
		g.Expect(other.next(g)).To(And(HaveField("Failed", 0), HaveField("Progress", "half of it")), "it has not failed")
		other.end <- nil
		inQueue(t, w.queue, "a", job.Idle)
	})
}

func TestQueue_keepsLeaseUntilRunHasStopped(t *testing.T) {
	t.Parallel() // it waits for leases
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		t.Parallel() // it waits for a renewal
		g, db := NewWithT(t), databasetest.SQL(t, name)
		began, stopping, end := make(chan struct{}), make(chan struct{}), make(chan struct{})
		w := newWorker(t, name, job.QueueOptions{Lease: long, Run: func(ctx context.Context, _ job.Attempt, _ func(string)) error {
			close(began)
			<-ctx.Done()
			close(stopping)
			<-end
			return nil
		}})
		add(t, w.queue, "a", "", acme)
		g.Eventually(began).WithTimeout(patience.Wait).Should(BeClosed())
		go w.stop()
		g.Eventually(stopping).WithTimeout(patience.Wait).Should(BeClosed())
		held := leaseEnd(t, db)
		g.Eventually(func() int64 { return leaseEnd(t, db) }).WithTimeout(patience.Wait).Should(BeNumerically(">", held))
		close(end)
		inQueue(t, w.queue, "a", job.Idle)
	})
}

func TestQueue_recordsOutcomeWhenDatabaseIsBack(t *testing.T) {
	t.Parallel() // it waits for leases
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		t.Parallel() // it waits for a call to time out
		failed := make(chan string, 100)
		log := funcr.New(func(_, args string) { failed <- args }, funcr.Options{})
		g, w := NewWithT(t), newWorker(t, name, job.QueueOptions{Lease: long, Log: log})
		add(t, w.queue, "a", "", acme)
		w.next(g)
		unlock := databasetest.Lock(t, name, "jobs")
		w.end <- nil
		g.Eventually(failed).WithTimeout(patience.Wait).Should(Receive(ContainSubstring("Failed to record the outcome")))
		unlock()
		inQueue(t, w.queue, "a", job.Idle)
		g.Expect(w.began).To(BeEmpty())
	})
}

func TestForget_cancelsTasks(t *testing.T) {
	t.Parallel() // it waits for leases
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, w := NewWithT(t), newWorker(t, name, job.QueueOptions{Lease: long})
		forget := func(key string) { g.Expect(w.queue.Forget(t.Context(), key)).To(Succeed()) }
		forget("none")
		add(t, w.queue, "a", "", acme)
		add(t, w.queue, "b", "", acme)
		w.next(g)
		forget("b")
		inQueue(t, w.queue, "b", job.Idle)
		forget("a")
		g.Eventually(w.ended).WithTimeout(patience.Wait).Should(Receive(MatchError(job.ErrLost)))
		inQueue(t, w.queue, "a", job.Idle)
		add(t, w.queue, "c", "", acme)
		g.Expect(w.next(g).Key).To(Equal("c"), "neither b nor a comes again")
		w.end <- errors.New("failure")
		inQueue(t, w.queue, "c", job.Done)
		forget("c")
		g.Expect(w.queue.Look(t.Context(), "c")).To(BeZero())
	})
}

func TestForget_cancelsRunOfAnotherProcess(t *testing.T) {
	t.Parallel() // it waits for leases
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		began, end := make(chan string, 10), make(chan struct{})
		w := newWorker(t, name, job.QueueOptions{Lease: short, Run: func(ctx context.Context, a job.Attempt, _ func(string)) error {
			began <- string(a.Payload)
			if string(a.Payload) == "old" {
				<-ctx.Done()
				<-end
			}
			return nil
		}})
		other := newWorker(t, name, job.QueueOptions{})
		other.stop()
		add(t, other.queue, "a", "old", acme)
		g.Eventually(began).WithTimeout(patience.Wait).Should(Receive(Equal("old")))
		g.Expect(other.queue.Forget(t.Context(), "a")).To(Succeed())
		g.Expect(other.queue.Look(t.Context(), "a")).To(BeZero())
		add(t, other.queue, "a", "new", acme)
		g.Expect(other.queue.Look(t.Context(), "a")).To(HaveField("Phase", job.Waiting))
		g.Consistently(began).WithTimeout(50*time.Millisecond).ShouldNot(Receive(), "they do not overlap")
		close(end)
		g.Eventually(began).WithTimeout(patience.Wait).Should(Receive(Equal("new")))
		inQueue(t, w.queue, "a", job.Idle)
	})
}

func TestForget_removesTaskOfDeadProcess(t *testing.T) {
	t.Parallel() // it waits for leases
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, db := NewWithT(t), databasetest.SQL(t, name)
		q := job.NewQueue(databasetest.Open(t, name, job.Migrations()), job.QueueOptions{Name: "tests"})
		add(t, q, "a", "", acme)
		change(t, db, "UPDATE jobs SET owner = 'another', number = 1")
		g.Expect(q.Forget(t.Context(), "a")).To(Succeed())
		w := newWorker(t, name, job.QueueOptions{})
		g.Eventually(func() (n int, err error) {
			err = db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM jobs").Scan(&n)
			return n, err
		}).WithTimeout(patience.Wait).Should(BeZero())
		g.Expect(w.began).To(BeEmpty())

		w.stop()
		add(t, q, "a", "old", acme)
		change(t, db, "UPDATE jobs SET owner = 'another', number = 1")
		g.Expect(q.Forget(t.Context(), "a")).To(Succeed())
		add(t, q, "a", "new", acme)
		w = newWorker(t, name, job.QueueOptions{})
		g.Expect(w.next(g).Payload).To(BeEquivalentTo("new"), "but what was added afterwards")
		w.end <- nil
		inQueue(t, q, "a", job.Idle)
	})
}

// In the bubble it is the year 2000, and an hour takes no time. SQLite uses the clock of the machine.
func TestQueue_usesClockOfDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, name := NewWithT(t), databasetest.SQLite(t)
		db, err := database.Open(t.Context(), name, job.Migrations())
		g.Expect(err).NotTo(HaveOccurred())
		defer db.Close()
		q := job.NewQueue(db, job.QueueOptions{Name: "tests"})
		g.Expect(q.AddAfter(t.Context(), job.Task{Key: "later"}, 30*time.Minute)).To(Succeed())
		g.Expect(q.Add(t.Context(), job.Task{Key: "now"})).To(Succeed())
		ran := make(chan string, 10)
		w := job.NewQueue(db, job.QueueOptions{Name: "tests", Run: func(_ context.Context, a job.Attempt, _ func(string)) error {
			ran <- a.Key
			return nil
		}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Start(ctx) }()
		g.Expect(<-ran).To(Equal("now"))
		<-time.After(time.Hour)
		g.Expect(ran).To(BeEmpty(), "for the database, it is not half an hour")
		cancel()
		g.Expect(<-done).To(Succeed())
	})
}

func TestQueue_releasesTasksClaimedWhileStopping(t *testing.T) {
	t.Parallel() // it waits for leases
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, db := NewWithT(t), databasetest.Open(t, name, job.Migrations())
		began := make(chan struct{}, 1)
		q := job.NewQueue(db, job.QueueOptions{Name: "tests", Run: func(context.Context, job.Attempt, func(string)) error {
			began <- struct{}{}
			return nil
		}})
		add(t, q, "a", "", acme)
		unlock := databasetest.Lock(t, name, "jobs")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- q.Start(ctx) }()
		g.Consistently(began).WithTimeout(50*time.Millisecond).ShouldNot(Receive(), "it waits for the database")
		cancel()
		unlock()
		g.Eventually(done).WithTimeout(patience.Wait).Should(Receive(BeNil()))
		g.Expect(q.Look(t.Context(), "a")).To(Equal(job.State{Phase: job.Waiting}))
		g.Expect(began).To(BeEmpty())
	})
}
