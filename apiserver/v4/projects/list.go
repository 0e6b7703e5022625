package projects

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/namespace"
	"github.com/forgeplane/forgeplane/apiserver/visible"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/role"
)

type listRequest struct {
	endpoint.Paging
	Search           string                   `param:"search" doc:"Part of a name or path."`
	SearchNamespaces bool                     `param:"search_namespaces" doc:"Whether to search in the full path."`
	Visibility       string                   `param:"visibility" values:"private,internal,public" doc:"Only projects of this visibility."`
	Starred          bool                     `param:"starred" doc:"Only projects that the caller has starred. The list is always empty."`
	Owned            bool                     `param:"owned" doc:"Only projects that the caller owns."`
	Membership       bool                     `param:"membership" doc:"Only projects in which the caller is a member."`
	Archived         endpoint.Optional[bool]  `param:"archived" doc:"Only archived projects, or only others."`
	MinAccessLevel   endpoint.Optional[int]   `param:"min_access_level" values:"10,20,30,40,50" doc:"Only projects in which the caller has at least this role."`
	OrderBy          string                   `param:"order_by" values:"id,name,path,created_at,updated_at,last_activity_at" default:"created_at" doc:"Field that orders the list."`
	Sort             string                   `param:"sort" values:"asc,desc" default:"desc" doc:"Direction of the order."`
	Topic            string                   `param:"topic" doc:"Topics, separated by commas: only projects that have all of them."`
	Statistics       bool                     `param:"statistics" doc:"Whether to show the sizes of projects in which the caller is at least a Reporter."`
	Simple           bool                     `param:"simple" doc:"Whether to show the projects without their settings and state."`
	Pagination       string                   `param:"pagination" values:"legacy,keyset" default:"legacy" doc:"keyset pages by id."`
	Cursor           endpoint.Optional[int64] `param:"cursor" doc:"Where the next page of keyset pagination starts."`
	IDAfter          endpoint.Optional[int64] `param:"id_after" doc:"Only projects with higher ids."`
	IDBefore         endpoint.Optional[int64] `param:"id_before" doc:"Only projects with lower ids."`
}

func (f *Family) list(ctx context.Context, s auth.Instance, r *listRequest) (endpoint.List[Project], error) {
	return f.listed(ctx, s.Subject, r, visible.In{})
}

type inGroupRequest struct {
	listRequest
	IncludeSubgroups bool `param:"include_subgroups" doc:"Whether to include the projects of subgroups."`
	WithShared       bool `param:"with_shared" default:"true" doc:"Whether to include projects that are shared with the group."`
}

func (f *Family) inGroup(ctx context.Context, s auth.Group, r *inGroupRequest) (endpoint.List[Project], error) {
	in := visible.In{Group: s.Scope.Groups[0], Below: r.IncludeSubgroups, Shared: r.WithShared}
	return f.listed(ctx, s.Subject, &r.listRequest, in)
}

type ofUserRequest struct {
	listRequest
	UserID string `param:"user_id" doc:"Id or username of the user."`
}

// ofUser lists the projects in a user's personal namespace. For anonymous callers, users without a public project do not exist.
func (f *Family) ofUser(ctx context.Context, s auth.Instance, r *ofUserRequest) (endpoint.List[Project], error) {
	missing := endpoint.NotFound("User")
	u, err := f.Guard.User(ctx, r.UserID)
	if errors.Is(err, catalog.ErrNotFound) {
		return endpoint.List[Project]{}, missing
	}
	if err != nil {
		return endpoint.List[Project]{}, err
	}
	var all []catalog.Seen
	g, err := namespace.FindPersonal(ctx, f.Catalog, u, f.Home)
	if err == nil {
		all, err = f.search(ctx, s.Caller, &r.listRequest, visible.In{Group: g})
	}
	if catalog.IgnoreNotFound(err) != nil {
		return endpoint.List[Project]{}, err
	}
	if len(all) == 0 && s.Caller.Anonymous() {
		var public []catalog.Seen
		if err == nil { // the filters do not affect whether the user exists
			public, err = f.search(ctx, s.Caller, &listRequest{OrderBy: "id"}, visible.In{Group: g})
		}
		if catalog.IgnoreNotFound(err) != nil {
			return endpoint.List[Project]{}, err
		}
		if len(public) == 0 {
			return endpoint.List[Project]{}, missing
		}
	}
	return f.page(ctx, s.Subject, &r.listRequest, all)
}

// listed lists the projects in a place.
func (f *Family) listed(ctx context.Context, subject auth.Subject, r *listRequest, in visible.In) (endpoint.List[Project], error) {
	all, err := f.search(ctx, subject.Caller, r, in)
	if err != nil {
		return endpoint.List[Project]{}, err
	}
	return f.page(ctx, subject, r, all)
}

// search returns the projects of all pages. They do not follow pushes.
func (f *Family) search(ctx context.Context, caller auth.Caller, r *listRequest, in visible.In) ([]catalog.Seen, error) {
	if r.Pagination == "keyset" && r.OrderBy != "id" {
		refused := endpoint.Parameters("Keyset pagination is not yet available for this type of request")
		refused.Status = http.StatusMethodNotAllowed
		return nil, refused
	}
	// One search serves all pages.
	filter := *r
	filter.Paging, filter.Cursor, filter.Statistics = endpoint.Paging{}, endpoint.Optional[int64]{}, false
	return f.Visible.Find(ctx, caller, in, filter)
}

// page shows the projects of the requested page.
func (f *Family) page(ctx context.Context, subject auth.Subject, r *listRequest, all []catalog.Seen) (endpoint.List[Project], error) {
	if r.OrderBy == "last_activity_at" {
		var err error
		if all, err = f.byActivity(ctx, all, r.Sort == "desc"); err != nil {
			return endpoint.List[Project]{}, err
		}
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
			if now, err := f.Catalog.Current(ctx, s.Project); err == nil {
				s.Project = now
			} else if catalog.IgnoreNotFound(err) != nil {
				return nil, err
			}
			if r.Simple {
				shown[i] = f.simple(s.Scope)
			} else if shown[i], err = f.show(ctx, s.Scope, viewed(subject, auth.AccessOf(subject.Caller, s)).counting(r.Statistics)); err != nil {
				return nil, err
			}
		}
		return shown, nil
	})
}

// byActivity returns projects in the order of their last activity, which the cache does not have.
func (f *Family) byActivity(ctx context.Context, all []catalog.Seen, down bool) ([]catalog.Seen, error) {
	all = slices.Clone(all)
	for i := range all {
		now, err := f.Catalog.Current(ctx, all[i].Project)
		if catalog.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if err == nil {
			all[i].Project = now
		}
	}
	slices.SortFunc(all, func(a, b catalog.Seen) int {
		order := compare("last_activity_at", a.Project, b.Project)
		if down {
			return -order
		}
		return order
	})
	return all, nil
}

// Wants implements visible.Filter.
func (r listRequest) Wants() func(catalog.Seen) bool {
	topics := split(r.Topic)
	return func(s catalog.Seen) bool { return r.wants(s) && tagged(s.Project.Spec.Topics, topics) }
}

// Compare implements visible.Filter.
func (r listRequest) Compare(a, b catalog.Seen) int {
	order := compare(r.OrderBy, a.Project, b.Project)
	if r.Sort == "desc" {
		return -order
	}
	return order
}

// past returns a predicate for the projects behind the cursor, in the order of ids, or nil without a cursor.
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

// wants reports whether a project matches the request.
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
	return !r.Starred && s.Highest() >= least &&
		(r.Visibility == "" || entity.Visibilities[r.Visibility] == catalog.Visibility(p.Spec.Visibility, s.Groups)) &&
		(!r.Archived.Set || r.Archived.Null || r.Archived.Value == p.Spec.Archived) &&
		p.RESTID() > r.IDAfter.Or(0) && (!r.IDBefore.Set || p.RESTID() < r.IDBefore.Value) &&
		strings.Contains(strings.ToLower(where), strings.ToLower(r.Search))
}

// tagged reports whether topics include all requested topics.
func tagged(topics, wanted []string) bool {
	for _, w := range wanted {
		if !slices.ContainsFunc(topics, func(t string) bool { return strings.EqualFold(t, w) }) {
			return false
		}
	}
	return true
}

func compare(by string, a, b *v1alpha1.Project) int {
	order := 0
	switch by {
	case "name":
		order = cmp.Compare(catalog.Title(a.Spec.Name, a.Spec.Path), catalog.Title(b.Spec.Name, b.Spec.Path))
	case "path":
		order = cmp.Compare(a.Spec.Path, b.Spec.Path)
	case "last_activity_at":
		order = a.LastActivity().Compare(b.LastActivity().Time)
	case "created_at", "updated_at":
		order = a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	}
	return cmp.Or(order, cmp.Compare(a.RESTID(), b.RESTID()))
}
