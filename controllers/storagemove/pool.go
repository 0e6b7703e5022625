package storagemove

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git/relocate"
	"github.com/forgeplane/forgeplane/internal/job"
)

// pool runs the jobs of moves, one for each move. The manager starts it.
type pool struct {
	*job.Pool[types.UID]
	// wake receives the move of each job that begins or ends.
	wake chan event.TypedGenericEvent[*v1alpha1.StorageMove]

	mu       sync.Mutex
	progress map[types.UID]relocate.Progress
	// attempts are the numbers of the attempts that were begun last in this process.
	attempts map[types.UID]int64
	// failures are the causes of failures that are not stored yet.
	failures map[types.UID]error
}

// newPool returns a pool that runs some jobs at once, and some of them for one shard; 0 means no limit.
func newPool(name string, clk clock.PassiveClock, total, perShard int, wake chan event.TypedGenericEvent[*v1alpha1.StorageMove]) *pool {
	if perShard == 0 {
		perShard = total
	}
	return &pool{
		Pool: job.New[types.UID](job.Options{
			Name: name, Limits: fair.Limits{Total: total}, PerPlace: fair.Limits{Total: perShard}, Clock: clk, Tell: true,
		}),
		wake: wake, progress: map[types.UID]relocate.Progress{}, attempts: map[types.UID]int64{},
		failures: map[types.UID]error{},
	}
}

// begin schedules a job of a move at its source. A move is the act of an administrator, so it counts for no tenant.
func (p *pool) begin(m *v1alpha1.StorageMove, run func(ctx context.Context) error) job.State {
	p.mu.Lock()
	p.progress[m.UID] = relocate.Progress{}
	p.mu.Unlock()
	object := m.DeepCopy()
	wake := func(ctx context.Context) {
		select {
		case p.wake <- event.TypedGenericEvent[*v1alpha1.StorageMove]{Object: object}:
		case <-ctx.Done():
		}
	}
	s, _ := p.Begin(m.UID, job.Job{
		Place: m.Status.Source, Began: wake, Ended: wake,
		Run: func(ctx context.Context, _ func(string)) error { return run(ctx) },
	})
	return s
}

// fail keeps the cause of a failure until forget is called, because a pool tells it only once, and it can take several tries to store it.
func (p *pool) fail(m types.UID, cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.progress, m)
	p.failures[m] = cause
}

// failure returns the cause of a failure that was kept, or nil.
func (p *pool) failure(m types.UID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failures[m]
}

// report records the progress of a move, unless the move was left.
func (p *pool) report(m types.UID, progress relocate.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.progress[m]; known {
		p.progress[m] = progress
	}
}

// reported returns the progress of a move.
func (p *pool) reported(m types.UID) relocate.Progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.progress[m]
}

// in returns the number of moves in a phase.
func (p *pool) in(phase relocate.Phase) (number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, progress := range p.progress {
		if progress.Phase == phase {
			number++
		}
	}
	return number
}

// number records the number of an attempt, and numbered returns it.
func (p *pool) number(m types.UID, attempt int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.attempts[m] = attempt
}

func (p *pool) numbered(m types.UID) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.attempts[m]
}

// leave ends the job of a move, and reports whether it has ended.
func (p *pool) leave(m types.UID) bool {
	p.forget(m)
	return p.Forget(m)
}

// forget forgets the progress of a move, the number of its attempt, and the cause of its failure.
func (p *pool) forget(m types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.progress, m)
	delete(p.attempts, m)
	delete(p.failures, m)
}
