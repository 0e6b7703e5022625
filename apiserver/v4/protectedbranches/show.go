package protectedbranches

import (
	"context"
	"errors"
	"time"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/accesslevel"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/protection"
)

// Branch is "Protected branch" of the core interface document.
type Branch struct {
	ID                        int64   `json:"id"`
	Name                      string  `json:"name" doc:"Branch name or wildcard."`
	PushAccessLevels          []Level `json:"push_access_levels"`
	MergeAccessLevels         []Level `json:"merge_access_levels"`
	UnprotectAccessLevels     []Level `json:"unprotect_access_levels"`
	AllowForcePush            bool    `json:"allow_force_push"`
	CodeOwnerApprovalRequired bool    `json:"code_owner_approval_required"`
	Inherited                 bool    `json:"inherited" doc:"Whether a group above has the protection."`
}

// Level is an access-level record.
type Level struct {
	ID                     int64  `json:"id"`
	AccessLevel            *int   `json:"access_level" doc:"Null for a user or group."`
	AccessLevelDescription string `json:"access_level_description"`
	DeployKeyID            *int64 `json:"deploy_key_id"`
	UserID                 *int64 `json:"user_id"`
	GroupID                *int64 `json:"group_id"`
}

// deployKeyLevel is the access level of a deploy key in the API.
const deployKeyLevel = 40

// show resolves the declared levels, because the status can be outdated.
func show(ctx context.Context, c *catalog.Catalog, s catalog.Scope, b *v1alpha1.ProtectedBranch, now time.Time) (Branch, error) {
	shown := Branch{
		ID: b.RESTID(), Name: b.Spec.Branch,
		AllowForcePush: b.Spec.AllowForcePush, CodeOwnerApprovalRequired: b.Spec.CodeOwnerApprovalRequired,
	}
	ids := accesslevel.Of(b)
	for _, set := range []struct {
		name   accesslevel.Set
		levels []v1alpha1.AccessLevel
		shown  *[]Level
	}{
		{accesslevel.Push, b.Spec.Push, &shown.PushAccessLevels},
		{accesslevel.Merge, b.Spec.Merge, &shown.MergeAccessLevels},
		{accesslevel.Unprotect, b.Spec.Unprotect, &shown.UnprotectAccessLevels},
	} {
		*set.shown = []Level{}
		for _, l := range set.levels {
			if ids.StandsIn(set.name, b.Namespace, l) {
				continue
			}
			r, err := protection.Resolve(ctx, c, s, b.Namespace, l, now)
			if errors.Is(err, catalog.ErrNotFound) {
				continue
			}
			if err != nil {
				return Branch{}, err
			}
			*set.shown = append(*set.shown, record(ids.Get(set.name, b.Namespace, l), r))
		}
	}
	return shown, nil
}

func record(id int64, r v1alpha1.ResolvedAccessLevel) Level {
	l := Level{ID: id, AccessLevelDescription: r.Description}
	switch {
	case r.UserID != 0:
		l.UserID = &r.UserID
	case r.GroupID != 0:
		l.GroupID = &r.GroupID
	case r.DeployKeyID != 0:
		level := deployKeyLevel
		l.AccessLevel, l.DeployKeyID = &level, &r.DeployKeyID
	default:
		l.AccessLevel = number(r.Role)
	}
	return l
}
