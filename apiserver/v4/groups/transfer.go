package groups

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/namespace"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/owner"
	"github.com/forgeplane/forgeplane/internal/role"
)

type transferRequest struct {
	GroupID endpoint.Optional[int64] `param:"group_id" example:"7" doc:"Id of the group to which the group moves; omitted to make it a root group."`
}

// transfer moves the request's group, with everything below it, to another group or to the root. The move never makes the group visible to
// more users.
func (f *Family) transfer(ctx context.Context, s auth.Group, r *transferRequest) (none Group, err error) {
	var parent catalog.Scope
	var there auth.Access
	if r.GroupID.Set && !r.GroupID.Null {
		if parent, there, err = f.destination(ctx, s, r.GroupID.Value); err != nil {
			return none, err
		}
	}
	chain, above := s.Scope.Groups, parent.Groups
	if err := f.movable(ctx, s, above); err != nil {
		return none, err
	}
	moved := append([]*v1alpha1.Group{chain[0]}, above...)
	stays := s.Caller.User != nil && s.Caller.Bot == nil && s.Access.Roles.Own == role.None && s.Access.Roles.Inherited >= role.Owner && there.Role < role.Owner
	moved[0], err = f.groups.Move(ctx, s.Subject, store.Only{}, catalog.Scope{Groups: moved}, func(g *v1alpha1.Group) error {
		g.Spec.Visibility = catalog.Visibility(g.Spec.Visibility, chain)
		if stays {
			owner.Expect(g, s.Caller.User)
		}
		was := g.Spec
		if g.Spec.ParentRef = nil; len(above) > 0 {
			g.Spec.ParentRef = ptr.To(catalog.ReferNamed(above[0]))
		} else {
			was.Path = "" // check it like the path of a new root group
		}
		return check(g.Spec, was)
	})
	if err == nil && stays {
		// If the server stops before that, the group controller adds the owner.
		err = f.groups.EnsureUnasked(ctx, moved[0], ownedBy(moved[0], s.Caller.User))
	}
	switch {
	case errors.Is(err, store.ErrExists):
		return none, failed(existing)
	case errors.Is(err, catalog.ErrCycle):
		return none, failed(intoItself)
	case err != nil:
		return none, err
	}
	return f.detailed(ctx, s.Caller, catalog.Scope{Groups: moved})
}

// destination returns the group with an id, in which the caller can create groups, and their access to it. A group that the caller cannot
// see is not found.
func (f *Family) destination(ctx context.Context, s auth.Group, id int64) (catalog.Scope, auth.Access, error) {
	parent, err := f.Guard.Group(ctx, strconv.FormatInt(id, 10))
	if errors.Is(err, catalog.ErrNotFound) {
		return catalog.Scope{}, auth.Access{}, endpoint.NotFound("Group")
	}
	if err != nil {
		return catalog.Scope{}, auth.Access{}, err
	}
	access, err := f.Guard.Access(ctx, s.Caller, parent)
	switch {
	case err != nil:
	case !access.Sees(), namespace.Personal(parent.Groups[0]):
		err = endpoint.NotFound("Group")
	case !s.Has(access, auth.CreateSubgroups):
		err = failed(unpermitted)
	}
	return parent, access, err
}

// movable returns an error if the group of the request cannot be moved. above is empty for a move to the root.
func (f *Family) movable(ctx context.Context, s auth.Group, above []*v1alpha1.Group) error {
	chain, root := s.Scope.Groups, len(above) == 0
	g := chain[0]
	switch {
	case root && len(chain) == 1:
		return failed("Group is already a root group.")
	case root && !f.mayCreateRoot(s.Caller, g.Namespace, g.Spec.Path):
		return failed(unpermitted)
	case !root && len(chain) > 1 && chain[1].UID == above[0].UID:
		return failed("Group is already associated to the parent group.")
	case !root && above[0].Namespace != g.Namespace:
		return failed("The parent group belongs to another Kubernetes namespace than the group. Only a declaration can move the group there.")
	case slices.ContainsFunc(above, func(a *v1alpha1.Group) bool { return a.UID == g.UID }):
		return failed(intoItself)
	}
	deep, err := f.tooDeep(ctx, g, len(above))
	if err != nil {
		return err
	}
	if deep {
		return failed(fmt.Sprintf("Groups can be nested up to %d levels deep.", catalog.MaxDepth))
	}
	err = f.free(ctx, above, g.Spec.Path)
	if known := new(endpoint.Error); errors.As(err, &known) {
		return failed(existing)
	}
	return err
}

// tooDeep reports whether a group or one below it would be nested too deeply with a number of groups above it.
func (f *Family) tooDeep(ctx context.Context, g *v1alpha1.Group, above int) (bool, error) {
	all, err := f.Catalog.View(nil, f.Clock.Now()).Groups(ctx)
	return slices.ContainsFunc(all, func(below catalog.Seen) bool {
		at := slices.IndexFunc(below.Groups, func(a *v1alpha1.Group) bool { return a.UID == g.UID })
		return at >= 0 && above+at >= catalog.MaxDepth
	}), err
}

// Reasons for refusing a move that several functions use.
const (
	unpermitted = "You don't have enough permissions."
	existing    = "The parent group already has a subgroup or a project with the same path."
	intoItself  = "Cannot transfer group to one of its subgroup."
)

func failed(reason string) error {
	return endpoint.Message(http.StatusBadRequest, "Transfer failed: %s", reason)
}

type locationsRequest struct {
	endpoint.Paging
	Search string `param:"search" doc:"Part of a name or full path."`
}

// locations lists the groups to which the caller can transfer the request's group.
func (f *Family) locations(ctx context.Context, s auth.Group, r *locationsRequest) (endpoint.List[entity.GroupPlace], error) {
	all, err := f.visible(ctx, s.Subject)
	if err != nil {
		return endpoint.List[entity.GroupPlace]{}, err
	}
	g, parent := s.Scope.Groups[0], s.Scope.Parent()
	all = slices.DeleteFunc(all, func(to catalog.Seen) bool {
		target := to.Groups[0]
		below := slices.ContainsFunc(to.Groups, func(a *v1alpha1.Group) bool { return a.UID == g.UID })
		return below || target.Namespace != g.Namespace || parent != nil && target.UID == parent.UID || namespace.Personal(target) ||
			!s.Has(auth.AccessOf(s.Caller, to), auth.CreateSubgroups)
	})
	return entity.PageGroupPlaces(r.Paging, all, r.Search, f.WebURL), nil
}
