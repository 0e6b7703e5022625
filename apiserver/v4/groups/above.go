package groups

import (
	"context"
	"slices"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/namespace"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

type aboveRequest struct {
	endpoint.Paging
	Search     string  `param:"search" doc:"Part of a name or path."`
	SkipGroups []int64 `param:"skip_groups" comma:"" doc:"Ids of groups that are left out."`
}

// above lists the groups above a project that the caller can see, because members of a project cannot always see its groups. The personal
// namespace of a user is not a group.
func (f *Family) above(ctx context.Context, s auth.Project, r *aboveRequest) (endpoint.List[entity.GroupPlace], error) {
	var all []catalog.Scope
	for i, g := range s.Scope.Groups {
		at := catalog.Scope{Groups: s.Scope.Groups[i:]}
		if namespace.Personal(g) || slices.Contains(r.SkipGroups, g.RESTID()) || !found(g, r.Search) {
			continue
		}
		access, err := f.Guard.Access(ctx, s.Caller, at)
		if err != nil {
			return endpoint.List[entity.GroupPlace]{}, err
		}
		if s.Has(access, auth.ReadGroup) {
			all = append(all, at)
		}
	}
	slices.SortFunc(all, func(a, b catalog.Scope) int { return compare("id", b.Groups[0], a.Groups[0]) })
	return endpoint.Page(r.Paging, all, func(at catalog.Scope) entity.GroupPlace { return entity.ShowGroupPlace(at.Groups, f.WebURL) }), nil
}
