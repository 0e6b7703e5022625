package groups

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/namespace"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/role"
)

type listRequest struct {
	endpoint.Paging
	Search         string                  `param:"search" doc:"Part of a name or path."`
	Visibility     string                  `param:"visibility" values:"private,internal,public" doc:"Only groups of this visibility."`
	Owned          bool                    `param:"owned" doc:"Only groups that the caller owns."`
	MinAccessLevel endpoint.Optional[int]  `param:"min_access_level" values:"10,20,30,40,50" doc:"Only groups in which the caller has at least this role."`
	AllAvailable   endpoint.Optional[bool] `param:"all_available" doc:"Whether to include groups that the signed-in caller is not a member of; by default only for administrators and auditors."`
	SkipGroups     []int64                 `param:"skip_groups" comma:"" doc:"Ids of groups that are left out."`
	TopLevelOnly   bool                    `param:"top_level_only" doc:"Only root groups."`
	OrderBy        string                  `param:"order_by" values:"name,path,id" default:"name" doc:"Field that orders the list."`
	Sort           string                  `param:"sort" values:"asc,desc" default:"asc" doc:"Whether the order goes up or down."`
	Pagination     string                  `param:"pagination" values:"legacy,keyset" default:"legacy" doc:"keyset pages by position."`
	Cursor         string                  `param:"cursor" doc:"Where the next page of keyset pagination starts."`
}

func (f *Family) list(ctx context.Context, subject auth.Instance, r *listRequest) (endpoint.List[Group], error) {
	return f.listed(ctx, subject.Subject, r, func(s catalog.Seen) bool { return !r.TopLevelOnly || len(s.Groups) == 1 })
}

type subgroupsRequest struct {
	listRequest
}

func (f *Family) subgroups(ctx context.Context, subject auth.Group, r *subgroupsRequest) (endpoint.List[Group], error) {
	parent := subject.Scope.Groups[0].UID
	return f.listed(ctx, subject.Subject, &r.listRequest, func(s catalog.Seen) bool { return len(s.Groups) > 1 && s.Groups[1].UID == parent })
}

type descendantsRequest struct {
	listRequest
}

func (f *Family) descendants(ctx context.Context, subject auth.Group, r *descendantsRequest) (endpoint.List[Group], error) {
	top := subject.Scope.Groups[0].UID
	return f.listed(ctx, subject.Subject, &r.listRequest, func(s catalog.Seen) bool {
		return slices.ContainsFunc(s.Groups[1:], func(g *v1alpha1.Group) bool { return g.UID == top })
	})
}

// listed returns the requested page of groups that the caller can see and that match the request.
func (f *Family) listed(ctx context.Context, subject auth.Subject, r *listRequest, in func(catalog.Seen) bool) (endpoint.List[Group], error) {
	all, err := f.visible(ctx, subject)
	if err != nil {
		return endpoint.List[Group]{}, err
	}
	least, skipped := r.least(subject.Caller), sets.New(r.SkipGroups...)
	all = slices.DeleteFunc(all, func(s catalog.Seen) bool {
		g := s.Groups[0]
		return namespace.Personal(g) || !in(s) || s.Highest() < least || skipped.Has(g.RESTID()) ||
			r.Visibility != "" && entity.Visibilities[r.Visibility] != catalog.Visibility(g.Spec.Visibility, s.Groups) ||
			!found(g, r.Search)
	})
	slices.SortFunc(all, func(a, b catalog.Seen) int {
		order := compare(r.OrderBy, a.Groups[0], b.Groups[0])
		if r.Sort == "desc" {
			return -order
		}
		return order
	})
	show := func(s catalog.Seen) Group { return f.show(s.Scope) }
	if r.Pagination != "keyset" {
		return endpoint.Page(r.Paging, all, show), nil
	}
	past, err := r.past()
	if err != nil {
		return endpoint.List[Group]{}, err
	}
	return endpoint.Keyset(r.Paging, all, past, func(s catalog.Seen) string { return positionOf(r.OrderBy, s.Groups[0]).cursor() }, show), nil
}

// least returns the minimum role of the caller in the groups.
func (r *listRequest) least(c auth.Caller) role.Role {
	least := role.Role(r.MinAccessLevel.Or(0))
	switch {
	case r.Owned:
		return role.Owner
	case !c.Anonymous() && !r.AllAvailable.Or(c.Admin || c.Auditor()):
		return max(least, role.Guest)
	default:
		return least
	}
}

// visible returns the groups that the caller sees.
func (f *Family) visible(ctx context.Context, subject auth.Subject) ([]catalog.Seen, error) {
	caller := subject.Caller
	all, err := caller.View(f.Catalog, f.Clock.Now()).Groups(ctx)
	if err != nil {
		return nil, err
	}
	return store.Visible(all, func(s catalog.Seen) bool { return auth.AccessOf(caller, s).Sees() }), nil
}

// found reports whether a search finds a group by its name or path, in upper or lower case.
func found(g *v1alpha1.Group, search string) bool {
	where := catalog.Title(g.Spec.Name, g.Spec.Path) + "\n" + g.Spec.Path
	return strings.Contains(strings.ToLower(where), strings.ToLower(search))
}

func compare(by string, a, b *v1alpha1.Group) int {
	return positionOf(by, a).compare(positionOf(by, b))
}
