package job

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/fair"
)

// lease is a task that this process has claimed.
type lease struct {
	row *row
	// claimed is the time at which this process requested the lease, which is before the lease began.
	claimed time.Time
	// check requests an immediate renewal.
	check chan struct{}

	mu       sync.Mutex
	progress string
}

func (l *lease) tell(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.progress = bounded(text, maxText)
}

func (l *lease) told() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.progress
}

// Start runs tasks until ctx ends. It then cancels the running tasks, waits for them, and releases their leases, so that another process
// can begin them at once.
func (q *Queue) Start(ctx context.Context) error {
	var running sync.WaitGroup
	running.Go(func() { _ = q.pool.Start(ctx) })
	ticker := time.NewTicker(q.options.Poll)
	defer ticker.Stop()
	for ctx.Err() == nil {
		for ctx.Err() == nil && q.next(ctx) {
		}
		select {
		case <-ctx.Done():
		case <-q.woken:
		case <-ticker.C:
		}
	}
	running.Wait()
	for _, l := range q.held { // claimed too late to begin
		q.finish(ctx, l, outcome{err: context.Cause(ctx), released: true, progress: l.told()})
	}
	return nil
}

// next begins the next task. It reports false if no task is due, or if there is no room for one.
func (q *Queue) next(ctx context.Context) bool {
	tenants, keys, room := q.taken()
	if !room {
		return false
	}
	claimed := time.Now()
	// It may already have claimed a task when it is interrupted.
	r, err := q.claim(context.WithoutCancel(ctx), q.last, tenants, keys)
	if err != nil {
		q.options.Log.Error(err, "Failed to look for tasks", "queue", q.options.Name)
	}
	if r == nil {
		return false
	}
	l := &lease{row: r, claimed: claimed, check: make(chan struct{}, 1), progress: r.Progress}
	tenant, err := fair.ParseKey(r.Tenant)
	if err != nil {
		q.options.Log.Error(err, "Failed to read the tenant of a task, so it counts for none", "queue", q.options.Name, "key", r.Key)
	}
	q.mu.Lock()
	q.held[r.Key], q.last = l, r.Tenant
	q.mu.Unlock()
	if ctx.Err() != nil {
		return false // Start releases it
	}
	q.pool.Begin(r.Key, Job{
		Tenant: tenant,
		Run:    func(ctx context.Context, _ func(string)) error { return q.run(ctx, tenant, l) },
		Ended: func(context.Context) {
			q.mu.Lock()
			delete(q.held, r.Key)
			q.mu.Unlock()
			q.wake()
		},
	})
	return true
}

// taken returns the tenants that have used up their share, the keys that run, and whether there is room for another task. A run that has
// lost its lease blocks its key until it ends.
func (q *Queue) taken() (tenants, keys []string, room bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	of := map[string]int{}
	for key, l := range q.held {
		keys = append(keys, key)
		if of[l.row.Tenant]++; of[l.row.Tenant] == q.Slots().Share() {
			tenants = append(tenants, l.row.Tenant)
		}
	}
	slices.Sort(keys)
	slices.Sort(tenants)
	return tenants, keys, len(q.held) < q.options.Limits.Total
}

// run does the work of a task while it renews the lease.
func (q *Queue) run(ctx context.Context, tenant fair.Key, l *lease) (err error) {
	working, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var renewing sync.WaitGroup
	done := make(chan struct{})
	renewing.Go(func() { q.keep(ctx, l, cancel, done) })
	if r := l.row; !r.Cancelled {
		task := Task{Key: r.Key, Tenant: tenant, Payload: r.Payload}
		err = q.options.Run(working, Attempt{
			Task: task, Number: r.Number, Failed: r.Attempts - 1, Progress: r.Progress,
			confirm: func(ctx context.Context) error { return q.confirm(ctx, r) },
		}, l.tell)
	}
	o := outcome{err: err, released: working.Err() != nil}
	if cause := context.Cause(working); errors.Is(cause, ErrLost) {
		o.err = cause // a run that was told to stop can return nil before the work is done
	}
	close(done)
	renewing.Wait()
	o.progress = l.told()
	q.finish(ctx, l, o)
	return err
}

// keep renews a lease after each third of its duration until the work is done, even if ctx has ended before. If it cannot renew the lease,
// it cancels the work when a sixth of the duration is left, measured by this process's clock.
func (q *Queue) keep(ctx context.Context, l *lease, cancel context.CancelCauseFunc, done <-chan struct{}) {
	const parts, renewals = 6, 3
	safe := q.options.Lease / parts * (parts - 1)
	expiry := time.AfterFunc(safe-time.Since(l.claimed), func() { cancel(ErrLost) })
	defer expiry.Stop()
	ticker := time.NewTicker(q.options.Lease / renewals)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
		case <-l.check:
		}
		asked := time.Now()
		renewed, err := q.renew(context.WithoutCancel(ctx), l.row, l.told())
		switch {
		case err != nil:
			q.options.Log.Error(err, "Failed to renew a lease", "queue", q.options.Name, "key", l.row.Key)
		case renewed:
			expiry.Reset(safe - time.Since(asked))
		default:
			cancel(ErrLost)
			return
		}
	}
}

// finish records the result of a run. If the database does not answer, it retries for as long as the lease can last, or only once when the
// process stops. If the result is not recorded, the task runs again.
func (q *Queue) finish(ctx context.Context, l *lease, o outcome) {
	const tries = 10
	patience, log := q.options.Lease, q.options.Log.WithValues("queue", q.options.Name, "key", l.row.Key)
	if ctx.Err() != nil {
		patience = database.Limit
	}
	err := wait.PollUntilContextTimeout(context.WithoutCancel(ctx), q.options.Lease/tries, patience, true, func(ctx context.Context) (bool, error) {
		mine, err := q.settle(ctx, l.row, o)
		if err != nil {
			log.Error(err, "Failed to record the outcome of a job")
		} else if !mine {
			log.Info("A job has ended whose lease was lost")
		}
		return err == nil, nil
	})
	if err != nil {
		log.Error(err, "Failed to record the outcome of a job, so it runs again")
	}
}
