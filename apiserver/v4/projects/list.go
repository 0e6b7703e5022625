package projects

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/namespace"
	"github.com/forgeplane/forgeplane/apiserver/store"
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
	OrderBy          string                   `param:"order_by" values:"id,name,path,created_at,updated_at,last_activity_at" default:"created_at" doc:"Field that orders the list."`
	Sort             string                   `param:"sort" values:"asc,desc" default:"desc" doc:"Whether the order goes up or down."`
	Simple           bool                     `param:"simple" doc:"Whether the projects are shown without their settings and state."`
	Pagination       string                   `param:"pagination" values:"legacy,keyset" default:"legacy" doc:"keyset pages by id."`
	Cursor           endpoint.Optional[int64] `param:"cursor" doc:"Where the next page of keyset pagination starts."`
	IDAfter          endpoint.Optional[int64] `param:"id_after" doc:"Only projects with higher ids."`
	IDBefore         endpoint.Optional[int64] `param:"id_before" doc:"Only projects with lower ids."`
}

func (f *Family) list(ctx context.Context, s auth.Instance, r *listRequest) (endpoint.List[Project], error) {
	return f.listed(ctx, s.Subject, r, question{})
}

type inGroupRequest struct {
	listRequest
	IncludeSubgroups bool `param:"include_subgroups" doc:"Whether the projects of the groups below count."`
}

func (f *Family) inGroup(ctx context.Context, s auth.Group, r *inGroupRequest) (endpoint.List[Project], error) {
	return f.listed(ctx, s.Subject, &r.listRequest, question{group: s.Scope.Groups[0].UID, below: r.IncludeSubgroups})
}

// question is one for a list: who asks for which projects, in which order.
type question struct {
	user  types.UID
	admin bool
	// group is the one that the projects are in, or below; any when it is empty.
	group types.UID
	below bool
	// request is the request without the parameters that select the page.
	request listRequest
}

// in reports whether a project is in the group.
func (q question) in(s catalog.Seen) bool {
	if q.group == "" {
		return true
	}
	at := slices.IndexFunc(s.Groups, func(g *v1alpha1.Group) bool { return g.UID == q.group })
	return at == 0 || at > 0 && q.below
}

func (f *Family) listed(ctx context.Context, subject auth.Subject, r *listRequest, q question) (endpoint.List[Project], error) {
	caller := subject.Caller
	if r.Pagination == "keyset" && r.OrderBy != "id" {
		refused := endpoint.Parameters("Keyset pagination is not yet available for this type of request")
		refused.Status = http.StatusMethodNotAllowed
		return endpoint.List[Project]{}, refused
	}
	if q.admin = caller.Admin; caller.User != nil {
		q.user = caller.User.UID
	}
	q.request = *r
	q.request.Paging, q.request.Cursor = endpoint.Paging{}, endpoint.Optional[int64]{}
	now := f.clock.Now()
	all, err := f.lists.Recall(q, now, func(c *catalog.Catalog) ([]catalog.Seen, time.Time, error) {
		return find(ctx, c, caller, q, now)
	})
	if err != nil {
		return endpoint.List[Project]{}, err
	}
	same := func(s catalog.Seen) catalog.Seen { return s }
	page := endpoint.Page(r.Paging, all, same)
	if r.Pagination == "keyset" {
		key := func(s catalog.Seen) string { return strconv.FormatInt(s.Project.RESTID(), 10) }
		page = endpoint.Keyset(r.Paging, all, r.past(), key, same)
	}
	return endpoint.Each(page, func(rows []catalog.Seen) (shown []Project, err error) {
		shown = make([]Project, len(rows))
		for i, s := range rows {
			// The remembered state does not follow pushes.
			if now, err := f.catalog.Current(ctx, s.Project); err == nil {
				s.Project = now
			} else if catalog.IgnoreNotFound(err) != nil {
				return nil, err
			}
			if r.Simple {
				shown[i] = f.simple(s.Scope)
			} else if shown[i], err = f.show(ctx, s.Scope, viewed(subject, auth.AccessOf(caller, s))); err != nil {
				return nil, err
			}
		}
		return shown, nil
	})
}

// find returns the answer to a question, and until when it is true.
func find(ctx context.Context, c *catalog.Catalog, caller auth.Caller, q question, now time.Time) ([]catalog.Seen, time.Time, error) {
	tree := c.Tree(caller.User, now)
	all, err := tree.Projects(ctx)
	if err != nil {
		return nil, time.Time{}, err
	}
	all = store.Known(all, func(s catalog.Seen) bool { return q.in(s) && auth.AccessOf(caller, s).Sees() && q.request.wants(s) })
	slices.SortFunc(all, func(a, b catalog.Seen) int {
		order := compare(q.request.OrderBy, a.Project, b.Project)
		if q.request.Sort == "desc" {
			return -order
		}
		return order
	})
	return all, tree.Until(), nil
}

// past tells which projects come after the cursor, in the order of ids; nil without one.
func (r *listRequest) past() func(catalog.Seen) bool {
	cursor, sent := r.Cursor.Value, r.Cursor.Set && !r.Cursor.Null
	switch {
	case !sent:
		return nil
	case r.Sort == "desc":
		return func(s catalog.Seen) bool { return s.Project.RESTID() < cursor }
	default:
		return func(s catalog.Seen) bool { return s.Project.RESTID() > cursor }
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
	return s.Highest() >= least &&
		(r.Visibility == "" || namespace.Visibilities[r.Visibility] == catalog.Visibility(p.Spec.Visibility, s.Groups)) &&
		(!r.Archived.Set || r.Archived.Null || r.Archived.Value == p.Spec.Archived) &&
		p.RESTID() > r.IDAfter.Or(0) && (!r.IDBefore.Set || p.RESTID() < r.IDBefore.Value) &&
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
	return cmp.Or(order, cmp.Compare(a.RESTID(), b.RESTID()))
}
