// Package jobtokenscope reconciles job token scopes: it shows the projects that they admit. Scopes are enforced by their declarations, not
// by what this controller writes.
package jobtokenscope

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/jobtoken"
)

// Controller reconciles job token scopes.
type Controller struct {
	frame *frame.Frame[*v1alpha1.JobTokenScope]
}

// New returns the controller.
func New(b frame.Base) *Controller {
	return &Controller{frame.New(b, frame.WithClaims(jobtoken.Claims))}
}

// +kubebuilder:rbac:groups=forgeplane.dev,resources=jobtokenscopes,verbs=patch
// +kubebuilder:rbac:groups=forgeplane.dev,resources=jobtokenscopes/status,verbs=patch

// SetupWithManager starts the controller with mgr.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	all := &v1alpha1.JobTokenScopeList{}
	return c.frame.Watch(mgr, o).
		OnReferred(&v1alpha1.Project{}, c.frame.Catalog.Referrers(all, jobtoken.IndexGrantee)).
		OnDeclared(&v1alpha1.JobTokenScope{}, c.frame.Catalog.Peers(all, catalog.IndexProject, jobtoken.Rivals(c.frame.Catalog))).
		Complete(reconcile.AsReconciler(c.frame.Client, c))
}

// Reconcile reconciles one job token scope.
func (c *Controller) Reconcile(ctx context.Context, s *v1alpha1.JobTokenScope) (reconcile.Result, error) {
	return c.frame.Run(ctx, s, forget, frame.InScope(c.frame, c.claim, c.resolve))
}

// forget clears the status, except what entries have led to.
func forget(_ context.Context, s *v1alpha1.JobTokenScope) error {
	s.Status = v1alpha1.JobTokenScopeStatus{CommonStatus: s.Status.CommonStatus, RecordedAllowlist: recorded(s)}
	return nil
}

// claim prevents a project from having two scopes.
func (c *Controller) claim(ctx context.Context, s *v1alpha1.JobTokenScope, of catalog.Scope) error {
	s.Status.TargetPath = of.Path()
	holder, err := jobtoken.ScopeOf(ctx, c.frame.Catalog, of)
	if err != nil {
		return err
	}
	return c.frame.Take(ctx, s, holder, claim.JobTokenScope(of.Project.UID), "the job token scope of %s", of.Path())
}

// resolve sets what each entry leads to. If the project cannot be reached, that is reported before problems with entries.
func (c *Controller) resolve(ctx context.Context, s *v1alpha1.JobTokenScope, of catalog.Scope) error {
	unresolved, err := c.entries(ctx, s)
	if err != nil {
		return err
	}
	if err := frame.Reachable(c.frame)(ctx, s, of); err != nil {
		return err
	}
	return unresolved
}

// entries sets what each entry leads to. Entries that lead nowhere admit nobody and are all named; the others count.
func (c *Controller) entries(ctx context.Context, s *v1alpha1.JobTokenScope) (unresolved, err error) {
	var names, replaced []string
	for i, e := range s.Spec.Allowlist {
		observed := v1alpha1.ObservedAllowlistEntry{ID: e.ProjectRef.ID, Path: e.ProjectRef.Path}
		allowed, err := jobtoken.Allowed(ctx, c.frame.Catalog, s, e)
		switch {
		case errors.Is(err, jobtoken.ErrEntryReplaced):
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
		wrong = append(wrong, "these entries reference projects that do not exist: "+strings.Join(names, ", "))
	}
	if len(replaced) > 0 {
		wrong = append(wrong, "these entries now reference a different project, which they do not allow: "+
			strings.Join(replaced, ", ")+"; to allow that project, remove the entry and add it again, or set its uid as well")
	}
	if len(wrong) == 0 {
		return nil, nil
	}
	return frame.Waiting(v1alpha1.ReasonReferenceNotFound, "%s", strings.Join(wrong, "; ")), nil
}

// recorded returns the part of the status that says where the declared entries have led.
func recorded(s *v1alpha1.JobTokenScope) (led []v1alpha1.AllowlistEntry) {
	for _, e := range s.Spec.Allowlist {
		if r := jobtoken.LedTo(s, e); r != nil && !slices.Contains(led, v1alpha1.AllowlistEntry{ProjectRef: *r}) {
			led = append(led, v1alpha1.AllowlistEntry{ProjectRef: *r})
		}
	}
	return led
}

// record records to which project a path or id has led, for as long as the entry does not change.
func record(s *v1alpha1.JobTokenScope, e v1alpha1.AllowlistEntry, p *v1alpha1.Project) {
	if e.ProjectRef.Name != "" || e.ProjectRef.UID != "" {
		return
	}
	led := jobtoken.LedTo(s, e)
	if led == nil {
		s.Status.RecordedAllowlist = append(s.Status.RecordedAllowlist, e)
		led = &s.Status.RecordedAllowlist[len(s.Status.RecordedAllowlist)-1].ProjectRef
	}
	led.UID = string(p.UID)
}

// tells reports whether everyone who can read the scope may learn the path for an id, and the id for a path. That is so for a project in
// the same namespace, and for a project that everybody can see.
func tells(s *v1alpha1.JobTokenScope, allowed catalog.Scope) bool {
	p := allowed.Project
	return p.Namespace == s.Namespace || catalog.Visibility(p.Spec.Visibility, allowed.Groups) == v1alpha1.VisibilityPublic
}
