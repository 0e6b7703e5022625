package protectedbranches

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/accesslevel"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/deploykey"
	"github.com/forgeplane/forgeplane/internal/protection"
	"github.com/forgeplane/forgeplane/internal/role"
)

// level is an element of allowed_to_push and similar parameters: a new level, or with an id a level to update or remove.
type level struct {
	ID          endpoint.Optional[int64] `param:"id" doc:"Id of the level to update or remove."`
	AccessLevel endpoint.Optional[int]   `param:"access_level" values:"0,30,40,60" doc:"A role."`
	UserID      endpoint.Optional[int64] `param:"user_id" doc:"Id of a user who has access to the project or group."`
	GroupID     endpoint.Optional[int64] `param:"group_id" doc:"Id of a group that the project is in, or of the group itself or one above it."`
	DeployKeyID endpoint.Optional[int64] `param:"deploy_key_id" doc:"Id of a deploy key of the project; not for groups."`
	Destroy     bool                     `param:"_destroy" doc:"Removes the level."`
}

// roles maps the access levels of the API to roles.
var roles = map[int]v1alpha1.AccessRole{
	0: v1alpha1.AccessNoOne, 30: v1alpha1.AccessDeveloper, 40: v1alpha1.AccessMaintainer, 60: v1alpha1.AccessAdmin,
}

// number returns the access level of a role, or nil for other holders.
func number(r v1alpha1.AccessRole) *int {
	for n, name := range roles {
		if name == r {
			return &n
		}
	}
	return nil
}

// declared converts the parameters of one set to a declaration. Levels of users or groups replace the default role, unless the request also
// has a role.
func (f *Family) declared(
	ctx context.Context, s catalog.Scope, set accesslevel.Set, one endpoint.Optional[int], more []level,
) ([]v1alpha1.AccessLevel, error) {
	var all []v1alpha1.AccessLevel
	if one.Set && !one.Null || len(more) == 0 {
		all = append(all, v1alpha1.AccessLevel{Role: roles[one.Or(40)]})
	}
	for _, l := range more {
		d, err := f.declare(ctx, s, set, l)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(other v1alpha1.AccessLevel) bool { return same(other, d) }) {
			return nil, taken(set)
		}
		all = append(all, d)
	}
	return effective(set, all), nil
}

// effective removes the level "No one" if the set has other levels, which it does not restrict: clients can send both, but a declaration
// cannot contain both. The set of unprotect levels never contains it, because a protection must stay removable.
func effective(set accesslevel.Set, all []v1alpha1.AccessLevel) []v1alpha1.AccessLevel {
	if set == accesslevel.Unprotect || len(all) < 2 {
		return all
	}
	return slices.DeleteFunc(all, func(l v1alpha1.AccessLevel) bool { return l.Role == v1alpha1.AccessNoOne })
}

// titles are the names of the sets in responses.
var titles = map[accesslevel.Set]string{
	accesslevel.Push: "Push", accesslevel.Merge: "Merge", accesslevel.Unprotect: "Unprotect",
}

// text returns a validation error of a set.
func text(set accesslevel.Set, wrong string) string { return titles[set] + " access levels " + wrong }

func taken(set accesslevel.Set) error {
	return endpoint.Unprocessable(text(set, "access level has already been taken"))
}

// declare converts one level of a set to a declaration. It refuses a user, group or key without a relation to the project or group.
func (f *Family) declare(ctx context.Context, s catalog.Scope, set accesslevel.Set, l level) (v1alpha1.AccessLevel, error) {
	d, err := read(l)
	if err != nil {
		return d, err
	}
	if d.DeployKeyRef != nil && s.Project == nil {
		// Deploy keys belong to projects, so a group cannot refer to them.
		err = fmt.Errorf("deploy key %s: %w", catalog.Show(*d.DeployKeyRef), catalog.ErrNotFound)
	}
	if err == nil {
		_, err = protection.Resolve(ctx, f.Catalog, s, s.Namespace(), d, f.Clock.Now())
	}
	if err == nil {
		err = f.pin(ctx, s, &d)
	}
	if errors.Is(err, catalog.ErrNotFound) {
		return d, endpoint.Unprocessable(text(set, err.Error()))
	}
	return d, err
}

// read returns the holder that a level names. A level must name exactly one.
func read(l level) (v1alpha1.AccessLevel, error) {
	var d v1alpha1.AccessLevel
	var named []string
	if l.AccessLevel.Set && !l.AccessLevel.Null {
		d.Role = roles[l.AccessLevel.Value]
		named = append(named, "access_level")
	}
	for _, part := range []struct {
		name string
		id   endpoint.Optional[int64]
		ref  **v1alpha1.Reference
	}{{"user_id", l.UserID, &d.UserRef}, {"group_id", l.GroupID, &d.GroupRef}, {"deploy_key_id", l.DeployKeyID, &d.DeployKeyRef}} {
		if part.id.Set && !part.id.Null {
			*part.ref = &v1alpha1.Reference{ID: part.id.Value}
			named = append(named, part.name)
		}
	}
	switch len(named) {
	case 1:
		return d, nil
	case 0:
		return d, endpoint.Parameters("access_level, user_id, group_id, deploy_key_id are missing, exactly one parameter must be provided")
	default:
		return d, endpoint.Parameters(strings.Join(named, ", ") + " are mutually exclusive")
	}
}

// pin adds the UID to the id that a level names, so that the level never refers to a later object with the id. For a user without access to
// the project or group, and for a group that neither contains it nor is invited to it, pin returns catalog.ErrNotFound with the message for
// an object that does not exist. So callers learn neither whether the object exists nor its name.
func (f *Family) pin(ctx context.Context, s catalog.Scope, d *v1alpha1.AccessLevel) error {
	switch {
	case d.UserRef != nil:
		u, err := f.Catalog.User(ctx, *d.UserRef)
		if err != nil {
			return err
		}
		access, err := f.Guard.Access(ctx, auth.Caller{User: u, Admin: u.Spec.Admin}, s)
		if err == nil && access.Role == role.None {
			err = fmt.Errorf("user %s: %w", catalog.Show(*d.UserRef), catalog.ErrNotFound)
		}
		*d.UserRef = catalog.Refer(u)
		return err
	case d.GroupRef != nil:
		g, err := catalog.ByID[*v1alpha1.Group](ctx, f.Catalog, d.GroupRef.ID)
		if err == nil && !slices.ContainsFunc(s.Groups, func(a *v1alpha1.Group) bool { return a.UID == g.UID }) {
			_, err = f.Catalog.InvitedTo(ctx, s, g, f.Clock.Now())
		}
		if err != nil {
			return fmt.Errorf("group %s: %w", catalog.Show(*d.GroupRef), err)
		}
		*d.GroupRef = catalog.Refer(g)
		return nil
	case d.DeployKeyRef != nil:
		k, err := deploykey.Named(ctx, f.Catalog, s.Project.Namespace, *d.DeployKeyRef)
		if err == nil {
			*d.DeployKeyRef = catalog.Refer(k)
		}
		return err
	default:
		return nil
	}
}

func same(a, b v1alpha1.AccessLevel) bool {
	// A level that was declared without a UID refers to the current holder of the id.
	equal := func(x, y *v1alpha1.Reference) bool {
		return x == y || x != nil && y != nil && x.Name == y.Name && x.Path == y.Path && x.ID == y.ID && (x.UID == y.UID || x.UID == "" || y.UID == "")
	}
	return a.Role == b.Role && equal(a.UserRef, b.UserRef) && equal(a.GroupRef, b.GroupRef) && equal(a.DeployKeyRef, b.DeployKeyRef)
}

// This is the role that an empty list of each set stands for, because omitting the list would restore the default. Maintainers can always
// unprotect, so that a protection stays removable.
var nobody = map[accesslevel.Set]v1alpha1.AccessRole{
	accesslevel.Push: v1alpha1.AccessNoOne, accesslevel.Merge: v1alpha1.AccessNoOne, accesslevel.Unprotect: v1alpha1.AccessMaintainer,
}

// change applies the elements of an update to the levels of b, and keeps the ids of the remaining levels.
func (f *Family) change(ctx context.Context, s catalog.Scope, b *v1alpha1.ProtectedBranch, r *updateRequest) error {
	ids := accesslevel.Of(b)
	for _, set := range []struct {
		name   accesslevel.Set
		levels *[]v1alpha1.AccessLevel
		sent   []level
	}{
		{accesslevel.Push, &b.Spec.Push, r.AllowedToPush},
		{accesslevel.Merge, &b.Spec.Merge, r.AllowedToMerge},
		{accesslevel.Unprotect, &b.Spec.Unprotect, r.AllowedToUnprotect},
	} {
		if len(set.sent) > 0 {
			*set.levels = slices.DeleteFunc(*set.levels, func(l v1alpha1.AccessLevel) bool { return ids.DropStandIn(set.name, b.Namespace, l) })
		}
		for _, l := range set.sent {
			if err := f.changeOne(ctx, s, b, ids, set.name, set.levels, l); err != nil {
				return err
			}
		}
		*set.levels = effective(set.name, *set.levels)
		if len(*set.levels) == 0 {
			l := v1alpha1.AccessLevel{Role: nobody[set.name]}
			*set.levels = []v1alpha1.AccessLevel{l}
			ids.StandIn(set.name, b.Namespace, l)
		}
	}
	if err := check(b); err != nil {
		return err
	}
	_, err := ids.Write(ctx, f.IDs, b)
	return err
}

func (f *Family) changeOne(
	ctx context.Context, s catalog.Scope, b *v1alpha1.ProtectedBranch,
	ids accesslevel.IDs, set accesslevel.Set, levels *[]v1alpha1.AccessLevel, l level,
) error {
	at := -1
	if l.ID.Set && !l.ID.Null {
		at = slices.IndexFunc(*levels, func(d v1alpha1.AccessLevel) bool { return ids.Get(set, b.Namespace, d) == l.ID.Value })
		if at < 0 {
			return endpoint.NotFound("")
		}
	}
	if l.Destroy {
		if at < 0 {
			return endpoint.NotFound("")
		}
		*levels = slices.Delete(*levels, at, at+1)
		return nil
	}
	d, err := f.declare(ctx, s, set, l)
	if err != nil {
		return err
	}
	other := slices.IndexFunc(*levels, func(o v1alpha1.AccessLevel) bool { return same(o, d) })
	switch {
	case other >= 0 && other != at:
		return taken(set)
	case at >= 0:
		(*levels)[at] = d
		ids.Put(set, b.Namespace, d, l.ID.Value)
	default:
		*levels = append(*levels, d)
	}
	return nil
}
