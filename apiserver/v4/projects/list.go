package projects

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/namespace"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/role"
)

type listRequest struct {
	endpoint.Paging
	Search           string                   `param:"search" doc:"Part of a name or path."`
	SearchNamespaces bool                     `param:"search_namespaces" doc:"Whether the search is in the full path."`
	Visibility       string                   `param:"visibility" values:"private,internal,public" doc:"Only projects of this visibility."`
	Owned            bool                     `param:"owned" doc:"Only projects that the caller owns."`
	Membership       bool                     `param:"membership" doc:"Only projects in which the caller is a member."`
	Archived         endpoint.Optional[bool]  `param:"archived" doc:"Only projects that are archived, or only others."`
	MinAccessLevel   endpoint.Optional[int]   `param:"min_access_level" values:"10,20,30,40,50" doc:"Only projects in which the caller has at least this role."`
	OrderBy          string                   `param:"order_by" values:"id,name,path,created_at,updated_at,last_activity_at" default:"created_at" doc:"What the list is in order of."`
	Sort             string                   `param:"sort" values:"asc,desc" default:"desc" doc:"Whether the order goes up or down."`
	Simple           bool                     `param:"simple" doc:"Whether less is shown."`
	Pagination       string                   `param:"pagination" values:"legacy,keyset" default:"legacy" doc:"keyset pages by id."`
	Cursor           endpoint.Optional[int64] `param:"cursor" doc:"Where the next page of keyset pagination starts."`
	IDAfter          endpoint.Optional[int64] `param:"id_after" doc:"Only projects with higher ids."`
	IDBefore         endpoint.Optional[int64] `param:"id_before" doc:"Only projects with lower ids."`
}

func (f *Family) list(ctx context.Context, r *listRequest) (endpoint.List[Project], error) {
	return f.listed(ctx, r, func(catalog.Seen) bool { return true })
}

type inGroupRequest struct {
	listRequest
	ID               string `param:"id" doc:"Id or full path of the group."`
	IncludeSubgroups bool   `param:"include_subgroups" doc:"Whether the projects of the groups below count."`
}

func (f *Family) inGroup(ctx context.Context, r *inGroupRequest) (endpoint.List[Project], error) {
	group := auth.From(ctx).Scope.Groups[0].UID
	return f.listed(ctx, &r.listRequest, func(s catalog.Seen) bool {
		at := slices.IndexFunc(s.Groups, func(g *v1alpha1.Group) bool { return g.UID == group })
		return at == 0 || at > 0 && r.IncludeSubgroups
	})
}

func (f *Family) listed(ctx context.Context, r *listRequest, in func(catalog.Seen) bool) (endpoint.List[Project], error) {
	caller := auth.From(ctx).Caller
	if r.Pagination == "keyset" && r.OrderBy != "id" {
		return endpoint.List[Project]{}, &endpoint.Error{
			Status: 405, Body: map[string]string{"error": "Keyset pagination is not yet available for this type of request"},
		}
	}
	all, err := f.catalog.Tree(caller.User, f.clock.Now()).Projects(ctx)
	if err != nil {
		return endpoint.List[Project]{}, err
	}
	all = slices.DeleteFunc(all, func(s catalog.Seen) bool {
		return !in(s) || !auth.AccessOf(caller, s).Sees() || !r.wants(s)
	})
	slices.SortFunc(all, func(a, b catalog.Seen) int {
		order := compare(r.OrderBy, a.Project, b.Project)
		if r.Sort == "desc" {
			return -order
		}
		return order
	})
	show := func(s catalog.Seen) Project { return f.show(s.Scope, viewed(caller, auth.AccessOf(caller, s))) }
	if r.Pagination == "keyset" {
		key := func(s catalog.Seen) string { return strconv.FormatInt(s.Project.Spec.ID, 10) }
		return endpoint.Keyset(r.Paging, all, r.past(), key, show), nil
	}
	return endpoint.Page(r.Paging, all, show), nil
}

// past tells which projects come after the cursor, in the order of ids; nil without one.
func (r *listRequest) past() func(catalog.Seen) bool {
	cursor, sent := r.Cursor.Value, r.Cursor.Set && !r.Cursor.Null
	switch {
	case !sent:
		return nil
	case r.Sort == "desc":
		return func(s catalog.Seen) bool { return s.Project.Spec.ID < cursor }
	default:
		return func(s catalog.Seen) bool { return s.Project.Spec.ID > cursor }
	}
}

// wants reports whether the request asks for a project.
func (r *listRequest) wants(s catalog.Seen) bool {
	p := s.Project
	least := role.Role(r.MinAccessLevel.Or(0))
	if r.Owned {
		least = role.Owner
	}
	if r.Membership {
		least = max(least, role.Guest)
	}
	where := catalog.Title(p.Spec.Name, p.Spec.Path) + "\n" + p.Spec.Path
	if r.SearchNamespaces {
		where += "\n" + s.Path()
	}
	return s.Role >= least &&
		(r.Visibility == "" || namespace.Visibilities[r.Visibility] == catalog.Visibility(p.Spec.Visibility, s.Groups)) &&
		(!r.Archived.Set || r.Archived.Null || r.Archived.Value == p.Spec.Archived) &&
		p.Spec.ID > r.IDAfter.Or(0) && (!r.IDBefore.Set || p.Spec.ID < r.IDBefore.Value) &&
		strings.Contains(strings.ToLower(where), strings.ToLower(r.Search))
}

func compare(by string, a, b *v1alpha1.Project) int {
	order := 0
	switch by {
	case "name":
		order = cmp.Compare(catalog.Title(a.Spec.Name, a.Spec.Path), catalog.Title(b.Spec.Name, b.Spec.Path))
	case "path":
		order = cmp.Compare(a.Spec.Path, b.Spec.Path)
	case "created_at", "updated_at", "last_activity_at":
		order = a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	}
	return cmp.Or(order, cmp.Compare(a.Spec.ID, b.Spec.ID))
}
