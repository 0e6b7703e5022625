// Package sharing has what the families of projects and groups have in common about sharing them with groups.
package sharing

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/role"
)

// maxShares is the maximum number of shares of a project or group.
const maxShares = 50

// Request is the request to share a project or group with a group.
type Request struct {
	GroupID     int64                        `param:"group_id" required:"" doc:"Id of the group to share with."`
	GroupAccess int                          `param:"group_access" required:"" values:"10,20,30,40,50" doc:"Highest role that the members of the group get: 10 Guest, 20 Reporter, 30 Developer, 40 Maintainer, 50 Owner."`
	ExpiresAt   endpoint.Optional[time.Time] `param:"expires_at" doc:"Day on which the share ends."`
}

// Group is a group that a project or group is shared with.
type Group struct {
	ID          int64         `json:"group_id"`
	Name        string        `json:"group_name"`
	FullPath    string        `json:"group_full_path"`
	AccessLevel int           `json:"group_access_level" doc:"10 Guest, 20 Reporter, 30 Developer, 40 Maintainer, 50 Owner."`
	ExpiresAt   endpoint.Date `json:"expires_at"`
}

// Sharing reads and changes the shares of projects and groups.
type Sharing struct {
	catalog *catalog.Catalog
	guard   *auth.Guard
	clock   clock.PassiveClock
}

// New returns a Sharing.
func New(cat *catalog.Catalog, g *auth.Guard, clk clock.PassiveClock) *Sharing {
	return &Sharing{catalog: cat, guard: g, clock: clk}
}

// Show returns the groups that a project or group itself is shared with, without those that the caller cannot see.
func (s *Sharing) Show(ctx context.Context, by auth.Caller, of v1alpha1.Shareable) ([]Group, error) {
	shown := []Group{}
	shares, err := s.catalog.SharesOf(ctx, of, s.clock.Now())
	if err != nil {
		return nil, err
	}
	for _, share := range shares {
		access, err := s.guard.Access(ctx, by, share.With)
		if err != nil {
			return nil, err
		}
		g := share.With.Groups[0]
		if !access.Sees() || g.RESTID() == 0 {
			continue
		}
		one := Group{
			ID: g.RESTID(), Name: catalog.Title(g.Spec.Name, g.Spec.Path), FullPath: share.With.Path(),
			AccessLevel: int(catalog.RoleOf(share.Share.Role)),
		}
		if expires := share.Share.ExpiresAt; expires != nil {
			one.ExpiresAt = endpoint.Date(expires.UTC())
		}
		shown = append(shown, one)
	}
	return shown, nil
}

// New returns the share that a request declares. The caller must see the group, and cannot give away a role above their own. The endpoint
// must declare auth.ReadGroup with Asks.
func (s *Sharing) New(ctx context.Context, of auth.Subject, r *Request) (v1alpha1.Share, error) {
	with, err := s.guard.Locate(ctx, of, auth.ReadGroup, r.GroupID)
	if err != nil {
		return v1alpha1.Share{}, err
	}
	if r.GroupAccess == 0 { // "" and null
		return v1alpha1.Share{}, endpoint.Invalid(map[string][]string{"group_access": {"is not included in the list"}})
	}
	if role.Role(r.GroupAccess) > of.Access.Role {
		return v1alpha1.Share{}, endpoint.Forbidden("").Describe("You have the role %s, and cannot give a higher one.", of.Access.Role)
	}
	share := v1alpha1.Share{GroupRef: catalog.Refer(with.Groups[0]), Role: v1alpha1.Role(role.Role(r.GroupAccess).String())}
	if r.ExpiresAt.Set && !r.ExpiresAt.Null {
		year, month, day := r.ExpiresAt.Value.Date()
		share.ExpiresAt = &metav1.Time{Time: time.Date(year, month, day, 0, 0, 0, 0, time.UTC)}
		if !s.clock.Now().Before(share.ExpiresAt.Time) {
			return v1alpha1.Share{}, endpoint.Invalid(map[string][]string{"expires_at": {"cannot be a date in the past"}})
		}
	}
	if slices.ContainsFunc(of.Scope.Groups, func(g *v1alpha1.Group) bool { return g.UID == with.Groups[0].UID }) {
		if of.Scope.Project != nil {
			return v1alpha1.Share{}, endpoint.Conflict("Project cannot be shared with the group it is in or one of its ancestors.")
		}
		return v1alpha1.Share{}, endpoint.Conflict("Group cannot be shared with itself or one of its ancestors.")
	}
	return share, nil
}

// Add returns the shares of an object with one more. It refuses a second share with the same group with the error taken, and drops shares
// that have ended or whose group is gone for good. A share whose group does not exist yet, or has no place in the tree at the moment, stays.
func (s *Sharing) Add(ctx context.Context, of v1alpha1.Shareable, share v1alpha1.Share, taken error) ([]v1alpha1.Share, error) {
	now := s.clock.Now()
	kept, err := s.keep(ctx, of, func(d *v1alpha1.Share, with *catalog.Scope) (bool, error) {
		ended := d.ExpiresAt != nil && !now.Before(d.ExpiresAt.Time)
		if with != nil && string(with.Groups[0].UID) == share.GroupRef.UID && !ended {
			return false, taken
		}
		if ended || with != nil {
			return !ended, nil
		}
		gone, err := s.gone(ctx, of, d.GroupRef)
		return !gone, err
	})
	if err != nil {
		return nil, err
	}
	if len(kept) >= maxShares {
		return nil, endpoint.BadRequest(fmt.Sprintf("Too many groups (limit is %d)", maxShares))
	}
	return append(kept, share), nil
}

// gone reports whether the group that a reference of a share means can never exist again: it names the UID of a deleted group. A group with a
// UID can get a path again.
func (s *Sharing) gone(ctx context.Context, of v1alpha1.Shareable, ref v1alpha1.Reference) (bool, error) {
	if ref.UID == "" || ref.Path != "" {
		return false, nil
	}
	_, err := s.catalog.AnyGroup(ctx, of.GetNamespace(), ref)
	return err != nil, catalog.IgnoreNotFound(err)
}

// Remove returns the shares of an object without those with the group of an id. The error is 404 Group Link if the object has no such share, or the
// caller cannot see the group. The caller cannot remove a share whose role is above their own, as they could not have created it. A share that leads
// nowhere can be removed by the id that it names.
func (s *Sharing) Remove(ctx context.Context, by auth.Subject, of v1alpha1.Shareable, groupID int64) ([]v1alpha1.Share, error) {
	g, err := catalog.ByID[*v1alpha1.Group](ctx, s.catalog, groupID)
	if catalog.IgnoreNotFound(err) != nil {
		return nil, err
	}
	kept, err := s.keep(ctx, of, func(d *v1alpha1.Share, with *catalog.Scope) (bool, error) {
		if d.GroupRef.ID != groupID && (g == nil || with == nil || with.Groups[0].UID != g.UID) {
			return true, nil
		}
		if with != nil {
			if access, err := s.guard.Access(ctx, by.Caller, *with); err != nil || !access.Sees() {
				return true, err
			}
		}
		if catalog.RoleOf(d.Role) > by.Access.Role {
			return false, endpoint.Forbidden("").Describe("You have the role %s, and cannot remove a share with a higher one.", by.Access.Role)
		}
		return false, nil
	})
	if declared, _ := of.Shares(); err == nil && len(kept) == len(declared) {
		err = endpoint.NotFound("Group Link")
	}
	return kept, err
}

// keep returns the shares of an object that want accepts. want gets the invited group, or nil if the share leads nowhere.
func (s *Sharing) keep(ctx context.Context, of v1alpha1.Shareable, want func(d *v1alpha1.Share, with *catalog.Scope) (bool, error)) ([]v1alpha1.Share, error) {
	declared, _ := of.Shares()
	kept := []v1alpha1.Share{}
	for i := range declared {
		var with *catalog.Scope
		found, err := s.catalog.Invited(ctx, of, declared[i].GroupRef)
		if err == nil {
			with = &found
		} else if catalog.IgnoreNotFound(err) != nil {
			return nil, err
		}
		wanted, err := want(&declared[i], with)
		if err != nil {
			return nil, err
		}
		if wanted {
			kept = append(kept, declared[i])
		}
	}
	return kept, nil
}
