// Package protectedbranches is the family "Protected branches" of the core interface document, and the same for groups.
package protectedbranches

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/accesslevel"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/protection"
)

// Family serves the protected branches of projects and groups.
type Family struct {
	family.Kit
	// protections are the protections of the project or group itself, by their branch. Inherited protections are changed where they are
	// declared.
	protections *store.Store[string, *v1alpha1.ProtectedBranch]
	// views caches views by the versions of their scopes.
	views *catalog.Memory[string, view]
}

// maxViews is the maximum number of cached views.
const maxViews = 4096

// +kubebuilder:rbac:groups=forgeplane.dev,resources=protectedbranches,verbs=get;create;patch;delete,roleName=forgeplane-apiserver

// New returns the family.
func New(k family.Kit) *Family {
	own := func(ctx context.Context, of auth.Subject, name string) (*v1alpha1.ProtectedBranch, error) {
		return protection.Holder(ctx, k.Catalog, of.Scope, name)
	}
	views := catalog.NewMemory[string, view](
		k.Catalog, maxViews, &v1alpha1.ProtectedBranch{}, &v1alpha1.Group{}, &v1alpha1.Project{}, &v1alpha1.User{}, &v1alpha1.DeployKey{},
		&corev1.Namespace{})
	return &Family{Kit: k, protections: store.New(k.Writer, own), views: views}
}

// Table lists the endpoints. None requires signing in first: callers who may not see a project receive 404, even if they want to change
// something (API behaviour, section 2.4).
func (f *Family) Table() endpoint.Table {
	return slices.Concat(
		table[auth.Project](f, "/projects/{id}/protected_branches", "a project", auth.ReadProtectedBranches, endpoint.Served, auth.WriteProtectedBranches),
		table[auth.Group](f, "/groups/{id}/protected_branches", "a group", auth.AdminGroupProtectedBranches, endpoint.Hidden, auth.AdminGroupProtectedBranches))
}

func table[S auth.Form](f *Family, path, of string, read endpoint.Ability, anonymous endpoint.Anonymous, write endpoint.Ability) endpoint.Table {
	return endpoint.Table{
		endpoint.Get(path, auth.On[S](f.list)).Needs(read).
			Anonymous(anonymous).Doc("List the protected branches of " + of + ", including inherited ones."),
		endpoint.Get(path+"/{name}", auth.On[S](f.get)).Needs(read).
			Anonymous(anonymous).Doc("Get the protection of one branch or wildcard in " + of + "."),
		endpoint.Post(path, auth.On[S](f.create)).Needs(write).
			Anonymous(endpoint.Hidden).Doc("Create the protection of a branch, or of all branches that match a wildcard, in " + of + "."),
		endpoint.Patch(path+"/{name}", auth.On[S](f.update)).Needs(write).
			Anonymous(endpoint.Hidden).Doc("Update a protection of " + of + " itself."),
		endpoint.Delete(path+"/{name}", auth.On[S](f.remove)).Needs(write).
			Anonymous(endpoint.Hidden).Conditional().Doc("Delete a protection of " + of + " itself."),
	}
}

type listRequest struct {
	endpoint.Paging
	Search string `param:"search" doc:"Part of a name."`
}

func (f *Family) list(ctx context.Context, s auth.Subject, r *listRequest) (endpoint.List[Branch], error) {
	found, err := f.view(ctx, s.Scope)
	if err != nil {
		return endpoint.List[Branch]{}, err
	}
	all := found.all
	if search := strings.ToLower(r.Search); search != "" {
		all = slices.DeleteFunc(slices.Clone(all), func(b Branch) bool { return !strings.Contains(strings.ToLower(b.Name), search) })
	}
	return endpoint.Page(r.Paging, all, func(b Branch) Branch { return b }), nil
}

// view has all protections that apply to a project or group, in the form of the REST API.
type view struct {
	// all are in the order of their ids.
	all []Branch
	// named has the nearest protection of each branch. The protections of the project or group itself take precedence over those of groups
	// above.
	named map[string]Branch
}

func (f *Family) view(ctx context.Context, scope catalog.Scope) (view, error) {
	now := f.Clock.Now()
	return catalog.RecallFor(f.views, scope, now, func(c *catalog.Catalog, scope catalog.Scope) (view, error) {
		v := view{all: []Branch{}, named: map[string]Branch{}}
		for above, level := range scope.Levels() {
			found, err := protection.Own(ctx, c, level)
			if err != nil {
				return view{}, err
			}
			for _, b := range store.Visible(found, nil) {
				one, err := show(ctx, c, scope, b, now)
				if err != nil {
					return view{}, err
				}
				one.Inherited = above > 0
				v.all = append(v.all, one)
				if _, nearer := v.named[one.Name]; !nearer {
					v.named[one.Name] = one
				}
			}
		}
		slices.SortStableFunc(v.all, func(a, b Branch) int { return cmp.Compare(a.ID, b.ID) })
		return v, nil
	})
}

type nameRequest struct {
	Name string `param:"name" doc:"Name of the branch, or the wildcard."`
}

func (f *Family) get(ctx context.Context, s auth.Subject, r *nameRequest) (Branch, error) {
	found, err := f.view(ctx, s.Scope)
	if err != nil {
		return Branch{}, err
	}
	b, ok := found.named[r.Name]
	if !ok {
		return Branch{}, endpoint.NotFound("")
	}
	return b, nil
}

type createRequest struct {
	Name                 string                  `param:"name" required:"" blank:"refuse" example:"main" doc:"Name of the branch, or a wildcard."`
	PushAccessLevel      endpoint.Optional[int]  `param:"push_access_level" values:"0,30,40,60" example:"40" doc:"Access level that can push."`
	MergeAccessLevel     endpoint.Optional[int]  `param:"merge_access_level" values:"0,30,40,60" doc:"Access level that can merge."`
	UnprotectAccessLevel endpoint.Optional[int]  `param:"unprotect_access_level" values:"30,40,60" doc:"Access level that can unprotect."`
	AllowedToPush        []level                 `param:"allowed_to_push" doc:"Others who can push."`
	AllowedToMerge       []level                 `param:"allowed_to_merge" doc:"Others who can merge."`
	AllowedToUnprotect   []level                 `param:"allowed_to_unprotect" doc:"Others who can unprotect."`
	AllowForcePush       endpoint.Optional[bool] `param:"allow_force_push" blank:"refuse" doc:"Whether users who can push can rewrite history."`
	CodeOwnerApproval    endpoint.Optional[bool] `param:"code_owner_approval_required" doc:"Whether pushes to owned files are refused."`
}

func (f *Family) create(ctx context.Context, s auth.Subject, r *createRequest) (Branch, error) {
	scope := s.Scope
	if holder, err := protection.Holder(ctx, f.Catalog, scope, r.Name); err != nil {
		return Branch{}, err
	} else if holder != nil && !protection.IsDefault(holder) {
		return Branch{}, exists(r.Name)
	}
	b := &v1alpha1.ProtectedBranch{
		ObjectMeta: metav1.ObjectMeta{Namespace: scope.Namespace(), Name: name(scope, r.Name)},
		Spec: v1alpha1.ProtectedBranchSpec{
			Branch:         r.Name,
			AllowForcePush: r.AllowForcePush.Or(false), CodeOwnerApprovalRequired: r.CodeOwnerApproval.Or(false),
		},
	}
	b.Spec.ProjectRef, b.Spec.GroupRef = scope.Refs()
	for _, set := range []struct {
		name   accesslevel.Set
		levels *[]v1alpha1.AccessLevel
		one    endpoint.Optional[int]
		more   []level
	}{
		{accesslevel.Push, &b.Spec.Push, r.PushAccessLevel, r.AllowedToPush},
		{accesslevel.Merge, &b.Spec.Merge, r.MergeAccessLevel, r.AllowedToMerge},
		{accesslevel.Unprotect, &b.Spec.Unprotect, r.UnprotectAccessLevel, r.AllowedToUnprotect},
	} {
		var err error
		if *set.levels, err = f.declared(ctx, scope, set.name, set.one, set.more); err != nil {
			return Branch{}, err
		}
	}
	if err := check(b); err != nil {
		return Branch{}, err
	}
	b, err := f.protect(ctx, s, b)
	if err != nil {
		return Branch{}, err
	}
	return show(ctx, f.Catalog, scope, b, f.Clock.Now())
}

// name returns the name of the object for the protection of a branch.
func name(s catalog.Scope, branch string) string {
	if s.Project == nil {
		return v1alpha1.NaturalName(s.Groups[0].Name, "group", branch)
	}
	return v1alpha1.NaturalName(s.Project.Name, branch)
}

func exists(name string) error {
	return endpoint.Message(http.StatusConflict, "Protected branch '%s' already exists", name)
}

type updateRequest struct {
	Name               string                  `param:"name" doc:"Name of the branch, or the wildcard."`
	AllowForcePush     endpoint.Optional[bool] `param:"allow_force_push" blank:"refuse" example:"false" doc:"Whether users who can push can rewrite history."`
	CodeOwnerApproval  endpoint.Optional[bool] `param:"code_owner_approval_required" doc:"Whether pushes to owned files are refused."`
	AllowedToPush      []level                 `param:"allowed_to_push" doc:"Levels to add, update or remove."`
	AllowedToMerge     []level                 `param:"allowed_to_merge" doc:"Levels to add, update or remove."`
	AllowedToUnprotect []level                 `param:"allowed_to_unprotect" doc:"Levels to add, update or remove."`
}

// update changes the levels in place in one write, so that the branch remains protected throughout. An updated protection no longer counts
// as created by the project controller.
func (f *Family) update(ctx context.Context, s auth.Subject, r *updateRequest) (Branch, error) {
	if err := f.changeable(ctx, s, r.Name); err != nil {
		return Branch{}, err
	}
	b, err := f.protections.Update(ctx, s, r.Name, func(b *v1alpha1.ProtectedBranch) error {
		delete(b.Labels, v1alpha1.LabelDefaultProtection)
		b.Spec.AllowForcePush = r.AllowForcePush.Or(b.Spec.AllowForcePush)
		b.Spec.CodeOwnerApprovalRequired = r.CodeOwnerApproval.Or(b.Spec.CodeOwnerApprovalRequired)
		return f.change(ctx, s.Scope, b, r)
	})
	if err != nil {
		return Branch{}, err
	}
	return show(ctx, f.Catalog, s.Scope, b, f.Clock.Now())
}

func (f *Family) remove(ctx context.Context, s auth.Subject, r *nameRequest) (endpoint.None, error) {
	if err := f.changeable(ctx, s, r.Name); err != nil {
		return endpoint.None{}, err
	}
	return endpoint.None{}, f.protections.Delete(ctx, s, r.Name)
}
