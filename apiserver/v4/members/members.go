// Package members is the family of the members of projects and groups.
package members

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/bottoken"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// +kubebuilder:rbac:groups=forgeplane.dev,resources=memberships,verbs=get;create;patch;delete,roleName=forgeplane-apiserver

// Family serves the members of projects and groups.
type Family struct {
	family.Kit
	// memberships are the memberships in the project or group itself, by user. Inherited memberships are changed where they are declared.
	memberships *store.Store[*v1alpha1.User, *v1alpha1.Membership]
}

// New returns the family.
func New(k family.Kit) *Family {
	f := &Family{Kit: k}
	f.memberships = store.New(k.Writer, f.changeable)
	return f
}

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	projects := table[auth.Project](f, "/projects/{id}/members", "a project", auth.ReadProjectMembers, auth.WriteProjectMembers)
	groups := table[auth.Group](f, "/groups/{id}/members", "a group", auth.ReadGroupMembers, auth.WriteGroupMembers)
	// Members with any role can leave.
	return slices.Concat(
		projects, endpoint.Table{endpoint.Delete("/projects/{id}/members/{user_id}", auth.OnRecord[auth.ProjectRecord[whom]](f.remove)).Found(f.find).
			Needs(auth.WriteProjectMembers).Or(auth.Own).Conditional().Doc("Delete a member of a project.")},
		groups, endpoint.Table{endpoint.Delete("/groups/{id}/members/{user_id}", auth.OnRecord[auth.GroupRecord[whom]](f.remove)).Found(f.find).
			Needs(auth.WriteGroupMembers).Or(auth.Own).Conditional().Doc("Delete a member of a group.")},
	)
}

func table[S auth.Form](f *Family, path, of string, read, write endpoint.Ability) endpoint.Table {
	return endpoint.Table{
		endpoint.Get(path, auth.On[S](f.list)).Needs(read).Anonymous(endpoint.Served).
			Doc("List the members of " + of + " itself."),
		endpoint.Get(path+"/all", auth.On[S](f.listAll)).Needs(read).Anonymous(endpoint.Served).
			Doc("List the members of " + of + ", including inherited ones and those of groups that it is shared with."),
		endpoint.Get(path+"/{user_id}", auth.On[S](f.get)).Needs(read).Anonymous(endpoint.Served).
			Doc("Get a member of " + of + " itself."),
		endpoint.Get(path+"/all/{user_id}", auth.On[S](f.getAll)).Needs(read).Anonymous(endpoint.Served).
			Doc("Get a member of " + of + ", direct, inherited or of a group that it is shared with."),
		endpoint.Post(path, auth.On[S](f.add)).Needs(write).
			Doc("Create a member of " + of + "."),
		endpoint.Put(path+"/{user_id}", auth.On[S](f.update)).Needs(write).
			Doc("Update the role of a member of " + of + "."),
	}
}

type listRequest struct {
	endpoint.Paging
	Query   string  `param:"query" doc:"Part of a name or username."`
	UserIDs []int64 `param:"user_ids" comma:"" doc:"Only these users."`
}

func (f *Family) list(ctx context.Context, s auth.Subject, r *listRequest) (endpoint.List[Member], error) {
	all, err := f.direct(ctx, s)
	return f.page(r, all), err
}

func (f *Family) listAll(ctx context.Context, s auth.Subject, r *listRequest) (endpoint.List[Member], error) {
	all, err := f.all(ctx, s)
	return f.page(r, all), err
}

func (f *Family) page(r *listRequest, all []catalog.Member) endpoint.List[Member] {
	query := strings.ToLower(r.Query)
	all = store.Visible(all, func(m catalog.Member) bool {
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
	all, err := f.direct(ctx, s)
	return f.pick(all, r.UserID, err)
}

func (f *Family) getAll(ctx context.Context, s auth.Subject, r *memberRequest) (Member, error) {
	all, err := f.all(ctx, s)
	return f.pick(all, r.UserID, err)
}

// direct returns the members of the project or group itself, with its bots.
func (f *Family) direct(ctx context.Context, s auth.Subject) ([]catalog.Member, error) {
	members, err := f.Catalog.MembersOf(ctx, s.Scope, f.Clock.Now())
	if err != nil {
		return nil, err
	}
	bots, err := f.bots(ctx, s.Scope)
	return append(members, bots...), err
}

// bots returns the bots of a project or group itself as its members, sorted by id. They have no Membership, so this family can neither
// update nor delete them.
func (f *Family) bots(ctx context.Context, s catalog.Scope) ([]catalog.Member, error) {
	bots, err := bottoken.In(ctx, f.Catalog, s, f.Clock.Now())
	members := make([]catalog.Member, len(bots))
	for i, b := range bots {
		members[i] = catalog.Member{User: b.User, Membership: &v1alpha1.Membership{
			ObjectMeta: metav1.ObjectMeta{CreationTimestamp: b.Token.CreationTimestamp},
			Spec:       v1alpha1.MembershipSpec{Role: b.Token.Spec.Role, ExpiresAt: b.Token.Spec.ExpiresAt},
		}}
	}
	return members, err
}

// all returns the direct and inherited members, the bots, and the members of groups that the project or group is shared with. It omits
// groups that the caller cannot see.
func (f *Family) all(ctx context.Context, s auth.Subject) ([]catalog.Member, error) {
	now := f.Clock.Now()
	members, err := f.Catalog.AllMembersOf(ctx, s.Scope, now)
	if err != nil {
		return nil, err
	}
	shared, err := f.Catalog.SharedMembersOf(ctx, s.Scope, now, func(with catalog.Shared) (bool, error) {
		access, err := f.Guard.Access(ctx, s.Caller, with.With)
		return access.Sees(), err
	})
	if err != nil {
		return nil, err
	}
	all := catalog.HighestOf(members, shared)
	for in, more := s.Scope, true; more; in, more = in.Above() {
		bots, err := f.bots(ctx, in)
		if err != nil {
			return nil, err
		}
		all = append(all, bots...)
	}
	return store.InOrder(all), nil
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
