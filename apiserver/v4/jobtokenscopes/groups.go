package jobtokenscopes

import (
	"context"
	"errors"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/jobtoken"
)

// AllowedGroup is a group in the allowlist. Callers who cannot see the group get only its id.
type AllowedGroup struct {
	ID       int64  `json:"id"`
	Name     string `json:"name"`
	FullPath string `json:"full_path"`
	WebURL   string `json:"web_url"`
}

// GroupAddition is the result of the addition of a group.
type GroupAddition struct {
	SourceProjectID int64 `json:"source_project_id" doc:"The project that owns the list."`
	TargetGroupID   int64 `json:"target_group_id" doc:"The group that was added."`
}

// listGroups omits unresolved entries and duplicates.
func (f *Family) listGroups(ctx context.Context, subject auth.Project, r *listRequest) (none endpoint.List[AllowedGroup], err error) {
	declared, err := jobtoken.ScopeOf(ctx, f.Catalog, subject.Scope)
	if err != nil {
		return none, err
	}
	var all []catalog.Scope
	if declared != nil {
		listed := map[types.UID]bool{}
		for _, e := range declared.Spec.GroupAllowlist {
			allowed, err := jobtoken.AllowedGroup(ctx, f.Catalog, declared, e)
			switch {
			case errors.Is(err, catalog.ErrNotFound):
			case err != nil:
				return none, err
			case !listed[allowed.Groups[0].UID]:
				listed[allowed.Groups[0].UID] = true
				all = append(all, allowed)
			}
		}
	}
	var failed error
	page := endpoint.Page(r.Paging, all, func(s catalog.Scope) AllowedGroup {
		access, err := f.Guard.Access(ctx, subject.Caller, s)
		failed = errors.Join(failed, err)
		if !subject.Has(access, auth.ReadGroup) {
			return AllowedGroup{ID: s.Groups[0].RESTID()}
		}
		n := entity.ShowNamespace(s.Groups, f.WebURL)
		return AllowedGroup{ID: n.ID, Name: n.Name, FullPath: n.FullPath, WebURL: n.WebURL}
	})
	return page, failed
}

type addGroupRequest struct {
	TargetGroupID int64 `param:"target_group_id" required:"" blank:"refuse" doc:"Id of the group whose projects' job tokens are let in."`
}

func (f *Family) addGroup(ctx context.Context, s auth.Project, r *addGroupRequest) (GroupAddition, error) {
	target, seen, err := f.group(ctx, s, r.TargetGroupID)
	if errors.Is(err, catalog.ErrNotFound) {
		return GroupAddition{}, endpoint.NotFound("target_group_id not found")
	}
	if err != nil {
		return GroupAddition{}, err
	}
	if !seen {
		return GroupAddition{}, endpoint.BadRequest("The target_group that you are attempting to access does not exist or you don't have permission to perform this action")
	}
	err = f.change(ctx, s, func(declared *v1alpha1.JobTokenScope) error {
		there, err := jobtoken.AllowsGroup(ctx, f.Catalog, declared, target)
		switch {
		case err != nil:
			return err
		case there:
			return endpoint.BadRequest("This group is already in the job token allowlist.")
		}
		if len(declared.Spec.GroupAllowlist) >= maxEntries {
			declared.Spec.GroupAllowlist, err = makeRoom(declared.Spec.GroupAllowlist, func(e v1alpha1.GroupAllowlistEntry) (v1alpha1.Reference, error) {
				_, err := f.Catalog.AnyGroup(ctx, declared.Namespace, e.GroupRef)
				return e.GroupRef, err
			})
			if err != nil {
				return err
			}
		}
		if len(declared.Spec.GroupAllowlist) >= maxEntries {
			return endpoint.BadRequest("The job token scope has " + strconv.Itoa(maxEntries) + " groups, and cannot have more")
		}
		declared.Spec.GroupAllowlist = append(declared.Spec.GroupAllowlist, v1alpha1.GroupAllowlistEntry{GroupRef: catalog.Refer(target)})
		return nil
	})
	return GroupAddition{SourceProjectID: s.Scope.Project.RESTID(), TargetGroupID: r.TargetGroupID}, err
}

type removeGroupRequest struct {
	TargetGroupID int64 `param:"target_group_id" doc:"Id of the group whose projects' job tokens are let in no longer."`
}

// removeGroup removes the entries that resolve to the group, and unresolved entries with its id.
func (f *Family) removeGroup(ctx context.Context, s auth.Project, r *removeGroupRequest) (none endpoint.None, err error) {
	target, seen, err := f.group(ctx, s, r.TargetGroupID)
	if catalog.IgnoreNotFound(err) != nil {
		return none, err
	}
	var missing error = endpoint.NotFound("Group")
	if seen {
		missing = endpoint.BadRequest("Target group is not in the job token scope")
	}
	declared, err := jobtoken.ScopeOf(ctx, f.Catalog, s.Scope)
	if err != nil {
		return none, err
	}
	if declared == nil {
		return none, missing
	}
	remove := func(declared *v1alpha1.JobTokenScope) error {
		left, err := f.withoutGroup(ctx, declared, r.TargetGroupID, target)
		if err == nil && len(left) == len(declared.Spec.GroupAllowlist) {
			err = missing
		}
		declared.Spec.GroupAllowlist = left
		return err
	}
	if err := remove(declared.DeepCopy()); err != nil {
		return none, err
	}
	return none, f.change(ctx, s, remove)
}

// withoutGroup returns the list without the entries of an id and those that resolve to its group, which is nil if the id is unknown.
func (f *Family) withoutGroup(
	ctx context.Context, declared *v1alpha1.JobTokenScope, id int64, g *v1alpha1.Group,
) (left []v1alpha1.GroupAllowlistEntry, err error) {
	for _, e := range declared.Spec.GroupAllowlist {
		if id != 0 && e.GroupRef.ID == id {
			continue
		}
		allowed, err := jobtoken.AllowedGroup(ctx, f.Catalog, declared, e)
		if catalog.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if err == nil && g != nil && allowed.Groups[0].UID == g.UID {
			continue
		}
		left = append(left, e)
	}
	return left, nil
}

// group returns the group that an entry with the id resolves to, or catalog.ErrNotFound, and whether the caller can see it.
func (f *Family) group(ctx context.Context, s auth.Project, id int64) (g *v1alpha1.Group, seen bool, err error) {
	scope, err := f.Catalog.Foreign(ctx, "", v1alpha1.Reference{ID: id}, nil)
	if err != nil {
		return nil, false, err
	}
	access, err := f.Guard.Access(ctx, s.Caller, scope)
	return scope.Groups[0], err == nil && s.Has(access, auth.ReadGroup), err
}
