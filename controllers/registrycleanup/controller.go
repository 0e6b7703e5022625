// Package registrycleanup deletes tags of container repositories, once or on a schedule.
//
// The status numbers the runs, and shows a run before it begins. Its number names it in the records of the repositories, which admit one run in
// an hour. So a run whose process has ended goes on in the next one.
package registrycleanup

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus" // the library behind controller-runtime's own metrics
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/fieldmanager"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/cleanup"
	"github.com/forgeplane/forgeplane/internal/timetable"
)

// DefaultInterval is the default interval at which the progress of a run is shown. Each write of the status is a write to etcd.
const DefaultInterval = 2 * time.Second

// Options configure the controller.
type Options struct {
	// Registry has the images; nil if the container registry is off.
	Registry *registry.Registry
	// Concurrency is the maximum number of cleanups that run at once. The default is DefaultConcurrency.
	Concurrency int
	// Interval is the time between two looks at a run that no watch reports. The default is DefaultInterval.
	Interval time.Duration
	// Audit records the tags that cleanups delete; it may be nil.
	Audit *audit.Log
	// Clock says when runs are due.
	Clock clock.PassiveClock
	// Metrics is the registry for the slots and the results of runs; it may be nil.
	Metrics prometheus.Registerer
}

// Controller reconciles cleanups.
type Controller struct {
	// cleaner is nil if the container registry is off.
	cleaner *cleanup.Cleaner
	options Options
	pool    *pool
	meters  *meters
	frame   *frame.Frame[*v1alpha1.RegistryCleanup]
}

// New returns the controller.
func New(b frame.Base, o Options) *Controller {
	o.Interval = cmp.Or(o.Interval, DefaultInterval)
	c := &Controller{options: o, pool: newPool(cmp.Or(o.Concurrency, DefaultConcurrency), o.Clock), meters: newMeters()}
	if o.Registry != nil {
		c.cleaner = cleanup.New(o.Registry, o.Clock)
	}
	c.frame = frame.New(b, frame.WithUnfinished(unfinished))
	return c
}

// +kubebuilder:rbac:groups=forgeplane.dev,resources=registrycleanups,verbs=patch;delete
// +kubebuilder:rbac:groups=forgeplane.dev,resources=registrycleanups/status,verbs=patch

// SetupWithManager starts the controller with mgr.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	if err := mgr.Add(c.pool); err != nil {
		return fmt.Errorf("adding the pool of cleanups: %w", err)
	}
	if err := c.pool.Slots().Register(c.options.Metrics); err != nil {
		return err
	}
	if err := c.meters.register(c.options.Metrics); err != nil {
		return err
	}
	w := c.frame.Watch(mgr, o).OnGone(&v1alpha1.RegistryCleanup{}, func(m client.Object) { c.pool.leave(m.GetUID()) })
	return frame.OnEnded(w, c.pool.wake).Complete(reconcile.AsReconciler(c.frame.Client, c))
}

// Reconcile reconciles one cleanup.
func (c *Controller) Reconcile(ctx context.Context, m *v1alpha1.RegistryCleanup) (reconcile.Result, error) {
	return c.frame.Run(ctx, m, c.expire, c.clean, c.conclude)
}

// unfinished reports whether a run has begun and not ended. It ends even if its reference is changed meanwhile.
func unfinished(_ context.Context, m *v1alpha1.RegistryCleanup) bool {
	return m.Status.LastRun != nil && !m.Status.LastRun.Ended()
}

// ready has everything that a run needs.
type ready struct {
	project *v1alpha1.Project
	policy  *cleanup.Policy
	// schedule is nil for a cleanup that happens once.
	schedule *timetable.Schedule
}

// check returns what a run needs, or the reason why none can begin.
func (c *Controller) check(ctx context.Context, m *v1alpha1.RegistryCleanup) (r ready, err error) {
	err = frame.InScope(c.frame, func(_ context.Context, _ *v1alpha1.RegistryCleanup, s catalog.Scope) error {
		r.project = s.Project
		return nil
	}, frame.Reachable(c.frame))(ctx, m)
	switch {
	case err != nil:
		return r, err
	case !r.project.DeletionTimestamp.IsZero():
		return r, frame.Waiting(v1alpha1.ReasonReferenceNotFound, "projectRef: the project %s is being deleted", r.project.Name)
	case c.cleaner == nil:
		return r, frame.Stalled(v1alpha1.ReasonRegistryUnavailable, "the container registry of this installation is off")
	}
	if r.policy, err = cleanup.Declared(&m.Spec); err != nil {
		return r, frame.Stalled(v1alpha1.ReasonInvalid, "%w", err)
	}
	if m.Spec.Schedule != "" {
		if r.schedule, err = timetable.Parse(m.Spec.Schedule, m.Spec.TimeZone, c.options.Clock.Now()); err != nil {
			return r, frame.Stalled(v1alpha1.ReasonInvalid, "schedule: %w", err)
		}
	}
	return r, nil
}

// clean begins runs that are due, and does their work.
func (c *Controller) clean(ctx context.Context, m *v1alpha1.RegistryCleanup) error {
	r, err := c.check(ctx, m)
	if err == nil && m.Spec.Suspend {
		err = frame.Settled(v1alpha1.ReasonSuspended, "nothing is deleted: spec.suspend is true")
	} else if err == nil && r.project.Spec.Archived {
		err = frame.Settled(v1alpha1.ReasonSuspended, "nothing is deleted: the project is archived")
	}
	if err != nil {
		c.interrupt(m)
		return err
	}
	c.plan(m, r.schedule)
	if unfinished(ctx, m) && m.Status.LastRun.Policy != cleanup.Checksum(&m.Spec) {
		if !c.pool.leave(m.UID) {
			return frame.Progressing(c.soon(), v1alpha1.ReasonProgressing, "waiting for the run with the former declaration to end")
		}
		c.end(m, v1alpha1.RegistryCleanupStopped, "")
	}
	if !unfinished(ctx, m) {
		if !c.due(m) {
			return c.wait(m)
		}
		// The number of the run is stored before the work begins.
		c.begin(m, r.schedule)
		return frame.Progressing(c.soon(), v1alpha1.ReasonProgressing, "a run begins")
	}
	return c.work(ctx, m, r)
}

// interrupt ends the work of a run. The run goes on when it can.
func (c *Controller) interrupt(m *v1alpha1.RegistryCleanup) {
	c.pool.leave(m.UID)
	if m.Spec.Suspend {
		m.Status.NextRunAt = nil
	}
	if run := m.Status.LastRun; run != nil && run.State == v1alpha1.RegistryCleanupRunning {
		run.State = v1alpha1.RegistryCleanupWaiting
	}
}

// expire deletes a cleanup whose run has ended when its time is over.
func (c *Controller) expire(ctx context.Context, m *v1alpha1.RegistryCleanup) error {
	end := ended(m)
	if m.Spec.TTLAfterFinished == nil || end == nil {
		return nil
	}
	left := end.Add(m.Spec.TTLAfterFinished.Duration).Sub(c.options.Clock.Now())
	return c.frame.Expire(ctx, m, left, func(stored *v1alpha1.RegistryCleanup) bool { return ended(stored) != nil })
}

// ended returns the time at which a cleanup has ended, or nil. If a server was killed before it could release a cleanup that it had created, the
// cleanup ended at once.
func ended(m *v1alpha1.RegistryCleanup) *metav1.Time {
	switch run := m.Status.LastRun; {
	case run != nil:
		return run.FinishedAt
	case m.Spec.Suspend && fieldmanager.Owned(m):
		return &m.CreationTimestamp
	default:
		return nil
	}
}

// conclude says in the conditions how the last run has ended.
func (c *Controller) conclude(_ context.Context, m *v1alpha1.RegistryCleanup) error {
	run := m.Status.LastRun
	switch {
	case run == nil:
		return nil
	case run.State == v1alpha1.RegistryCleanupIncomplete && m.Spec.Schedule == "":
		return frame.Stalled(v1alpha1.ReasonCleanupIncomplete, "%s", m.Status.LastError)
	case run.State == v1alpha1.RegistryCleanupIncomplete:
		return frame.Waiting(v1alpha1.ReasonCleanupIncomplete, "%s", m.Status.LastError)
	case run.State == v1alpha1.RegistryCleanupFinished && run.Repositories == 0 && m.Spec.Repository != "":
		return frame.Settled(v1alpha1.ReasonReferenceNotFound, "repository: the project has no container repository %s, so there was nothing to delete", m.Spec.Repository)
	default:
		return nil
	}
}
