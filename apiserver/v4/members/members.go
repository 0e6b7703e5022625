// Package members is the family of the members of projects and groups.
package members

import (
	"context"
	"slices"
	"strings"

	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// +kubebuilder:rbac:groups=forgeplane.dev,resources=memberships,verbs=get;create;patch;delete,roleName=forgeplane-apiserver

// Family serves the members of projects and groups.
type Family struct {
	catalog *catalog.Catalog
	// memberships are those in the project or group itself, by the user: inherited ones are changed where they are declared.
	memberships *store.Store[*v1alpha1.User, *v1alpha1.Membership]
	clock       clock.PassiveClock
	webURL      string
}

// New returns the family; webURL is the address of the installation, without a slash at its end.
func New(cat *catalog.Catalog, w store.Writer, clk clock.PassiveClock, webURL string) *Family {
	f := &Family{catalog: cat, clock: clk, webURL: webURL}
	f.memberships = store.New(w, f.changeable)
	return f
}

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	projects := table[auth.Project](f, "/projects/{id}/members", "a project", auth.ReadProjectMembers, auth.WriteProjectMembers)
	groups := table[auth.Group](f, "/groups/{id}/members", "a group", auth.ReadGroupMembers, auth.WriteGroupMembers)
	// Members can leave, whatever their role is.
	return slices.Concat(
		projects, endpoint.Table{endpoint.Delete("/projects/{id}/members/{user_id}", f.removeFromProject).Found(f.find).
			Needs(auth.WriteProjectMembers).Or(auth.Own).Conditional().Doc("Remove a member from a project.")},
		groups, endpoint.Table{endpoint.Delete("/groups/{id}/members/{user_id}", f.removeFromGroup).Found(f.find).
			Needs(auth.WriteGroupMembers).Or(auth.Own).Conditional().Doc("Remove a member from a group.")},
	)
}

func table[S auth.Form](f *Family, path, of string, read, write endpoint.Ability) endpoint.Table {
	return endpoint.Table{
		endpoint.Get(path, auth.On[S](f.list)).Needs(read).Anonymous(endpoint.Served).
			Doc("List the members of " + of + " itself."),
		endpoint.Get(path+"/all", auth.On[S](f.listAll)).Needs(read).Anonymous(endpoint.Served).
			Doc("List the members of " + of + ", inherited ones included."),
		endpoint.Get(path+"/{user_id}", auth.On[S](f.get)).Needs(read).Anonymous(endpoint.Served).
			Doc("Get a member of " + of + " itself."),
		endpoint.Get(path+"/all/{user_id}", auth.On[S](f.getAll)).Needs(read).Anonymous(endpoint.Served).
			Doc("Get a member of " + of + ", direct or inherited."),
		endpoint.Post(path, auth.On[S](f.add)).Needs(write).
			Doc("Add a member to " + of + "."),
		endpoint.Put(path+"/{user_id}", auth.On[S](f.update)).Needs(write).
			Doc("Change the role of a member of " + of + "."),
	}
}

type listRequest struct {
	endpoint.Paging
	Query   string  `param:"query" doc:"Part of a name or username."`
	UserIDs []int64 `param:"user_ids" comma:"" doc:"Only these users."`
}

func (f *Family) list(ctx context.Context, s auth.Subject, r *listRequest) (endpoint.List[Member], error) {
	all, err := f.catalog.MembersOf(ctx, s.Scope, f.clock.Now())
	return f.page(r, all), err
}

func (f *Family) listAll(ctx context.Context, s auth.Subject, r *listRequest) (endpoint.List[Member], error) {
	all, err := f.catalog.AllMembersOf(ctx, s.Scope, f.clock.Now())
	return f.page(r, all), err
}

func (f *Family) page(r *listRequest, all []catalog.Member) endpoint.List[Member] {
	query := strings.ToLower(r.Query)
	all = store.Known(all, func(m catalog.Member) bool {
		u := m.User.Spec
		return (len(r.UserIDs) == 0 || slices.Contains(r.UserIDs, m.RESTID())) &&
			(strings.Contains(strings.ToLower(u.Username), query) || strings.Contains(strings.ToLower(u.Name), query))
	})
	return endpoint.Page(r.Paging, all, f.show)
}

type memberRequest struct {
	UserID int64 `param:"user_id" doc:"Id of the user."`
}

func (f *Family) get(ctx context.Context, s auth.Subject, r *memberRequest) (Member, error) {
	all, err := f.catalog.MembersOf(ctx, s.Scope, f.clock.Now())
	return f.pick(all, r.UserID, err)
}

func (f *Family) getAll(ctx context.Context, s auth.Subject, r *memberRequest) (Member, error) {
	all, err := f.catalog.AllMembersOf(ctx, s.Scope, f.clock.Now())
	return f.pick(all, r.UserID, err)
}

func (f *Family) pick(all []catalog.Member, userID int64, err error) (Member, error) {
	if err != nil {
		return Member{}, err
	}
	m, ok := find(all, userID)
	if !ok {
		return Member{}, endpoint.NotFound("")
	}
	return f.show(m), nil
}

func find(all []catalog.Member, userID int64) (catalog.Member, bool) {
	i := slices.IndexFunc(all, func(m catalog.Member) bool { return m.RESTID() == userID })
	if i < 0 {
		return catalog.Member{}, false
	}
	return all[i], true
}
