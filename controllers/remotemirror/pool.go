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
	"github.com/forgeplane/forgeplane/internal/git/transfer"
	"github.com/forgeplane/forgeplane/internal/job"
)

// pool runs pushes outside of reconciles. It limits their number in total, for each host, and for one tenant (about half). The manager
// starts it.
type pool struct {
	*job.Pool[types.UID]

	// wake receives the mirror of each push that begins after it had to wait, or that has ended.
	wake chan event.TypedGenericEvent[*v1alpha1.RemoteMirror]

	mu     sync.Mutex
	pushes map[types.UID]*push
	// secrets are the versions of the Secrets at the beginning of the last pushes.
	secrets map[types.UID]string
}

// pushFunc performs one push.
type pushFunc func(ctx context.Context) (transfer.PushResult, error)

// push is one push of one mirror.
type push struct {
	goal goal
	// result is valid once the push has ended.
	result transfer.PushResult
}

// target is the destination of a push, and its tenant.
type target struct {
	tenant fair.Key
	host   string
}

// goal is the state that a push must reach.
type goal struct {
	// refs is the checksum of the refs of the project, and rules a digest of the rules that select them.
	refs, rules string
	// secret is the version of the Secret that the push uses, if it is known.
	secret string
}

// phase is the state of a push.
type phase = job.Phase

const (
	idle    = job.Idle
	queued  = job.Waiting
	pushing = job.Running
	done    = job.Done
)

// report has everything that is known about a push.
type report struct {
	phase          phase
	goal           goal
	started, ended time.Time
	result         transfer.PushResult
	err            error
}

func newPool(clk clock.PassiveClock, l Limits) *pool {
	return &pool{
		Pool: job.New[types.UID](job.Options{
			Name: "mirrors", Limits: fair.Halves(l.Concurrency), PerPlace: fair.Halves(l.PerHost), Clock: clk, Tell: true,
		}),
		wake:   make(chan event.TypedGenericEvent[*v1alpha1.RemoteMirror]),
		pushes: map[types.UID]*push{}, secrets: map[types.UID]string{},
	}
}

// begin schedules a push, unless the mirror has one.
func (p *pool) begin(m *v1alpha1.RemoteMirror, to target, g goal, run pushFunc) report {
	p.mu.Lock()
	defer p.mu.Unlock()
	next, mirror := &push{goal: g}, m.DeepCopy()
	wake := func(ctx context.Context) {
		select {
		case p.wake <- event.TypedGenericEvent[*v1alpha1.RemoteMirror]{Object: mirror}:
		case <-ctx.Done():
		}
	}
	s, begun := p.Begin(m.UID, job.Job{
		Tenant: to.tenant, Place: to.host, Began: wake, Ended: wake,
		Run: func(ctx context.Context, _ func(string)) (err error) {
			next.result, err = run(ctx)
			return err
		},
	})
	if begun {
		p.pushes[m.UID], p.secrets[m.UID] = next, g.secret
	}
	return p.report(m.UID, s)
}

// corrected reports whether the Secret of a mirror has changed since its last push began in this process.
func (p *pool) corrected(uid types.UID, g goal) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	version, known := p.secrets[uid]
	return known && version != g.secret
}

// look returns the state of the push of a mirror. It returns the result of a push that has ended only once.
func (p *pool) look(uid types.UID) report {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.report(uid, p.Look(uid))
	if r.phase == done {
		delete(p.pushes, uid)
	}
	return r
}

// report returns what is known about a push in a state. The caller must hold the lock.
func (p *pool) report(uid types.UID, s job.State) report {
	if s.Phase == idle {
		return report{}
	}
	r := report{phase: s.Phase, goal: p.pushes[uid].goal, started: s.Began, ended: s.Ended, err: s.Err}
	if r.phase == done {
		r.result = p.pushes[uid].result
	}
	return r
}

// forget ends the push of a mirror and discards its result.
func (p *pool) forget(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.secrets, uid)
	delete(p.pushes, uid)
	p.Forget(uid)
}
