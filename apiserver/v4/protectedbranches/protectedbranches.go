// Package protectedbranches is the family "Protected branches" of the core interface document.
package protectedbranches

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/accesslevel"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/naturalkey"
	"github.com/forgeplane/forgeplane/internal/protection"
)

// Family serves the protected branches of projects.
type Family struct {
	catalog *catalog.Catalog
	// protections are a project's own, by what they protect: inherited ones are changed where they are declared.
	protections *store.Store[string, *v1alpha1.ProtectedBranch]
	ids         accesslevel.Allocator
	guard       *auth.Guard
	// views are by the versions of the scopes.
	views *catalog.Memory[string, view]
}

// maxViews is of how many projects the view is remembered.
const maxViews = 4096

// +kubebuilder:rbac:groups=forgeplane.dev,resources=protectedbranches,verbs=get;create;patch;delete,roleName=forgeplane-apiserver

// New returns the family.
func New(cat *catalog.Catalog, w store.Writer, ids accesslevel.Allocator, guard *auth.Guard) *Family {
	own := func(ctx context.Context, of auth.Subject, name string) (*v1alpha1.ProtectedBranch, error) {
		return protection.Holder(ctx, cat, of.Scope, name)
	}
	views := catalog.NewMemory[string, view](
		cat, maxViews, &v1alpha1.ProtectedBranch{}, &v1alpha1.Group{}, &v1alpha1.Project{}, &v1alpha1.User{}, &v1alpha1.DeployKey{},
		&corev1.Namespace{})
	return &Family{catalog: cat, protections: store.New(w, own), ids: ids, guard: guard, views: views}
}

// Table lists the endpoints. None requires signing in first: callers who may not see a project receive 404, even if they want to change
// something (API behaviour, section 2.4).
func (f *Family) Table() endpoint.Table {
	return endpoint.Table{
		endpoint.Get("/projects/{id}/protected_branches", f.list).Needs(auth.ReadProtectedBranches).
			Anonymous(endpoint.Served).Doc("List the protected branches of a project, inherited ones included."),
		endpoint.Get("/projects/{id}/protected_branches/{name}", f.get).Needs(auth.ReadProtectedBranches).
			Anonymous(endpoint.Served).Doc("Get the protection of one branch or wildcard."),
		endpoint.Post("/projects/{id}/protected_branches", f.create).Needs(auth.WriteProtectedBranches).
			Anonymous(endpoint.Hidden).Doc("Protect a branch, or all that match a wildcard."),
		endpoint.Patch("/projects/{id}/protected_branches/{name}", f.update).Needs(auth.WriteProtectedBranches).
			Anonymous(endpoint.Hidden).Doc("Change a protection."),
		endpoint.Delete("/projects/{id}/protected_branches/{name}", f.remove).Needs(auth.WriteProtectedBranches).
			Anonymous(endpoint.Hidden).Conditional().Doc("Remove a protection."),
	}
}

type listRequest struct {
	endpoint.Paging
	Search string `param:"search" doc:"Part of a name."`
}

func (f *Family) list(ctx context.Context, s auth.Project, r *listRequest) (endpoint.List[Branch], error) {
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

// view is what is shown of every protection that a project is under.
type view struct {
	// all are in the order of their ids.
	all []Branch
	// named has of each branch the nearest one: the project's own before those of its groups.
	named map[string]Branch
}

func (f *Family) view(ctx context.Context, scope catalog.Scope) (view, error) {
	return catalog.RecallFor(f.views, scope, func(c *catalog.Catalog, scope catalog.Scope) (view, error) {
		all, err := protection.All(ctx, c, scope)
		if err != nil {
			return view{}, err
		}
		v := view{all: make([]Branch, 0, len(all)), named: make(map[string]Branch, len(all))}
		for _, b := range store.Known(all, nil) {
			one, err := show(ctx, c, scope, b)
			if err != nil {
				return view{}, err
			}
			v.all = append(v.all, one)
			if _, nearer := v.named[one.Name]; !nearer {
				v.named[one.Name] = one
			}
		}
		slices.SortStableFunc(v.all, func(a, b Branch) int { return cmp.Compare(a.ID, b.ID) })
		return v, nil
	})
}

type nameRequest struct {
	Name string `param:"name" doc:"Name of the branch, or the wildcard as it was given."`
}

func (f *Family) get(ctx context.Context, s auth.Project, r *nameRequest) (Branch, error) {
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
	Name                 string                  `param:"name" required:"" blank:"refuse" doc:"Name of the branch, or a wildcard."`
	PushAccessLevel      endpoint.Optional[int]  `param:"push_access_level" values:"0,30,40,60" doc:"Access level that can push."`
	MergeAccessLevel     endpoint.Optional[int]  `param:"merge_access_level" values:"0,30,40,60" doc:"Access level that can merge."`
	UnprotectAccessLevel endpoint.Optional[int]  `param:"unprotect_access_level" values:"30,40,60" doc:"Access level that can unprotect."`
	AllowedToPush        []level                 `param:"allowed_to_push" doc:"Others who can push."`
	AllowedToMerge       []level                 `param:"allowed_to_merge" doc:"Others who can merge."`
	AllowedToUnprotect   []level                 `param:"allowed_to_unprotect" doc:"Others who can unprotect."`
	AllowForcePush       endpoint.Optional[bool] `param:"allow_force_push" doc:"Whether those who may push may rewrite history."`
	CodeOwnerApproval    endpoint.Optional[bool] `param:"code_owner_approval_required" doc:"Whether pushes to owned files are refused."`
}

func (f *Family) create(ctx context.Context, s auth.Project, r *createRequest) (Branch, error) {
	scope := s.Scope
	p := scope.Project
	if holder, err := protection.Holder(ctx, f.catalog, scope, r.Name); err != nil {
		return Branch{}, err
	} else if holder != nil && !protection.IsDefault(holder) {
		return Branch{}, exists(r.Name)
	}
	b := &v1alpha1.ProtectedBranch{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: naturalkey.Name(p.Name, r.Name)},
		Spec: v1alpha1.ProtectedBranchSpec{
			ProjectRef:     ptr.To(catalog.ReferNamed(p)),
			Branch:         r.Name,
			AllowForcePush: r.AllowForcePush.Or(false), CodeOwnerApprovalRequired: r.CodeOwnerApproval.Or(false),
		},
	}
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
	return show(ctx, f.catalog, scope, b)
}

func exists(name string) error {
	return endpoint.Message(http.StatusConflict, "Protected branch '%s' already exists", name)
}

type updateRequest struct {
	Name               string                  `param:"name" doc:"Name of the branch, or the wildcard as it was given."`
	AllowForcePush     endpoint.Optional[bool] `param:"allow_force_push" blank:"refuse" doc:"Whether those who may push may rewrite history."`
	CodeOwnerApproval  endpoint.Optional[bool] `param:"code_owner_approval_required" doc:"Whether pushes to owned files are refused."`
	AllowedToPush      []level                 `param:"allowed_to_push" doc:"Levels to add, change or remove."`
	AllowedToMerge     []level                 `param:"allowed_to_merge" doc:"Levels to add, change or remove."`
	AllowedToUnprotect []level                 `param:"allowed_to_unprotect" doc:"Levels to add, change or remove."`
}

// update changes the levels in place in one write, so that the branch remains protected throughout. A protection that somebody has changed
// no longer counts as the project's own.
func (f *Family) update(ctx context.Context, s auth.Project, r *updateRequest) (Branch, error) {
	if err := f.changeable(ctx, s, r.Name); err != nil {
		return Branch{}, err
	}
	b, err := f.protections.Update(ctx, s.Subject, r.Name, func(b *v1alpha1.ProtectedBranch) error {
		delete(b.Labels, v1alpha1.LabelDefaultProtection)
		b.Spec.AllowForcePush = r.AllowForcePush.Or(b.Spec.AllowForcePush)
		b.Spec.CodeOwnerApprovalRequired = r.CodeOwnerApproval.Or(b.Spec.CodeOwnerApprovalRequired)
		return f.change(ctx, s.Scope, b, r)
	})
	if err != nil {
		return Branch{}, err
	}
	return show(ctx, f.catalog, s.Scope, b)
}

func (f *Family) remove(ctx context.Context, s auth.Project, r *nameRequest) (endpoint.None, error) {
	if err := f.changeable(ctx, s, r.Name); err != nil {
		return endpoint.None{}, err
	}
	return endpoint.None{}, f.protections.Delete(ctx, s.Subject, r.Name)
}
