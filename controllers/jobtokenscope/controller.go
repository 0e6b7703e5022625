// Package jobtokenscope reconciles job token scopes: it shows the projects that they admit. Scopes are enforced by their declarations, not
// by what this controller writes.
package jobtokenscope

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
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
		OnReferred(&v1alpha1.Group{}, c.frame.Catalog.Referrers(all, jobtoken.IndexGranteeGroup)).
		OnDeclared(&v1alpha1.JobTokenScope{}, c.frame.Catalog.Peers(all, catalog.IndexProject, jobtoken.Rivals(c.frame.Catalog))).
		Complete(reconcile.AsReconciler(c.frame.Client, c))
}

// Reconcile reconciles one job token scope.
func (c *Controller) Reconcile(ctx context.Context, s *v1alpha1.JobTokenScope) (reconcile.Result, error) {
	return c.frame.Run(ctx, s, forget, frame.InScope(c.frame, c.claim, c.resolve))
}

// forget clears the status, except what entries have led to.
func forget(_ context.Context, s *v1alpha1.JobTokenScope) error {
	s.Status = v1alpha1.JobTokenScopeStatus{
		CommonStatus: s.Status.CommonStatus, TargetStatus: s.Status.TargetStatus,
		RecordedAllowlist: recorded(s), RecordedGroups: s.Status.RecordedGroups,
	}
	return nil
}

// claim prevents a project from having two scopes.
func (c *Controller) claim(ctx context.Context, s *v1alpha1.JobTokenScope, of catalog.Scope) error {
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

// found is the result of resolving the entries of the allowlists.
type found struct{ let, missing, replaced []string }

// lost notes an entry that leads nowhere.
func (f *found) lost(field string, ref v1alpha1.Reference, replaced bool) {
	said := fmt.Sprintf("%s (%s)", field, catalog.Show(ref))
	if replaced {
		f.replaced = append(f.replaced, said)
	} else {
		f.missing = append(f.missing, said)
	}
}

// err returns the problem with entries that lead nowhere, or nil if all entries lead somewhere.
func (f *found) err() error {
	var wrong []string
	if len(f.missing) > 0 {
		wrong = append(wrong, "these entries reference projects or groups that do not exist: "+strings.Join(f.missing, ", "))
	}
	if len(f.replaced) > 0 {
		wrong = append(wrong, "these entries now reference a different project or group, which they do not allow: "+
			strings.Join(f.replaced, ", ")+"; to allow it, remove the entry and add it again, or set its uid as well")
	}
	if len(wrong) == 0 {
		return nil
	}
	return frame.Waiting(v1alpha1.ReasonReferenceNotFound, "%s", strings.Join(wrong, "; "))
}

// entries sets what each entry leads to. Entries that lead nowhere admit nobody and are all named; the others count.
func (c *Controller) entries(ctx context.Context, s *v1alpha1.JobTokenScope) (unresolved, err error) {
	var f found
	if err := c.projects(ctx, s, &f); err != nil {
		return nil, err
	}
	if err := c.groups(ctx, s, &f); err != nil {
		return nil, err
	}
	s.Status.AllowedProjects = frame.Column(f.let)
	return f.err(), nil
}

func (c *Controller) projects(ctx context.Context, s *v1alpha1.JobTokenScope, f *found) error {
	for i, e := range s.Spec.Allowlist {
		observed := v1alpha1.ObservedAllowlistEntry{ID: e.ProjectRef.ID, Path: e.ProjectRef.Path}
		allowed, err := jobtoken.Allowed(ctx, c.frame.Catalog, s, e)
		switch {
		case errors.Is(err, catalog.ErrNotFound):
			f.lost(fmt.Sprintf("allowlist[%d]", i), e.ProjectRef, errors.Is(err, jobtoken.ErrEntryReplaced))
		case err != nil:
			return err
		default:
			observed.Resolved = true
			record(s, e, allowed.Project)
			if tells(s, allowed) {
				observed.ID, observed.Path = allowed.Project.RESTID(), allowed.Path()
			}
			f.let = append(f.let, cmp.Or(observed.Path, "id "+strconv.FormatInt(observed.ID, 10)))
		}
		s.Status.Allowlist = append(s.Status.Allowlist, observed)
	}
	return nil
}

func (c *Controller) groups(ctx context.Context, s *v1alpha1.JobTokenScope, f *found) error {
	refs := make([]v1alpha1.Reference, len(s.Spec.GroupAllowlist))
	for i, e := range s.Spec.GroupAllowlist {
		refs[i] = e.GroupRef
	}
	scopes, failed, err := c.frame.Catalog.RecordForeign(ctx, s.Namespace, refs, &s.Status.RecordedGroups)
	if err != nil {
		return err
	}
	for i, ref := range refs {
		observed := v1alpha1.ObservedAllowlistEntry{ID: ref.ID, Path: ref.Path, Resolved: failed[i] == nil}
		if failed[i] != nil {
			f.lost(fmt.Sprintf("groupAllowlist[%d]", i), ref, errors.Is(failed[i], catalog.ErrReplaced))
		} else {
			if tells(s, scopes[i]) {
				observed.ID, observed.Path = scopes[i].Groups[0].RESTID(), scopes[i].Path()
			}
			f.let = append(f.let, cmp.Or(observed.Path, "id "+strconv.FormatInt(observed.ID, 10))+"/*")
		}
		s.Status.GroupAllowlist = append(s.Status.GroupAllowlist, observed)
	}
	return nil
}

// recorded returns the part of the status that says where the declared entries have led.
func recorded(s *v1alpha1.JobTokenScope) (led []v1alpha1.AllowlistEntry) {
	for _, e := range s.Spec.Allowlist {
		if r := jobtoken.ResolvedProject(s, e); r != nil && !slices.Contains(led, v1alpha1.AllowlistEntry{ProjectRef: *r}) {
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
	led := jobtoken.ResolvedProject(s, e)
	if led == nil {
		s.Status.RecordedAllowlist = append(s.Status.RecordedAllowlist, e)
		led = &s.Status.RecordedAllowlist[len(s.Status.RecordedAllowlist)-1].ProjectRef
	}
	led.UID = string(p.UID)
}

// tells reports whether everyone who can read the scope may learn the path for an id, and the id for a path. That is so in the same
// namespace, and if everybody can see the project or group.
func tells(s *v1alpha1.JobTokenScope, allowed catalog.Scope) bool {
	own := allowed.Groups[0].Spec.Visibility
	if allowed.Project != nil {
		own = allowed.Project.Spec.Visibility
	}
	return allowed.Namespace() == s.Namespace || catalog.Visibility(own, allowed.Groups) == v1alpha1.VisibilityPublic
}
