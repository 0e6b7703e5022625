package remotemirror

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/git"
)

// pool runs pushes beside the reconciles, so many at once and so many to one host. It is started by the manager.
type pool struct {
	clock  clock.PassiveClock
	limits Limits
	// wake gets the mirror of each push that begins after having waited, or has ended.
	wake chan event.TypedGenericEvent[*v1alpha1.RemoteMirror]

	mu      sync.Mutex
	jobs    map[types.UID]*job
	waiting []*job
	running int
	hosts   map[string]int
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
	host   string
	goal   goal
	run    pushFunc

	started, ended time.Time
	cancel         context.CancelFunc
	result         git.PushResult
	err            error
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
	return &pool{
		clock: clk, limits: l, wake: make(chan event.TypedGenericEvent[*v1alpha1.RemoteMirror]),
		jobs: map[types.UID]*job{}, hosts: map[string]int{}, secrets: map[types.UID]string{},
	}
}

// begin has a push run when its turn comes, unless the mirror has one.
func (p *pool) begin(m *v1alpha1.RemoteMirror, host string, g goal, run pushFunc) report {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.jobs[m.UID] == nil {
		j := &job{mirror: m.DeepCopy(), host: host, goal: g, run: run}
		p.jobs[m.UID], p.secrets[m.UID] = j, g.secret
		p.waiting = append(p.waiting, j)
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
	p.waiting = slices.DeleteFunc(p.waiting, func(w *job) bool { return w == j })
	if j.cancel != nil {
		j.cancel()
	}
}

// dispatch starts what may start, in the order of arrival as far as the hosts let it. The caller holds the lock.
func (p *pool) dispatch() {
	if p.launch == nil {
		return
	}
	var still []*job
	for _, j := range p.waiting {
		if p.running >= p.limits.Concurrency || p.hosts[j.host] >= p.limits.PerHost {
			still = append(still, j)
			continue
		}
		p.running++
		p.hosts[j.host]++
		j.started = p.clock.Now()
		p.launch(j)
	}
	p.waiting = still
}

// Start runs pushes until ctx ends.
func (p *pool) Start(ctx context.Context) error {
	var all sync.WaitGroup
	p.mu.Lock()
	p.launch = func(j *job) {
		attempt, cancel := context.WithCancel(ctx)
		j.cancel = cancel
		all.Go(func() {
			defer cancel()
			p.push(attempt, ctx.Done(), j)
		})
	}
	p.dispatch()
	p.mu.Unlock()
	<-ctx.Done()
	p.mu.Lock()
	p.launch = nil
	p.mu.Unlock()
	all.Wait()
	return nil
}

// push runs one job, and tells the controller; nobody listens any more after the end.
func (p *pool) push(ctx context.Context, end <-chan struct{}, j *job) {
	result, err := j.run(ctx)
	p.mu.Lock()
	j.result, j.err, j.ended, j.cancel = result, err, p.clock.Now(), nil
	p.running--
	if p.hosts[j.host]--; p.hosts[j.host] == 0 {
		delete(p.hosts, j.host)
	}
	before := p.waiting
	p.dispatch()
	news := []*job{j}
	for _, w := range before {
		if !w.started.IsZero() {
			news = append(news, w)
		}
	}
	p.mu.Unlock()
	for _, n := range news {
		select {
		case p.wake <- event.TypedGenericEvent[*v1alpha1.RemoteMirror]{Object: n.mirror}:
		case <-end:
			return
		}
	}
}
