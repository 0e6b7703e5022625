// Package remotemirror reconciles mirrors: it pushes the repository of a project to another one after each change.
package remotemirror

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus" // the library behind controller-runtime's own metrics
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/egress"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/remotemirror"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// Limits limit pushes.
type Limits struct {
	// Concurrency is the maximum number of concurrent pushes, and PerHost the maximum to one host.
	Concurrency, PerHost int
	// Timeout limits one push, and Stall is how long its transfer may stall.
	Timeout, Stall time.Duration
}

// DefaultLimits returns the limits of an installation that sets none.
func DefaultLimits() Limits {
	return Limits{Concurrency: 8, PerHost: 4, Timeout: time.Hour, Stall: 2 * time.Minute}
}

// Options configure the controller.
type Options struct {
	// Secrets reads Secrets of tenants past the cache, which does not have their content.
	Secrets client.Reader
	// Store has the credentials that mirrors received over REST.
	Store *credential.Store
	// Clock measures the delays between attempts.
	Clock clock.PassiveClock
	// Egress is the proxy to the targets.
	Egress *egress.Proxy
	Limits Limits
	// Metrics is the registry for the slots of mirrors; it may be nil.
	Metrics prometheus.Registerer
}

// Controller reconciles mirrors.
type Controller struct {
	repositories *repository.Audited
	pool         *pool
	options      Options
	frame        *frame.Frame[*v1alpha1.RemoteMirror]
}

// New returns the controller.
func New(b frame.Base, repos *repository.Audited, o Options) *Controller {
	return &Controller{repositories: repos, pool: newPool(o.Clock, o.Limits), options: o, frame: frame.New(b, frame.WithContent[*v1alpha1.RemoteMirror]())}
}

// +kubebuilder:rbac:groups=forgeplane.dev,resources=remotemirrors,verbs=patch
// +kubebuilder:rbac:groups=forgeplane.dev,resources=remotemirrors/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=list;watch
// +kubebuilder:rbac:groups="",namespace=forgeplane-system,resources=secrets,verbs=list;watch

// SetupWithManager starts the controller with mgr.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	if err := mgr.Add(c.pool); err != nil {
		return fmt.Errorf("adding the pool of pushes: %w", err)
	}
	if err := c.pool.Slots().Register(c.options.Metrics); err != nil {
		return err
	}
	all := &v1alpha1.RemoteMirrorList{}
	w := c.frame.Watch(mgr, o).
		OnReferred(&corev1.Secret{}, c.frame.Catalog.Peers(all, credential.IndexSecret, credential.Keys)).
		OnDeclared(&v1alpha1.ProtectedBranch{}, remotemirror.Guarded(c.frame.Catalog)).
		OnDeclared(&v1alpha1.Group{}, remotemirror.Guarded(c.frame.Catalog)).
		OnGone(&v1alpha1.RemoteMirror{}, func(m client.Object) { c.pool.forget(m.GetUID()) })
	return frame.OnEnded(w, c.pool.wake).Complete(reconcile.AsReconciler(c.frame.Client, c))
}

// Reconcile reconciles one mirror.
func (c *Controller) Reconcile(ctx context.Context, m *v1alpha1.RemoteMirror) (reconcile.Result, error) {
	return c.frame.Run(ctx, m, c.begin, c.mirror)
}

// begin sets the initial status of a new mirror.
func (c *Controller) begin(_ context.Context, m *v1alpha1.RemoteMirror) error {
	if m.Status.UpdateStatus == "" {
		m.Status.UpdateStatus = v1alpha1.MirrorNone
	}
	return nil
}

// mirror pushes if that is due, and reports the results of pushes.
func (c *Controller) mirror(ctx context.Context, m *v1alpha1.RemoteMirror) error {
	if m.Spec.Suspend || !m.Spec.IsEnabled() {
		c.interrupt(m)
		if _, err := c.project(ctx, m); err != nil || !m.Spec.Suspend {
			return err
		}
		return frame.Settled(v1alpha1.ReasonSuspended, "nothing is pushed to the mirror: spec.suspend is true")
	}
	ready, err := c.check(ctx, m)
	if err != nil {
		c.interrupt(m)
		refuse(m, err)
		return err
	}
	admit(m)
	p := ready.project
	if p.Status.RefsChecksum == "" {
		return frame.Progressing(0, v1alpha1.ReasonReferenceNotReady, "projectRef: the project %s has no repository yet", p.Name)
	}
	if m.Status.UpdateStatus == v1alpha1.MirrorNone && !repository.Filled(p) {
		return nil // a push would not even speak to the target
	}
	now := c.options.Clock.Now()
	at := c.pool.look(m.UID)
	if at.phase == done {
		conclude(m, at)
		at = report{}
	}
	want := goal{refs: p.Status.RefsChecksum, rules: ready.rules.digest(), secret: ready.credentials.version}
	if at.phase == idle {
		hasten(m, want)
	}
	if at.phase == idle && (due(m, want, now) || m.Status.LastError != "" && c.pool.corrected(m.UID, want)) {
		at = c.pool.begin(m, target{c.repositories.Tenant(p), ready.host}, want, c.push(m, ready))
		m.Status.HandledSync = requested(m)
	}
	show(m, at)
	return verdict(m, at, now)
}

// ready has everything that a push needs.
type ready struct {
	project     *v1alpha1.Project
	host        string
	rules       rules
	credentials credentials
}

// check returns what a push needs, or the reason not to begin one.
func (c *Controller) check(ctx context.Context, m *v1alpha1.RemoteMirror) (r ready, err error) {
	scope, err := c.project(ctx, m)
	if err != nil {
		return r, err
	}
	if r.host, err = c.checkTarget(m); err != nil {
		return r, err
	}
	if r.credentials, err = c.credentials(ctx, m); err != nil {
		return r, err
	}
	r.project = scope.Project
	r.rules, err = c.rules(ctx, m, scope)
	return r, err
}

// interrupt ends the running push.
func (c *Controller) interrupt(m *v1alpha1.RemoteMirror) {
	c.pool.forget(m.UID)
	if m.Status.UpdateStatus == v1alpha1.MirrorStarted {
		m.Status.UpdateStatus = v1alpha1.MirrorToRetry
	}
}

// project resolves the project, which must be reachable.
func (c *Controller) project(ctx context.Context, m *v1alpha1.RemoteMirror) (of catalog.Scope, err error) {
	resolve := func(_ context.Context, _ *v1alpha1.RemoteMirror, s catalog.Scope) error {
		of = s
		return nil
	}
	err = frame.InScope(c.frame, resolve, frame.Reachable(c.frame))(ctx, m)
	return of, err
}

// checkTarget returns the normalized host of the target, or an error if the target can be refused without resolving its address.
func (c *Controller) checkTarget(m *v1alpha1.RemoteMirror) (string, error) {
	u, err := url.Parse(m.Spec.URL)
	if err != nil || u.Hostname() == "" {
		return "", frame.Stalled(v1alpha1.ReasonInvalid, "url is malformed")
	}
	if err := c.options.Egress.CheckHost(u.Hostname()); err != nil {
		return "", frame.Stalled(v1alpha1.ReasonTargetRefused, "url: %s: %w", u.Hostname(), err)
	}
	return egress.Canonical(u.Hostname()), nil
}
