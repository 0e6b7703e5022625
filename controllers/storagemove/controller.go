// Package storagemove moves the repositories of projects from one shard to another while they are in use.
//
// The project has the lock: its status names the move that is in charge, and the number of the attempt. Only that attempt can change the
// shard of the project, in one write. So a process that dies leaves a lock behind, and the next attempt first undoes what it finds on the
// shards; and a process that was paused cannot change anything when it wakes. The state of a move follows from that, and is for people.
package storagemove

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus" // the library behind controller-runtime's own metrics
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/internal/storagemove"
)

// Finalizer keeps a move until its attempts have ended and nothing of them is left.
const Finalizer = "forgeplane.dev/storage-move"

// Limits limit moves.
type Limits struct {
	// Concurrency is the maximum number of moves that copy at once, and PerShard the maximum from one shard.
	Concurrency, PerShard int
	// Drain is the time for which a move waits for running writes before it fails.
	Drain time.Duration
	// Settle is the time for which a move waits until all servers know that the project uses the destination.
	Settle time.Duration
	// Removal is the time for which a move waits for running reads of the former copy.
	Removal time.Duration
}

// DefaultLimits returns the limits of an installation that sets none.
func DefaultLimits() Limits {
	return Limits{Concurrency: 4, PerShard: 2, Drain: 30 * time.Second, Settle: 2 * time.Second, Removal: 10 * time.Minute}
}

// Options configure the controller.
type Options struct {
	// Live reads past the cache.
	Live client.Reader
	// Namespace is the namespace of Forgeplane.
	Namespace string
	// History records moves for ever. It may be nil.
	History *storagemove.History
	// Clock measures the lifetime of moves.
	Clock  clock.PassiveClock
	Limits Limits
	// Metrics is the registry for the slots and the results of moves; it may be nil.
	Metrics prometheus.Registerer
}

// Controller reconciles moves.
type Controller struct {
	repositories     *repository.Audited
	locks            storagemove.Locks
	options          Options
	copies, removals *pool
	meters           *meters
	// recorded has the states that this process has recorded, by the UIDs of moves.
	recorded sync.Map
	// switched has the times at which this process first saw that the projects use the destinations, by the UIDs of moves.
	switched sync.Map
	frame    *frame.Frame[*v1alpha1.StorageMove]
}

// New returns the controller.
func New(b frame.Base, repos *repository.Audited, o Options) *Controller {
	c := &Controller{
		repositories: repos, locks: storagemove.Locks{Client: b.Client, Live: o.Live}, options: o,
	}
	wake := make(chan event.TypedGenericEvent[*v1alpha1.StorageMove])
	c.copies = newPool("storage-moves", o.Clock, o.Limits.Concurrency, o.Limits.PerShard, wake)
	c.meters = newMeters(c.copies)
	c.removals = newPool("storage-move-removals", o.Clock, removals, 0, wake)
	c.frame = frame.New(b, frame.WithFinalizer(Finalizer, c.finalize), frame.WithUnfinished(c.scheduled))
	return c
}

// removals is the maximum number of former copies that are removed at once. Most of that time they wait for readers.
const removals = 16

// +kubebuilder:rbac:groups=forgeplane.dev,resources=storagemoves,verbs=patch;delete
// +kubebuilder:rbac:groups=forgeplane.dev,resources=storagemoves/status,verbs=patch
// +kubebuilder:rbac:groups=forgeplane.dev,resources=projects,verbs=get
// +kubebuilder:rbac:groups=forgeplane.dev,resources=projects/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get

// SetupWithManager starts the controller with mgr.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	for _, p := range []*pool{c.copies, c.removals} {
		if err := mgr.Add(p); err != nil {
			return fmt.Errorf("adding the pool of moves: %w", err)
		}
		if err := p.Slots().Register(c.options.Metrics); err != nil {
			return err
		}
	}
	if err := c.meters.register(c.options.Metrics); err != nil {
		return err
	}
	if err := mgr.Add(manager.RunnableFunc(c.endLost)); err != nil {
		return fmt.Errorf("adding the search for lost moves: %w", err)
	}
	all := &v1alpha1.StorageMoveList{}
	w := c.frame.Watch(mgr, o).
		OnPart(&v1alpha1.Project{}, placed, c.frame.Catalog.Referrers(all, catalog.IndexProject)).
		OnReady(&v1alpha1.RepositoryStorage{}, c.waiting).
		OnDeclared(&v1alpha1.RepositoryStorage{}, c.waiting).
		OnGone(&v1alpha1.StorageMove{}, c.gone)
	return frame.OnEnded(w, c.copies.wake).Complete(reconcile.AsReconciler(c.frame.Client, c))
}

// gone forgets a move. Its jobs have ended unless somebody has removed its finalizer.
func (c *Controller) gone(m client.Object) {
	c.copies.leave(m.GetUID())
	c.removals.leave(m.GetUID())
	c.recorded.Delete(m.GetUID())
	c.switched.Delete(m.GetUID())
}

// placed returns a part of a project that says whether moves of it can be scheduled.
func placed(o client.Object) string {
	p := o.(*v1alpha1.Project)
	held := ""
	if p.Status.Move != nil {
		held = p.Status.Move.UID
	}
	return fmt.Sprint(p.Status.Storage, p.Status.RefsChecksum == "", held, p.DeletionTimestamp.IsZero())
}

// waiting maps a shard to the moves that wait for one.
func (c *Controller) waiting(ctx context.Context, _ client.Object) (requests []reconcile.Request) {
	all, err := catalog.All[*v1alpha1.StorageMove](ctx, c.frame.Catalog)
	if err != nil {
		return nil
	}
	for _, m := range all {
		if !m.Status.Ended() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m)})
		}
	}
	return requests
}

// Reconcile reconciles one move.
func (c *Controller) Reconcile(ctx context.Context, m *v1alpha1.StorageMove) (reconcile.Result, error) {
	return c.frame.Run(ctx, m, c.record, c.begin, c.schedule, c.copy, c.retry, c.cleanUp, c.expire, c.conclude)
}

// record records the state that is stored. A database that does not answer keeps no scheduled move from going on.
func (c *Controller) record(ctx context.Context, m *v1alpha1.StorageMove) error {
	if c.isRecorded(m) {
		return nil
	}
	scope, err := c.frame.Catalog.ScopeOf(ctx, m)
	switch history := c.options.History; {
	case err == nil:
		err = history.Record(ctx, storagemove.Of(m, scope))
	case errors.Is(err, catalog.ErrNotFound), catalog.Misplaced(err): // the history may have the project as it was
		if err = nil; scope.Project != nil {
			err = history.Begin(ctx, storagemove.Of(m, catalog.Scope{Project: scope.Project}))
		}
		err = errors.Join(err, history.End(ctx, m, m.Status.State))
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to record a move")
	}
	if err != nil && !errors.Is(err, storagemove.ErrIDTaken) {
		return frame.RequeueAfter(retryRecord)
	}
	c.recorded.Store(m.UID, m.Status.State)
	return nil
}

// tell records an event. The frame records how a move begins and ends.
func (c *Controller) tell(m *v1alpha1.StorageMove, reason, note string, args ...any) {
	c.frame.Events.Eventf(m, nil, corev1.EventTypeNormal, reason, "Move", note, args...)
}

// retryRecord is the interval at which recording a move is tried again.
const retryRecord = 10 * time.Second

// isRecorded reports whether the history has the state of a move, or need not have it yet: a request that is refused makes a move and discards
// it before it is scheduled.
func (c *Controller) isRecorded(m *v1alpha1.StorageMove) bool {
	if c.options.History == nil || m.Status.State == "" || m.Status.State == v1alpha1.StorageMoveInitial {
		return true
	}
	known, ok := c.recorded.Load(m.UID)
	return ok && known == m.Status.State
}

// scheduled reports whether a move holds its project, or has held it. It ends even if its reference is changed meanwhile.
func (c *Controller) scheduled(ctx context.Context, m *v1alpha1.StorageMove) bool {
	if m.Status.State != "" && m.Status.State != v1alpha1.StorageMoveInitial {
		return true
	}
	target, err := c.frame.Catalog.Target(ctx, m)
	return err == nil && storagemove.LockOf(target.(*v1alpha1.Project), m) != nil
}

func (c *Controller) begin(_ context.Context, m *v1alpha1.StorageMove) error {
	if m.Status.State == "" {
		m.Status.State = v1alpha1.StorageMoveInitial
	}
	return nil
}

// end puts a move into a final state.
func (c *Controller) end(m *v1alpha1.StorageMove, state v1alpha1.StorageMoveState, err error) {
	if m.Status.State != state { // a removal that is tried again ends nothing
		c.meters.end(state)
	}
	now := metav1.NewTime(c.options.Clock.Now().Truncate(time.Second))
	m.Status.State, m.Status.Phase, m.Status.FinishedAt, m.Status.LastError = state, "", &now, ""
	if err != nil {
		m.Status.LastError = frame.Sanitise(words(err))
	}
}

// expire deletes a move that has ended when its time is over.
func (c *Controller) expire(ctx context.Context, m *v1alpha1.StorageMove) error {
	s := m.Status
	if m.Spec.TTLAfterFinished == nil || s.FinishedAt == nil || s.State == v1alpha1.StorageMoveCleanupFailed {
		return nil
	}
	left := s.FinishedAt.Add(m.Spec.TTLAfterFinished.Duration).Sub(c.options.Clock.Now())
	return c.frame.Expire(ctx, m, left, func(stored *v1alpha1.StorageMove) bool { return c.isRecorded(m) && stored.Status.State == s.State })
}

// conclude says in the conditions how a move has ended.
func (c *Controller) conclude(_ context.Context, m *v1alpha1.StorageMove) error {
	switch m.Status.State {
	case v1alpha1.StorageMoveFailed:
		return frame.Stalled(v1alpha1.ReasonMoveFailed, "%s", m.Status.LastError)
	case v1alpha1.StorageMoveCleanupFailed:
		return frame.Stalled(v1alpha1.ReasonCleanupFailed, "the project uses storage %s, but its former copy on storage %s could not be removed: %s. "+
			"To try again, set the annotation %s to a new value", m.Status.Destination, m.Status.Source, m.Status.LastError, v1alpha1.AnnotationRetry)
	default:
		return nil
	}
}

// words returns an error for users.
func words(err error) string {
	switch {
	case errors.Is(err, storagemove.ErrLeaving), errors.Is(err, storagemove.ErrGone):
		return "the project was deleted before it was moved"
	default:
		return err.Error()
	}
}
