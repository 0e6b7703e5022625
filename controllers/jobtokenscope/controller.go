// Package jobtokenscope reconciles job token scopes: it shows which projects they let in. They are enforced by what is
// declared, not by what this controller has written.
package jobtokenscope

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/reference"
)

// Controller reconciles job token scopes.
type Controller struct {
	client  client.Client
	catalog *catalog.Catalog
	frame   *frame.Frame[*v1alpha1.JobTokenScope]
}

// New returns the controller.
func New(c client.Client, r events.EventRecorder, cat *catalog.Catalog) *Controller {
	return &Controller{
		client: c, catalog: cat,
		frame: frame.New(c, r,
			frame.WithOwner(func(ctx context.Context, s *v1alpha1.JobTokenScope) (client.Object, error) {
				return cat.Target(ctx, s.Namespace, &s.Spec.ProjectRef, nil)
			}),
			frame.WithClaims(cat.Register(), cat.JobTokenScopeClaims)),
	}
}

// +kubebuilder:rbac:groups=forgeplane.dev,resources=jobtokenscopes,verbs=patch
// +kubebuilder:rbac:groups=forgeplane.dev,resources=jobtokenscopes/status,verbs=patch

// SetupWithManager starts the controller with mgr.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	all := &v1alpha1.JobTokenScopeList{}
	return frame.NewWatch(mgr, "jobtokenscope", &v1alpha1.JobTokenScope{}, o).
		OnReferred(&v1alpha1.Project{}, c.catalog.Referrers(all, catalog.IndexProject)).
		OnReferred(&v1alpha1.Project{}, c.catalog.Referrers(all, catalog.IndexGrantee)).
		OnDeclared(&v1alpha1.JobTokenScope{}, c.catalog.Peers(all, catalog.IndexProject, c.catalog.JobTokenScopeKeys)).
		OnClaimReleased(&v1alpha1.JobTokenScope{}, c.catalog.Waiting(&v1alpha1.JobTokenScope{})).
		Complete(reconcile.AsReconciler(c.client, c))
}

// Reconcile brings one job token scope up to date.
func (c *Controller) Reconcile(ctx context.Context, s *v1alpha1.JobTokenScope) (reconcile.Result, error) {
	return c.frame.Run(ctx, s, c.reconcile)
}

// reconcile looks up the project of the scope, and does the rest with it.
func (c *Controller) reconcile(ctx context.Context, s *v1alpha1.JobTokenScope) error {
	s.Status = v1alpha1.JobTokenScopeStatus{CommonStatus: s.Status.CommonStatus, RecordedAllowlist: recorded(s)}
	scope, err := c.catalog.TargetScope(ctx, s.Namespace, &s.Spec.ProjectRef, nil)
	if err != nil {
		return reference.Unresolved("projectRef", err)
	}
	s.Status.TargetPath = scope.Path()
	holder, err := c.catalog.JobTokenScopeOf(ctx, scope)
	if err != nil {
		return err
	}
	if err := reference.Take(ctx, c.catalog, s, holder, claim.JobTokenScope(scope.Project.UID), "the job token scope of %s", scope.Path()); err != nil {
		return err
	}
	unresolved, err := c.resolve(ctx, s)
	if err != nil {
		return err
	}
	if err := reference.Reachable(ctx, c.catalog, "projectRef", scope.Project, scope.Path()); err != nil {
		return err
	}
	return unresolved
}

// resolve shows what each entry leads to. Those that lead nowhere let nobody in, and are all named; the others count.
func (c *Controller) resolve(ctx context.Context, s *v1alpha1.JobTokenScope) (unresolved, err error) {
	var names, replaced []string
	for i, e := range s.Spec.Allowlist {
		observed := v1alpha1.ObservedAllowlistEntry{ID: e.ProjectRef.ID, Path: e.ProjectRef.Path}
		allowed, err := c.catalog.Allowed(ctx, s, e)
		switch {
		case errors.Is(err, catalog.ErrEntryReplaced):
			replaced = append(replaced, fmt.Sprintf("allowlist[%d] (%s)", i, catalog.Show(e.ProjectRef)))
		case errors.Is(err, catalog.ErrNotFound):
			names = append(names, fmt.Sprintf("allowlist[%d] (%s)", i, catalog.Show(e.ProjectRef)))
		case err != nil:
			return nil, err
		default:
			observed.Resolved = true
			record(s, e, allowed.Project)
			if tells(s, allowed) {
				observed.ID, observed.Path = allowed.Project.RESTID(), allowed.Path()
			}
		}
		s.Status.Allowlist = append(s.Status.Allowlist, observed)
	}
	var wrong []string
	if len(names) > 0 {
		wrong = append(wrong, "these entries lead to no project: "+strings.Join(names, ", "))
	}
	if len(replaced) > 0 {
		wrong = append(wrong, "these entries lead to another project than the one that was let in, and do not let it in: "+
			strings.Join(replaced, ", ")+"; remove an entry and declare it anew, or name the uid beside it, to let that one in")
	}
	if len(wrong) == 0 {
		return nil, nil
	}
	return frame.Waiting(v1alpha1.ReasonReferenceNotFound, "%s", strings.Join(wrong, "; ")), nil
}

// recorded is what the status says of where entries led that are still declared.
func recorded(s *v1alpha1.JobTokenScope) (led []v1alpha1.AllowlistEntry) {
	for _, e := range s.Spec.Allowlist {
		if r := catalog.LedTo(s, e); r != nil && !slices.Contains(led, v1alpha1.AllowlistEntry{ProjectRef: *r}) {
			led = append(led, v1alpha1.AllowlistEntry{ProjectRef: *r})
		}
	}
	return led
}

// record keeps which project a path or id has led to, for as long as the entry stays as it is.
func record(s *v1alpha1.JobTokenScope, e v1alpha1.AllowlistEntry, p *v1alpha1.Project) {
	if e.ProjectRef.Name != "" || e.ProjectRef.UID != "" {
		return
	}
	led := catalog.LedTo(s, e)
	if led == nil {
		s.Status.RecordedAllowlist = append(s.Status.RecordedAllowlist, e)
		led = &s.Status.RecordedAllowlist[len(s.Status.RecordedAllowlist)-1].ProjectRef
	}
	led.UID = string(p.UID)
}

// tells reports whether whoever reads the scope may learn the path of an id, and the id of a path: of a project in the same
// namespace, and of one that everybody sees.
func tells(s *v1alpha1.JobTokenScope, allowed catalog.Scope) bool {
	p := allowed.Project
	return p.Namespace == s.Namespace || catalog.Visibility(p.Spec.Visibility, allowed.Groups) == v1alpha1.VisibilityPublic
}
