// Package groups is the family of groups, which are also the namespaces of projects.
package groups

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/avatar"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/namespace"
	"github.com/forgeplane/forgeplane/apiserver/sharing"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/owner"
)

// Family serves groups.
type Family struct {
	family.Kit
	groups  *store.Store[store.Only, *v1alpha1.Group]
	sharing *sharing.Sharing
	tree    *store.Remover
}

// +kubebuilder:rbac:groups=forgeplane.dev,resources=groups,verbs=get;create;patch;delete,roleName=forgeplane-apiserver
// +kubebuilder:rbac:groups=forgeplane.dev,resources=groups/status,verbs=patch,roleName=forgeplane-apiserver

// New returns the family.
func New(k family.Kit) *Family {
	return &Family{
		Kit: k, groups: store.Groups(k.Writer), sharing: sharing.New(k.Catalog, k.Guard, k.Clock), tree: store.NewRemover(k.Writer),
	}
}

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	return endpoint.Table{
		endpoint.Get("/groups", f.list).Anonymous(endpoint.Served).Doc("List the groups that the caller can see."),
		avatar.Taking(endpoint.Post("/groups", f.create).Anybody().Asks(auth.CreateSubgroups).Doc("Create a group.")),
		endpoint.Get("/groups/{id}", f.get).Needs(auth.ReadGroup).Anonymous(endpoint.Served).Doc("Get a group."),
		avatar.Taking(endpoint.Put("/groups/{id}", f.update).Needs(auth.AdminGroup).Doc("Update a group.")),
		endpoint.Get("/groups/{id}/avatar", f.avatar).Needs(auth.ReadGroup).Anonymous(endpoint.Served).Doc("Get the avatar of a group, as a PNG."),
		endpoint.Delete("/groups/{id}", f.remove).Needs(auth.AdminGroup).Status(http.StatusAccepted).
			Conditional().Doc("Delete a group."),
		endpoint.Post("/groups/{id}/share", f.share).Needs(auth.WriteGroupMembers).Asks(auth.ReadGroup).
			Doc("Share a group with the members of another group."),
		endpoint.Delete("/groups/{id}/share/{group_id}", f.unshare).Needs(auth.WriteGroupMembers).Asks(auth.ReadGroup).
			Doc("Stop sharing a group with another group."),
		endpoint.Post("/groups/{id}/transfer", f.transfer).Needs(auth.AdminGroup).Asks(auth.CreateSubgroups).
			Doc("Move a group to another group, or to the root."),
		endpoint.Get("/groups/{id}/transfer_locations", f.locations).Needs(auth.AdminGroup).Asks(auth.CreateSubgroups).
			Doc("List the groups to which the caller can move a group."),
		endpoint.Get("/groups/{id}/subgroups", f.subgroups).Needs(auth.ReadGroup).Anonymous(endpoint.Served).Doc("List the direct subgroups of a group."),
		endpoint.Get("/groups/{id}/descendant_groups", f.descendants).Needs(auth.ReadGroup).Anonymous(endpoint.Served).
			Doc("List the subgroups of a group at all levels."),
		endpoint.Get("/projects/{id}/groups", f.above).Needs(auth.ReadProject).Asks(auth.ReadGroup).Anonymous(endpoint.Served).
			Doc("List the groups above a project."),
		endpoint.Get("/namespaces", f.namespaces).Doc("List the namespaces in which the caller is a member."),
		endpoint.Get("/namespaces/{namespace}", f.namespace).Asks(auth.ReadGroup).Doc("Get a namespace by id or full path."),
		endpoint.Get("/namespaces/{namespace}/exists", f.exists).Asks(auth.ReadGroup, auth.CreateSubgroups).
			Doc("Get the availability of a path, and a free path if it is taken."),
	}
}

func (f *Family) get(ctx context.Context, s auth.Group, _ *endpoint.None) (Group, error) {
	return f.detailed(ctx, s.Caller, s.Scope)
}

type createRequest struct {
	Name        string                   `param:"name" required:"" blank:"refuse" example:"Bakery" doc:"Display name of the group."`
	Path        string                   `param:"path" required:"" blank:"refuse" example:"bakery" doc:"Its segment of the full path."`
	Description string                   `param:"description" doc:"Purpose of the group."`
	Visibility  string                   `param:"visibility" values:"private,internal,public" default:"private" doc:"Users who can see the group."`
	ParentID    endpoint.Optional[int64] `param:"parent_id" doc:"Id of the group above."`
	Avatar      avatar.Upload            `param:"avatar" doc:"A picture of at most 200 KiB."`
}

func (f *Family) create(ctx context.Context, s auth.Instance, r *createRequest) (Group, error) {
	caller := s.Caller
	picture, err := f.Avatars.Check(ctx, r.Avatar)
	if err != nil {
		return Group{}, err
	}
	g := &v1alpha1.Group{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.Home, Labels: caller.Creator()},
		Spec: v1alpha1.GroupSpec{
			Path: r.Path, Name: r.Name, Description: r.Description, Visibility: entity.Visibilities[r.Visibility],
		},
	}
	key := []string{strings.ToLower(r.Path)}
	var above []*v1alpha1.Group
	if r.ParentID.Set && !r.ParentID.Null {
		parent, err := f.Guard.Locate(ctx, s.Subject, auth.CreateSubgroups, r.ParentID.Value)
		if err != nil {
			return Group{}, err
		}
		above = parent.Groups
		g.Namespace, key = above[0].Namespace, slices.Insert(key, 0, above[0].Name)
		g.Spec.ParentRef = ptr.To(catalog.ReferNamed(above[0]))
	} else if !f.mayCreateRoot(caller, f.Home, r.Path) {
		return Group{}, endpoint.Forbidden("").Describe("You cannot create a root group with this path: send the id of a parent group in parent_id.")
	}
	if err := check(g.Spec, v1alpha1.GroupSpec{}); err != nil {
		return Group{}, err
	}
	if err := f.free(ctx, above, r.Path); err != nil {
		return Group{}, err
	}
	same := func(holder *v1alpha1.Group) bool {
		ref, root := holder.Spec.ParentRef, len(above) == 0
		return strings.EqualFold(holder.Spec.Path, r.Path) && root == (ref == nil) && (root || catalog.Names(*ref, above[0]))
	}
	then := append(owned(g, caller), f.Avatars.Then(g, picture)...)
	err = f.groups.CreateUnique(ctx, g, same, key, then...)
	if errors.Is(err, store.ErrExists) {
		return Group{}, taken()
	}
	if err != nil {
		return Group{}, err
	}
	chain, err := f.Catalog.Ancestors(ctx, g)
	if err != nil {
		return Group{}, err
	}
	return f.detailed(ctx, s.Caller, catalog.Scope{Groups: chain})
}

// mayCreateRoot reports whether a caller can create a root group with a path in a Kubernetes namespace.
func (f *Family) mayCreateRoot(c auth.Caller, in, path string) bool {
	return !c.External() && f.Catalog.MayHoldRootGroup(in, path)
}

// owned makes the calling user the owner of a new group. If that fails, the group is removed. If the server stops before that, the group
// controller adds the owner. A bot needs no membership, because it has its role in all groups below its own.
func owned(g *v1alpha1.Group, caller auth.Caller) []store.Then {
	by := caller.User
	if by == nil || caller.Bot != nil {
		return nil
	}
	owner.Expect(g, by)
	return []store.Then{ownedBy(g, by)}
}

// ownedBy makes a user the owner of a group whose annotation names that user.
func ownedBy(g *v1alpha1.Group, by *v1alpha1.User) store.Then {
	return func(ctx context.Context, w store.Unasked) error {
		if err := w.Ensure(ctx, owner.Membership(by, g)); err != nil {
			return fmt.Errorf("making %s the owner of group %s: %w", by.Name, g.Spec.Path, err)
		}
		return w.Update(ctx, g, func() error {
			owner.Settle(g)
			return nil
		})
	}
}

// maxDescription is the maximum number of characters in a description.
const maxDescription = 500

// check returns the validation errors of a group. was is its previous spec, empty for a new group.
func check(is, was v1alpha1.GroupSpec) error {
	var a endpoint.Attributes
	if is.ParentRef == nil && is.Path != was.Path {
		namespace.CheckRootPath(&a, is.Path)
	} else {
		namespace.CheckPath(&a, is.Path)
	}
	if is.Name != was.Name {
		namespace.CheckName(&a, is.Name)
	}
	a.Text("description", is.Description, maxDescription)
	return a.Err()
}

// free refuses a path that a sibling already has, and for a root group also a username, because it is reserved for the user's personal
// projects.
func (f *Family) free(ctx context.Context, above []*v1alpha1.Group, path string) error {
	_, err := f.Catalog.ByPath(ctx, catalog.FullPath(above, path))
	if len(above) == 0 && errors.Is(err, catalog.ErrNotFound) {
		_, err = f.Catalog.UserByUsername(ctx, path)
	}
	switch {
	case err == nil:
		return taken()
	case errors.Is(err, catalog.ErrNotFound):
		return nil
	default:
		return err
	}
}

func taken() error { return endpoint.Invalid(map[string][]string{"path": {"has already been taken"}}) }

type updateRequest struct {
	Name        endpoint.Optional[string] `param:"name" blank:"refuse" doc:"Display name of the group."`
	Path        endpoint.Optional[string] `param:"path" blank:"refuse" doc:"Its segment of the full path."`
	Description endpoint.Optional[string] `param:"description" example:"Bread and cakes" doc:"Purpose of the group."`
	Visibility  endpoint.Optional[string] `param:"visibility" values:"private,internal,public" doc:"Users who can see the group."`
	Avatar      avatar.Upload             `param:"avatar" doc:"A picture of at most 200 KiB; empty to remove it."`
}

func (f *Family) update(ctx context.Context, s auth.Group, r *updateRequest) (Group, error) {
	picture, err := f.Avatars.Check(ctx, r.Avatar)
	if err != nil {
		return Group{}, err
	}
	scope := s.Scope
	// A path that differs only in case is the group's own.
	if path := r.Path.Or(scope.Groups[0].Spec.Path); !strings.EqualFold(path, scope.Groups[0].Spec.Path) {
		if err := f.free(ctx, scope.Groups[1:], path); err != nil {
			return Group{}, err
		}
	}
	g, err := f.groups.Update(ctx, s.Subject, store.Only{}, func(g *v1alpha1.Group) error {
		was := g.Spec
		g.Spec.Name = r.Name.Or(g.Spec.Name)
		g.Spec.Path = r.Path.Or(g.Spec.Path)
		if r.Description.Set {
			g.Spec.Description = r.Description.Value // null clears it
		}
		if v, ok := entity.Visibilities[r.Visibility.Value]; ok {
			g.Spec.Visibility = v
		}
		return check(g.Spec, was)
	})
	if errors.Is(err, store.ErrExists) {
		return Group{}, taken()
	}
	if err == nil {
		g, err = avatar.Set(ctx, f.Avatars, f.groups, s.Subject, g, picture)
	}
	if err != nil {
		return Group{}, err
	}
	chain, err := f.Catalog.Ancestors(ctx, g)
	if err != nil {
		return Group{}, err
	}
	return f.detailed(ctx, s.Caller, catalog.Scope{Groups: chain})
}

func (f *Family) avatar(ctx context.Context, s auth.Group, _ *endpoint.None) (endpoint.Content, error) {
	return f.Avatars.Content(ctx, s.Scope.Groups[0])
}
