package remotemirror

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git"
)

// pool runs pushes beside the reconciles, so many at once and so many to one host, and about half as many of one tenant. It is started
// by the manager.
type pool struct {
	clock  clock.PassiveClock
	limits Limits
	// wake gets the mirror of each push that begins after having waited, or has ended.
	wake chan event.TypedGenericEvent[*v1alpha1.RemoteMirror]

	slots *fair.Slots

	mu    sync.Mutex
	jobs  map[types.UID]*job
	queue *fair.Queue[*job]
	// hosts are those that something is pushed to.
	hosts map[string]*host
	// secrets are the versions of the Secrets when pushes were begun last.
	secrets map[types.UID]string
	// launch starts a job; nil while the pool does not run.
	launch func(*job)
}

// pushFunc is one push.
type pushFunc func(ctx context.Context) (git.PushResult, error)

// job is one push of one mirror.
type job struct {
	mirror *v1alpha1.RemoteMirror
	to     target
	goal   goal
	run    pushFunc

	// hold is one of the pushes that run, and seat one of those to the host, while it runs.
	hold, seat *fair.Hold

	started, ended time.Time
	cancel         context.CancelFunc
	result         git.PushResult
	err            error
}

// target is where a push goes to, and for whom.
type target struct {
	tenant fair.Key
	host   string
}

// host is one that something is pushed to.
type host struct {
	slots   *fair.Slots
	pushing int
}

// goal is what a push is to bring about.
type goal struct {
	// refs is the checksum of the refs of the project, and rules a digest of what is pushed of them.
	refs, rules string
	// secret is the version of the Secret that the push goes with, as far as that is known.
	secret string
}

// phase is how far a job is.
type phase int

const (
	// idle: there is none.
	idle phase = iota
	queued
	pushing
	done
)

// report is what is known of a job.
type report struct {
	phase          phase
	goal           goal
	started, ended time.Time
	result         git.PushResult
	err            error
}

func newPool(clk clock.PassiveClock, l Limits) *pool {
	slots := fair.New("mirrors", "pushes to mirrors", fair.Halves(l.Concurrency))
	return &pool{
		clock: clk, limits: l, wake: make(chan event.TypedGenericEvent[*v1alpha1.RemoteMirror]),
		jobs: map[types.UID]*job{}, slots: slots, queue: fair.NewQueue[*job](slots),
		hosts: map[string]*host{}, secrets: map[types.UID]string{},
	}
}

// begin has a push run when its turn comes, unless the mirror has one.
func (p *pool) begin(m *v1alpha1.RemoteMirror, to target, g goal, run pushFunc) report {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.jobs[m.UID] == nil {
		j := &job{mirror: m.DeepCopy(), to: to, goal: g, run: run}
		p.jobs[m.UID], p.secrets[m.UID] = j, g.secret
		p.queue.Add(to.tenant, j)
		p.dispatch()
	}
	return p.jobs[m.UID].report()
}

// corrected reports whether the Secret of a mirror is another one than when its last push began, which was here.
func (p *pool) corrected(uid types.UID, g goal) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	version, known := p.secrets[uid]
	return known && version != g.secret
}

// look says how far the push of a mirror is. One that has ended is told of once.
func (p *pool) look(uid types.UID) report {
	p.mu.Lock()
	defer p.mu.Unlock()
	j := p.jobs[uid]
	if j == nil {
		return report{}
	}
	if !j.ended.IsZero() {
		delete(p.jobs, uid)
	}
	return j.report()
}

func (j *job) report() report {
	r := report{phase: queued, goal: j.goal, started: j.started, ended: j.ended, result: j.result, err: j.err}
	if !j.started.IsZero() {
		r.phase = pushing
	}
	if !j.ended.IsZero() {
		r.phase = done
	}
	return r
}

// forget ends the push of a mirror, whose outcome nobody asks for any more.
func (p *pool) forget(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.secrets, uid)
	j := p.jobs[uid]
	if j == nil {
		return
	}
	delete(p.jobs, uid)
	p.queue.Remove(j)
	if j.cancel != nil {
		j.cancel()
	}
}

// dispatch starts what may start, and returns it. The caller holds the lock.
func (p *pool) dispatch() (begun []*job) {
	for p.launch != nil {
		j, hold := p.queue.Next(p.seat)
		if hold == nil {
			break
		}
		j.hold, j.started = hold, p.clock.Now()
		p.launch(j)
		begun = append(begun, j)
	}
	return begun
}

// seat takes one of the pushes to a host for a job, and reports whether there is one.
func (p *pool) seat(j *job) bool {
	h := p.hosts[j.to.host]
	if h == nil {
		h = &host{slots: fair.New("mirrors-of-one-host", "pushes to this host", fair.Halves(p.limits.PerHost))}
	}
	if j.seat = h.slots.Try(fair.With(context.Background(), j.to.tenant), 1); j.seat == nil {
		return false
	}
	h.pushing++
	p.hosts[j.to.host] = h
	return true
}

// rise gives back what a job has had.
func (p *pool) rise(j *job) {
	j.seat.Leave()
	p.queue.Done(j.hold)
	if h := p.hosts[j.to.host]; h.pushing == 1 {
		delete(p.hosts, j.to.host)
	} else {
		h.pushing--
	}
}

// Start runs pushes until ctx ends.
func (p *pool) Start(ctx context.Context) error {
	var all sync.WaitGroup
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	p.mu.Lock()
	p.launch = func(j *job) {
		attempt, cancel := context.WithCancel(fair.With(running, j.to.tenant))
		j.cancel = cancel
		all.Go(func() {
			defer cancel()
			p.push(attempt, running.Done(), j)
		})
	}
	p.dispatch()
	p.mu.Unlock()
	<-ctx.Done()
	p.mu.Lock()
	p.launch = nil // before those that run end, and others have their turn
	p.mu.Unlock()
	stop()
	all.Wait()
	return nil
}

// push runs one job, and tells the controller; nobody listens any more after the end.
func (p *pool) push(ctx context.Context, end <-chan struct{}, j *job) {
	result, err := j.run(ctx)
	p.mu.Lock()
	j.result, j.err, j.ended, j.cancel = result, err, p.clock.Now(), nil
	p.rise(j)
	news := append([]*job{j}, p.dispatch()...)
	p.mu.Unlock()
	for _, n := range news {
		select {
		case p.wake <- event.TypedGenericEvent[*v1alpha1.RemoteMirror]{Object: n.mirror}:
		case <-end:
			return
		}
	}
}
