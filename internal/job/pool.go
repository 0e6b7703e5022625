// Package job runs work in the background. It limits the number of jobs that run at once, in total, for each tenant and for each place, and
// lets tenants take turns.
//
// A Pool loses its jobs with the process, so its callers must begin them again. That suffices for imports, mirror pushes and maintenance,
// because a controller finds the work again, or the next push requests it again. A Queue keeps its tasks in the activity database. Use it for work whose cause
// is written there once, in the same transaction, and that must survive the process. It runs them in a Pool.
package job

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/internal/fair"
)

// Options configure a pool.
type Options struct {
	// Name is the name of the slots in the metrics, such as "imports".
	Name string
	// Limits are the maximum numbers of jobs that run at once, in total and for one tenant.
	Limits fair.Limits
	// PerPlace are the same limits for one place, such as a host.
	PerPlace fair.Limits
	Clock    clock.PassiveClock
	// Retry returns how long a job waits for its next attempt after failed consecutive failures. If it is nil, a failed job is only retried
	// by another Begin.
	Retry func(failed int, err error) time.Duration
	// Tell keeps the outcome of a job until Look has returned it; no other job of the key begins before. Do not combine it with Retry.
	Tell bool
}

// Job is work to do.
type Job struct {
	// Tenant is the tenant whose share the job uses. It is also in the job's context.
	Tenant fair.Key
	// Place is the place whose limits apply; empty for none.
	Place string
	// Run does the work, and can report its progress in words for people. Its context ends when the job is forgotten or the process ends.
	Run func(ctx context.Context, progress func(string)) error
	// Began is called when the job begins after it had to wait, and Ended when it has ended for any reason. Neither is called after the
	// context has ended. Either may be nil.
	Began, Ended func(ctx context.Context)
}

// Phase is the state of a job.
type Phase int

const (
	// Idle means that the key has no job.
	Idle Phase = iota
	// Waiting means that the job waits for its turn.
	Waiting
	// Running means that the job has begun.
	Running
	// Done means that the job has ended. If it failed and can be retried, Begin starts the next attempt when that is due.
	Done
)

// ProgressInterval is the minimum time between two different reports of progress, because reports are often written to objects, and writes
// trigger watchers.
const ProgressInterval = 2 * time.Second

// State describes the job of a key.
type State struct {
	Phase Phase
	// Progress is the last reported progress, in words for people.
	Progress string
	// Began and Ended are the times at which the job began and ended.
	Began, Ended time.Time
	// Err is the error of a failed job, and Retry the time until its next attempt can begin.
	Err   error
	Retry time.Duration
}

// Pool runs jobs, at most one for each key at a time. Nothing runs before Start.
type Pool[K comparable] struct {
	options Options
	slots   *fair.Slots

	mu    sync.Mutex
	jobs  map[K]*job[K]
	queue *fair.Queue[*job[K]]
	// places are the places of jobs.
	places map[string]*place
	// leaving are jobs that were forgotten but have not ended.
	leaving map[K]*job[K]
	// launch starts a job; nil while the pool does not run.
	launch func(*job[K])
}

// job is a Job with the state of all its attempts.
type job[K comparable] struct {
	Job
	key    K
	state  State
	failed int
	// due is the time of the next attempt.
	due time.Time
	// hold is the job's slot, and seat its slot at the place, while it runs.
	hold, seat *fair.Hold
	cancel     context.CancelFunc
	// progress is the last reported progress, and shown the progress that was last returned, with its time.
	progress, shown string
	shownAt         time.Time
}

// place has the jobs at one place.
type place struct {
	slots   *fair.Slots
	running int
}

// New returns a pool without jobs.
func New[K comparable](o Options) *Pool[K] {
	slots := fair.New(o.Name, o.Name, o.Limits)
	return &Pool[K]{
		options: o, slots: slots, jobs: map[K]*job[K]{}, queue: fair.NewQueue[*job[K]](slots), places: map[string]*place{},
		leaving: map[K]*job[K]{},
	}
}

// Slots returns the slots of the pool, for the metrics.
func (p *Pool[K]) Slots() *fair.Slots { return p.slots }

// Begin schedules a job for a key, unless the key has a job whose next attempt is not due yet, or whose outcome was not returned yet. It
// reports whether it did, and the state of the key's current job.
func (p *Pool[K]) Begin(key K, j Job) (State, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.options.Clock.Now()
	known := p.jobs[key]
	if known != nil && (known.state.Phase != Done || p.options.Tell || known.due.After(now)) {
		return known.tell(now), false
	}
	next := &job[K]{Job: j, key: key, state: State{Phase: Waiting}}
	if known != nil {
		next.failed = known.failed
	}
	p.jobs[key] = next
	p.queue.Add(j.Tenant, next)
	p.dispatch()
	return next.tell(now), true
}

// Look returns the state of the job of a key. A pool with Options.Tell returns the outcome of a job once.
func (p *Pool[K]) Look(key K) State {
	p.mu.Lock()
	defer p.mu.Unlock()
	j := p.jobs[key]
	if j == nil {
		return State{}
	}
	if p.options.Tell && j.state.Phase == Done {
		delete(p.jobs, key)
	}
	return j.tell(p.options.Clock.Now())
}

// Hasten makes the next attempt of a failed job due, because the cause of the failure may be gone.
func (p *Pool[K]) Hasten(key K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if j := p.jobs[key]; j != nil && j.state.Phase == Done {
		j.due = p.options.Clock.Now()
	}
}

// Forget ends the job of a key and forgets its outcome. It reports whether the job has ended; a new job for the key waits for that.
func (p *Pool[K]) Forget(key K) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if j := p.jobs[key]; j != nil {
		delete(p.jobs, key)
		p.queue.Remove(j)
		if j.cancel != nil {
			j.cancel()
			p.leaving[key] = j
		}
	}
	return p.leaving[key] == nil
}

// tell returns the state, with progress that changes at most once per ProgressInterval.
func (j *job[K]) tell(now time.Time) State {
	s := j.state
	if now.Sub(j.shownAt) >= ProgressInterval {
		j.shown, j.shownAt = j.progress, now
	}
	s.Progress = j.shown
	if left := j.due.Sub(now); s.Phase == Done && left > 0 {
		s.Retry = left
	}
	return s
}

// dispatch selects the jobs that can start, and returns them. The caller must hold the lock.
func (p *Pool[K]) dispatch() (begun []*job[K]) {
	for p.launch != nil {
		j, hold := p.queue.Next(p.seat)
		if hold == nil {
			break
		}
		j.hold, j.state.Phase, j.state.Began = hold, Running, p.options.Clock.Now()
		p.launch(j)
		begun = append(begun, j)
	}
	return begun
}

// seat takes what a job needs in addition to a slot, and reports whether it was available.
func (p *Pool[K]) seat(j *job[K]) bool {
	if p.leaving[j.key] != nil {
		return false
	}
	if j.Place == "" {
		return true
	}
	at := p.places[j.Place]
	if at == nil {
		at = &place{slots: fair.New(p.options.Name+"-of-one-place", p.options.Name, p.options.PerPlace)}
	}
	if j.seat = at.slots.Try(fair.With(context.Background(), j.Tenant), 1); j.seat == nil {
		return false
	}
	at.running++
	p.places[j.Place] = at
	return true
}

// rise releases everything that a job has taken.
func (p *Pool[K]) rise(j *job[K]) {
	p.queue.Done(j.hold)
	if j.seat == nil {
		return
	}
	j.seat.Leave()
	if at := p.places[j.Place]; at.running == 1 {
		delete(p.places, j.Place)
	} else {
		at.running--
	}
}

// Start runs jobs until ctx ends, then cancels the running jobs and waits for them.
func (p *Pool[K]) Start(ctx context.Context) error {
	var all sync.WaitGroup
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	p.mu.Lock()
	p.launch = func(j *job[K]) {
		attempt, cancel := context.WithCancel(fair.With(running, j.Tenant))
		j.cancel = cancel
		all.Go(func() {
			defer cancel()
			err := j.Run(attempt, func(text string) { p.heed(j, text) })
			p.end(running, j, err)
		})
	}
	begun := p.dispatch()
	p.mu.Unlock()
	tellBegan(ctx, begun)
	<-ctx.Done()
	p.mu.Lock()
	p.launch = nil // so that no other job starts when the running ones end
	p.mu.Unlock()
	stop()
	all.Wait()
	return nil
}

// heed records the progress of a job.
func (p *Pool[K]) heed(j *job[K], text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	j.progress = text
}

// end records the result of an attempt, starts the jobs whose turn it is then, and calls the callbacks of both.
func (p *Pool[K]) end(running context.Context, j *job[K], err error) {
	p.mu.Lock()
	j.state.Phase, j.state.Ended, j.state.Err, j.cancel = Done, p.options.Clock.Now(), err, nil
	switch {
	case p.leaving[j.key] == j:
		delete(p.leaving, j.key)
	case p.options.Tell:
	case err != nil && p.options.Retry != nil:
		j.due = j.state.Ended.Add(p.options.Retry(j.failed, err))
		j.failed++
	default:
		delete(p.jobs, j.key)
	}
	p.rise(j)
	begun := p.dispatch()
	p.mu.Unlock()
	if j.Ended != nil {
		j.Ended(running)
	}
	tellBegan(running, begun)
}

func tellBegan[K comparable](ctx context.Context, jobs []*job[K]) {
	for _, j := range jobs {
		if j.Began != nil {
			j.Began(ctx)
		}
	}
}
