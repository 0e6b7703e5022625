// Package job runs work in the background: so many jobs at once, fewer of one tenant, and as few at one place as that takes. Tenants take
// turns.
//
// A Pool loses its jobs with the process, so its callers begin them again. That is all that imports, pushes of mirrors and
// upkeep need: their controllers see from the objects what there is to do. A Queue keeps its tasks in the activity database, for work
// whose reason is written there once, in the same transaction, and which must outlive the process. It runs them in a Pool.
package job

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/internal/fair"
)

// Options say how the jobs of a pool are run.
type Options struct {
	// Name is that of the slots in the metrics, as in "imports".
	Name string
	// Limits are how many jobs run at once, in all and of one tenant.
	Limits fair.Limits
	// PerPlace are the same for one place, such as a host.
	PerPlace fair.Limits
	Clock    clock.PassiveClock
	// Retry says how long a job that has failed waits for its next attempt, after so many that have failed before. Where it is nil, there
	// is no other attempt than a job that is begun anew.
	Retry func(failed int, err error) time.Duration
	// Tell has the outcome of a job stay until Look has told it; no other job of the key begins before. It is not for jobs with Retry.
	Tell bool
}

// Job is work to do.
type Job struct {
	// Tenant is whom the job is counted for, and whom its context names.
	Tenant fair.Key
	// Place is where only so many run at once; empty for anywhere.
	Place string
	// Run does the work, and may tell how far it is in words for people. Its context ends when the job is forgotten, or the process ends.
	Run func(ctx context.Context, progress func(string)) error
	// Began is told when the job begins after having waited, and Ended when it has ended, in whatever way. Nobody listens any more when
	// the context has ended. Either may be nil.
	Began, Ended func(ctx context.Context)
}

// Phase is how far a job is.
type Phase int

const (
	// Idle is that of a key without a job.
	Idle Phase = iota
	// Waiting is that of a job whose turn has not come.
	Waiting
	// Running is that of a job that has begun.
	Running
	// Done is that of a job that has ended. Where it failed and is to be retried, Begin begins the next attempt when that is due.
	Done
)

// ProgressInterval is for how long the same progress is told: what is told is often written, and what is written wakes up others.
const ProgressInterval = 2 * time.Second

// State is what is known of the job of a key.
type State struct {
	Phase Phase
	// Progress is how far it is, in words for people.
	Progress string
	// Began and Ended are when it did.
	Began, Ended time.Time
	// Err is why it has failed, and Retry how long it is until the next attempt may begin.
	Err   error
	Retry time.Duration
}

// Pool is jobs, of which each key has one at a time. It runs them from Start on.
type Pool[K comparable] struct {
	options Options
	slots   *fair.Slots

	mu    sync.Mutex
	jobs  map[K]*job[K]
	queue *fair.Queue[*job[K]]
	// places are those where a job runs.
	places map[string]*place
	// leaving are jobs that were forgotten and have not ended.
	leaving map[K]*job[K]
	// launch starts a job; nil while the pool does not run.
	launch func(*job[K])
}

// job is a Job, through all of its attempts.
type job[K comparable] struct {
	Job
	key    K
	state  State
	failed int
	// due is when the next attempt is.
	due time.Time
	// hold is one of the slots, and seat one of the place, while it runs.
	hold, seat *fair.Hold
	cancel     context.CancelFunc
	// progress was told last, and shown is what of it was asked for, at a time.
	progress, shown string
	shownAt         time.Time
}

// place is where jobs run.
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

// Slots are those that jobs take, for the metrics.
func (p *Pool[K]) Slots() *fair.Slots { return p.slots }

// Begin has a job of a key run when its turn comes, unless the key has one whose next attempt is not due, or whose outcome nobody has
// been told. It reports whether it has, and what is known of the job that the key has now.
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

// Look says how far the job of a key is. The outcome of one that has ended is told once, by pools that Tell.
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

// Forget ends the job of a key and forgets its outcome. It reports whether nothing of it runs any more; a job that is begun for the key
// meanwhile waits for that.
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

// tell returns the state, with for a while the same progress.
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

// dispatch starts what may start, and returns it. The caller holds the lock.
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

// seat takes what a job needs beside one of the slots, and reports whether that is there.
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

// rise gives back what a job has had.
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

// Start runs jobs until ctx ends, and then ends those that run and waits for them.
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
	p.launch = nil // before those that run end, and others have their turn
	p.mu.Unlock()
	stop()
	all.Wait()
	return nil
}

// heed remembers how far a job is.
func (p *Pool[K]) heed(j *job[K], text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	j.progress = text
}

// end says how an attempt has ended, starts those whose turn it is then, and tells of both.
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
