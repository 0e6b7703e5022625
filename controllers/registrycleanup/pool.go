package registrycleanup

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/registry/cleanup"
)

// DefaultConcurrency is the default number of cleanups that run at once. About half of them can be those of one tenant.
const DefaultConcurrency = 4

// pool runs the attempts of runs, outside of reconciles. The manager starts it.
type pool struct {
	*job.Pool[types.UID]
	// wake receives the cleanup of each attempt that begins after it had to wait, or that has ended.
	wake chan event.TypedGenericEvent[*v1alpha1.RegistryCleanup]

	mu       sync.Mutex
	progress map[types.UID]cleanup.Progress
}

// attempt is one attempt of a run. It returns what the run has done.
type attempt func(ctx context.Context, report func(cleanup.Progress)) (cleanup.Progress, error)

func newPool(concurrency int, clk clock.PassiveClock) *pool {
	return &pool{
		Pool:     job.New[types.UID](job.Options{Name: "registry-cleanups", Limits: fair.Halves(concurrency), Clock: clk, Tell: true}),
		wake:     make(chan event.TypedGenericEvent[*v1alpha1.RegistryCleanup]),
		progress: map[types.UID]cleanup.Progress{},
	}
}

// begin schedules an attempt.
func (p *pool) begin(m *v1alpha1.RegistryCleanup, do attempt) {
	p.forget(m.UID)
	object := m.DeepCopy()
	wake := func(ctx context.Context) {
		select {
		case p.wake <- event.TypedGenericEvent[*v1alpha1.RegistryCleanup]{Object: object}:
		case <-ctx.Done():
		}
	}
	p.Begin(m.UID, job.Job{
		Tenant: fair.Namespace(m.Namespace), Began: wake, Ended: wake,
		Run: func(ctx context.Context, _ func(string)) error {
			done, err := do(ctx, func(now cleanup.Progress) { p.report(ctx, m.UID, now) })
			p.report(ctx, m.UID, done)
			return err
		},
	})
}

// report records the progress of a run, unless its attempt was ended.
func (p *pool) report(ctx context.Context, m types.UID, now cleanup.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() == nil {
		p.progress[m] = now
	}
}

// reported returns the progress of a run, if its attempt has reported any.
func (p *pool) reported(m types.UID) (cleanup.Progress, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, known := p.progress[m]
	return now, known
}

// leave ends the attempt of a run, and reports whether it has ended.
func (p *pool) leave(m types.UID) bool {
	ended := p.Forget(m)
	p.forget(m)
	return ended
}

// forget forgets the progress of a run.
func (p *pool) forget(m types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.progress, m)
}
