package project

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git"
)

// Imports take from seconds to hours, so they run beside the reconciles, a few at once, and fewer of one tenant.
const (
	importers  = 4
	importsOf  = 2
	firstRetry = 10 * time.Second
	lastRetry  = 10 * time.Minute
	// limitRetry is for an import that the server does not allow, and that would most likely end in the same way again.
	limitRetry = 24 * time.Hour
)

// importFunc imports one repository and tells how far it is.
type importFunc func(ctx context.Context, progress func(git.Progress)) error

// importer runs imports. It is started by the manager.
type importer struct {
	clock clock.PassiveClock
	// tenant says whom the import of a project is counted for.
	tenant func(*v1alpha1.Project) fair.Key
	// wake gets the project of each import that has ended.
	wake chan event.TypedGenericEvent[*v1alpha1.Project]

	slots *fair.Slots

	mu    sync.Mutex
	queue *fair.Queue[*job]
	jobs  map[types.UID]*job
	// launch starts a job; nil while the importer does not run.
	launch func(*job, *fair.Hold)
}

// job is the import of one project, through all of its attempts.
type job struct {
	project  *v1alpha1.Project
	run      importFunc
	cancel   context.CancelFunc
	active   bool
	phase    string
	err      error
	attempts int
	retry    time.Time
	// shown is the phase that was last told, at a time.
	shown   string
	shownAt time.Time
}

// tell returns the phase, and for a while the same one: what is shown is written, and what is written wakes the controller.
func (j *job) tell(now time.Time) string {
	if now.Sub(j.shownAt) >= progressInterval {
		j.shown, j.shownAt = j.phase, now
	}
	return j.shown
}

func newImporter(clk clock.PassiveClock, tenant func(*v1alpha1.Project) fair.Key) *importer {
	slots := fair.New("imports", "imports", fair.Limits{Total: importers, Share: importsOf})
	return &importer{
		clock: clk, tenant: tenant, slots: slots, queue: fair.NewQueue[*job](slots), jobs: map[types.UID]*job{},
		wake: make(chan event.TypedGenericEvent[*v1alpha1.Project]),
	}
}

// state is how far an import is.
type state struct {
	// phase is what git is doing; empty while the import waits for its turn.
	phase string
	// err is why the last attempt failed; the next one starts after retry.
	err   error
	retry time.Duration
}

// begin starts the import of a project, unless it is running or its next attempt is not due, and says how far it is.
func (i *importer) begin(p *v1alpha1.Project, run importFunc) state {
	i.mu.Lock()
	defer i.mu.Unlock()
	j := i.jobs[p.UID]
	if j == nil {
		j = &job{}
		i.jobs[p.UID] = j
	}
	if !j.active {
		if left := j.retry.Sub(i.clock.Now()); left > 0 {
			return state{err: j.err, retry: left}
		}
		j.project, j.run, j.active, j.phase, j.shownAt = p.DeepCopy(), run, true, "", time.Time{}
		i.queue.Add(i.tenant(p), j)
		i.dispatch()
	}
	return state{phase: j.tell(i.clock.Now())}
}

// forget ends the import of a project that is going away; it reports whether nothing of it runs any more.
func (i *importer) forget(uid types.UID) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	j := i.jobs[uid]
	if j == nil {
		return true
	}
	if j.cancel != nil {
		j.cancel()
		return false
	}
	i.queue.Remove(j)
	delete(i.jobs, uid)
	return true
}

// dispatch starts what may start. The caller holds the lock.
func (i *importer) dispatch() {
	if i.launch == nil {
		return
	}
	for {
		j, hold := i.queue.Next(func(*job) bool { return true })
		if hold == nil {
			return
		}
		i.launch(j, hold)
	}
}

// Start runs imports until ctx ends.
func (i *importer) Start(ctx context.Context) error {
	var all sync.WaitGroup
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	i.mu.Lock()
	i.launch = func(j *job, hold *fair.Hold) {
		attempt, cancel := context.WithCancel(fair.With(running, hold.Caller()))
		j.cancel = cancel
		project, run := j.project, j.run
		all.Go(func() {
			defer cancel()
			err := run(attempt, func(p git.Progress) { i.heed(j, p) })
			i.end(j, hold, err)
			select {
			case i.wake <- event.TypedGenericEvent[*v1alpha1.Project]{Object: project}:
			case <-running.Done():
			}
		})
	}
	i.dispatch()
	i.mu.Unlock()
	<-ctx.Done()
	i.mu.Lock()
	i.launch = nil // before those that run end, and others have their turn
	i.mu.Unlock()
	stop()
	all.Wait()
	return nil
}

// heed remembers how far an import is.
func (i *importer) heed(j *job, p git.Progress) {
	i.mu.Lock()
	defer i.mu.Unlock()
	j.phase = fmt.Sprintf("%s: %d%%", p.Phase, p.Percent)
}

// end says how an attempt has ended, and starts the next one.
func (i *importer) end(j *job, hold *fair.Hold, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	j.active, j.cancel, j.err = false, nil, err
	if err != nil {
		retry := min(firstRetry<<min(j.attempts, 10), lastRetry)
		if git.LastingLimit(err) != "" {
			retry = limitRetry
		}
		j.retry = i.clock.Now().Add(wait.Jitter(retry, 0.2))
		j.attempts++
	} else {
		delete(i.jobs, j.project.UID)
	}
	i.queue.Done(hold)
	i.dispatch()
}
