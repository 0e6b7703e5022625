package members

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/role"
)

type addRequest struct {
	AccessLevel int                          `param:"access_level" required:"" example:"30" doc:"10 Guest, 20 Reporter, 30 Developer, 40 Maintainer, 50 Owner."`
	UserID      endpoint.Optional[[]int64]   `param:"user_id" comma:"" example:"7" doc:"Id of the user, or a list of ids; either this or username."`
	Username    endpoint.Optional[[]string]  `param:"username" comma:"" doc:"Username of the user, or a list of usernames."`
	ExpiresAt   endpoint.Optional[time.Time] `param:"expires_at" doc:"Day on which the membership ends."`
}

// Added is the new member, or the result for several members.
type Added struct {
	*Member
	*Outcome
}

// Outcome is the result of adding several members.
type Outcome struct {
	Status  string            `json:"status" doc:"success or error."`
	Message map[string]string `json:"message,omitempty" doc:"Why some were not added, by username."`
}

// maxAdded is the maximum number of members in a request.
const maxAdded = 100

// add adds one member, or several. A failure for one of several does not affect the others.
func (f *Family) add(ctx context.Context, s auth.Subject, r *addRequest) (Added, error) {
	named, err := r.users()
	if err != nil {
		return Added{}, err
	}
	if len(named) == 1 {
		m, err := f.addOne(ctx, s, r, named[0])
		return Added{Member: &m}, err
	}
	failed := map[string]string{}
	var first error
	for _, u := range named {
		_, err := f.addOne(ctx, s, r, u)
		var refused *endpoint.Error
		switch {
		case errors.As(err, &refused):
			failed[f.label(ctx, u)] = refused.Text()
			first = cmp.Or(first, err)
		case err != nil:
			return Added{}, err
		}
	}
	switch len(failed) {
	case 0:
		return Added{Outcome: &Outcome{Status: "success"}}, nil
	case len(named):
		return Added{}, first
	default:
		return Added{Outcome: &Outcome{Status: "error", Message: failed}}, nil
	}
}

// users returns the users that a request names.
func (r *addRequest) users() ([]v1alpha1.Reference, error) {
	ids, usernames := r.UserID.Value, r.Username.Value
	var all []v1alpha1.Reference
	switch {
	case len(ids) > 0 && len(usernames) > 0:
		return nil, endpoint.Parameters("user_id, username are mutually exclusive")
	case !r.UserID.Set && !r.Username.Set:
		return nil, endpoint.Parameters("user_id, username are missing, at least one parameter must be provided")
	case len(ids)+len(usernames) == 0:
		return nil, endpoint.NotFound("User")
	case len(ids)+len(usernames) > maxAdded:
		return nil, endpoint.BadRequest(fmt.Sprintf("Too many users specified (limit is %d)", maxAdded))
	}
	for _, id := range ids {
		all = append(all, v1alpha1.Reference{ID: id})
	}
	for _, name := range usernames {
		all = append(all, v1alpha1.Reference{Path: name})
	}
	return all, nil
}

// label returns the username of a user, or the reference if there is no such user.
func (f *Family) label(ctx context.Context, ref v1alpha1.Reference) string {
	u, err := f.Catalog.User(ctx, ref)
	switch {
	case err == nil:
		return u.Spec.Username
	case ref.Path != "":
		return ref.Path
	default:
		return strconv.FormatInt(ref.ID, 10)
	}
}

func (f *Family) addOne(ctx context.Context, s auth.Subject, r *addRequest, named v1alpha1.Reference) (Member, error) {
	u, err := f.Catalog.User(ctx, named)
	if errors.Is(err, catalog.ErrNotFound) {
		return Member{}, endpoint.NotFound("User")
	}
	if err != nil {
		return Member{}, err
	}
	held, err := f.Catalog.MembershipIn(ctx, u, s.Scope)
	if err != nil {
		return Member{}, err
	}
	if held != nil && !catalog.Expired(held, f.Clock.Now()) {
		return Member{}, exists()
	}
	if err := f.grants(ctx, s, u, r.AccessLevel, r.ExpiresAt); err != nil {
		return Member{}, err
	}
	if held != nil {
		// An expired membership that still exists is reset completely.
		expires := r.ExpiresAt
		expires.Null = !expires.Set || expires.Null
		expires.Set = true
		return f.write(ctx, s, u, r.AccessLevel, expires)
	}
	m := declared(s.Scope, u)
	m.Spec.Role, m.Spec.ExpiresAt = roleOf(r.AccessLevel), ends(nil, r.ExpiresAt)
	if err := f.memberships.Create(ctx, m); errors.Is(err, store.ErrExists) {
		return Member{}, exists()
	} else if err != nil {
		return Member{}, err
	}
	return f.show(catalog.Member{User: u, Membership: m}), nil
}

func exists() error { return endpoint.Conflict("Member already exists") }

// declared returns a membership whose name is derived from the user and the project or group by id and UID, so that a later user with the
// same id gets a different name.
func declared(s catalog.Scope, u *v1alpha1.User) *v1alpha1.Membership {
	m := &v1alpha1.Membership{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace()},
		Spec:       v1alpha1.MembershipSpec{UserRef: catalog.Refer(u)},
	}
	id, uid := strconv.FormatInt(u.RESTID(), 10), string(u.UID)
	of := "group"
	if s.Project != nil {
		of = "project"
	}
	m.Name = v1alpha1.NaturalName(s.Target().GetName(), of, id, uid)
	m.Spec.ProjectRef, m.Spec.GroupRef = s.Refs()
	return m
}

type updateRequest struct {
	UserID      int64                        `param:"user_id" doc:"Id of the user."`
	AccessLevel int                          `param:"access_level" required:"" example:"30" doc:"10 Guest, 20 Reporter, 30 Developer, 40 Maintainer, 50 Owner."`
	ExpiresAt   endpoint.Optional[time.Time] `param:"expires_at" doc:"Day on which the membership ends; null for never."`
}

func (f *Family) update(ctx context.Context, s auth.Subject, r *updateRequest) (Member, error) {
	m, err := f.own(ctx, s.Scope, r.UserID)
	if err != nil {
		return Member{}, err
	}
	if err := f.grants(ctx, s, m.User, r.AccessLevel, r.ExpiresAt); err != nil {
		return Member{}, err
	}
	if m.Role() == role.Owner && role.Role(r.AccessLevel) < role.Owner {
		if err := f.keepsAnOwner(ctx, s, m.User); err != nil {
			return Member{}, err
		}
	}
	return f.write(ctx, s, m.User, r.AccessLevel, r.ExpiresAt)
}

// write changes the membership of a user and shows it.
func (f *Family) write(ctx context.Context, s auth.Subject, u *v1alpha1.User, level int, expires endpoint.Optional[time.Time]) (Member, error) {
	m, err := f.memberships.Update(ctx, s, u, func(m *v1alpha1.Membership) error {
		if err := within(s, m); err != nil { // its role can have been raised since the check
			return err
		}
		m.Spec.Role, m.Spec.ExpiresAt = roleOf(level), ends(m.Spec.ExpiresAt, expires)
		return nil
	})
	if err != nil {
		return Member{}, err
	}
	return f.show(catalog.Member{User: u, Membership: m}), nil
}

// changeable is held, but refuses a membership with a role above the caller's.
func (f *Family) changeable(ctx context.Context, of auth.Subject, u *v1alpha1.User) (*v1alpha1.Membership, error) {
	m, err := f.Catalog.MembershipIn(ctx, u, of.Scope)
	if err == nil && m != nil {
		err = within(of, m)
	}
	return m, err
}

// within refuses a membership with a role above the caller's.
func within(s auth.Subject, m *v1alpha1.Membership) error {
	if catalog.RoleOf(m.Spec.Role) > s.Access.Role {
		return endpoint.Forbidden("").Describe("You have the role %s, and cannot change or remove a member with a higher one.", s.Access.Role)
	}
	return nil
}

// own returns a member of the project or group itself, because inherited memberships are changed where they are declared.
func (f *Family) own(ctx context.Context, s catalog.Scope, userID int64) (catalog.Member, error) {
	all, err := f.Catalog.MembersOf(ctx, s, f.Clock.Now())
	if err != nil {
		return catalog.Member{}, err
	}
	m, ok := find(all, userID)
	if !ok {
		return catalog.Member{}, endpoint.NotFound("")
	}
	return m, nil
}

// grants returns an error if the caller cannot give a user a role until a day.
func (f *Family) grants(ctx context.Context, s auth.Subject, u *v1alpha1.User, level int, expires endpoint.Optional[time.Time]) error {
	if roleOf(level) == "" {
		return endpoint.Invalid(map[string][]string{"access_level": {"is not included in the list"}}).
			Describe("access_level must be 10 (Guest), 20 (Reporter), 30 (Developer), 40 (Maintainer) or 50 (Owner).")
	}
	if role.Role(level) > s.Access.Role {
		return endpoint.Forbidden("").Describe("You have the role %s, and cannot give a higher one.", s.Access.Role)
	}
	if day := ends(nil, expires); day != nil && !f.Clock.Now().Before(day.Time) {
		return endpoint.Invalid(map[string][]string{"expires_at": {"cannot be a date in the past"}})
	}
	above, ok := s.Scope.Above()
	if !ok {
		return nil
	}
	all, err := f.Catalog.AllMembersOf(ctx, above, f.Clock.Now())
	if err != nil {
		return err
	}
	inherited, ok := find(all, u.RESTID())
	if !ok || inherited.Role() <= role.Role(level) {
		return nil
	}
	from := ""
	if g, err := f.Catalog.Group(ctx, inherited.Membership.Namespace, *inherited.Membership.Spec.GroupRef); err == nil {
		from = " from group " + catalog.Title(g.Spec.Name, g.Spec.Path)
	}
	return endpoint.Invalid(map[string][]string{"access_level": {
		fmt.Sprintf("should be greater than or equal to %s inherited membership%s", inherited.Role(), from),
	}})
}

// keepsAnOwner returns an error if a group would lose its last owner, unless the caller is an administrator.
func (f *Family) keepsAnOwner(ctx context.Context, s auth.Subject, u *v1alpha1.User) error {
	if s.Scope.Project != nil || s.Access.Admin {
		return nil
	}
	all, err := f.Catalog.MembersOf(ctx, s.Scope, f.Clock.Now())
	if err != nil {
		return err
	}
	if above, ok := s.Scope.Above(); ok {
		more, err := f.Catalog.AllMembersOf(ctx, above, f.Clock.Now())
		if err != nil {
			return err
		}
		all = append(all, more...)
	}
	for _, m := range all {
		if m.Role() == role.Owner && m.User.UID != u.UID && m.User.Active() {
			return nil
		}
	}
	return endpoint.Forbidden("").Describe("This is the last Owner of the group: give another member the role first.")
}

// roleOf returns the declared role of an access level. It is empty for an unknown number.
func roleOf(level int) v1alpha1.Role {
	switch r := role.Role(level); r {
	case role.Guest, role.Reporter, role.Developer, role.Maintainer, role.Owner:
		return v1alpha1.Role(r.String())
	default:
		return ""
	}
}

// ends returns the time at which a membership ends: the previous time, or the start of the requested day.
func ends(was *metav1.Time, sent endpoint.Optional[time.Time]) *metav1.Time {
	switch {
	case !sent.Set:
		return was
	case sent.Null:
		return nil
	default:
		return &metav1.Time{Time: day(sent.Value)}
	}
}
