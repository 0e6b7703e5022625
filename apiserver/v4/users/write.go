package users

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/avatar"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/namespace"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

type createRequest struct {
	Email    string `param:"email" required:"" example:"dana@example.com" doc:"Address, unique among users."`
	Name     string `param:"name" required:"" example:"Dana" doc:"Display name of the user."`
	Username string `param:"username" required:"" example:"dana" doc:"Short name, unique among users."`
	Admin    bool   `param:"admin" doc:"Whether the user is an administrator of the whole forge."`
	External bool   `param:"external" doc:"Whether the user sees internal groups and projects only as a member."`
	Auditor  bool   `param:"auditor" doc:"Whether the user can read every group and project."`

	ProjectsLimit endpoint.Optional[int64] `param:"projects_limit" doc:"Maximum number of projects that the user can create; the limit of all users when omitted."`
	Avatar        avatar.Upload            `param:"avatar" doc:"A picture of at most 200 KiB."`
}

func (f *Family) create(ctx context.Context, _ auth.Instance, r *createRequest) (User, error) {
	picture, err := f.Avatars.Check(ctx, r.Avatar)
	if err != nil {
		return User{}, err
	}
	u := &v1alpha1.User{Spec: v1alpha1.UserSpec{
		Username: r.Username, Name: r.Name, Email: r.Email, Admin: r.Admin, External: r.External, Auditor: r.Auditor,
		Type: v1alpha1.UserPerson, State: v1alpha1.UserActive, ProjectsLimit: projectsLimit(r.ProjectsLimit),
	}}
	if err := f.limit(ctx, u); err != nil {
		return User{}, err
	}
	if err := f.check(ctx, u, ""); err != nil {
		return User{}, err
	}
	same := func(holder *v1alpha1.User) bool { return strings.EqualFold(holder.Spec.Username, u.Spec.Username) }
	key := []string{strings.ToLower(u.Spec.Username)}
	then := append([]store.Then{func(ctx context.Context, w store.Unasked) error {
		// The id is new, so it belongs to this user.
		return w.Observe(ctx, u, func() { u.Status.ID = u.RESTID() })
	}}, f.Avatars.Then(u, picture)...)
	err = f.users.CreateUnique(ctx, u, same, key, then...)
	if errors.Is(err, store.ErrExists) {
		return User{}, taken("Username")
	}
	if err != nil {
		return User{}, err
	}
	return f.full(u, true), nil
}

type updateRequest struct {
	Email    endpoint.Optional[string] `param:"email" doc:"Address, unique among users."`
	Name     endpoint.Optional[string] `param:"name" example:"Dana" doc:"Display name of the user."`
	Username endpoint.Optional[string] `param:"username" doc:"Short name, unique among users."`
	Admin    endpoint.Optional[bool]   `param:"admin" doc:"Whether the user is an administrator of the whole forge."`
	External endpoint.Optional[bool]   `param:"external" doc:"Whether the user sees internal groups and projects only as a member."`
	Auditor  endpoint.Optional[bool]   `param:"auditor" doc:"Whether the user can read every group and project."`

	ProjectsLimit endpoint.Optional[int64] `param:"projects_limit" doc:"Maximum number of projects that the user can create; null for the limit of all users."`
	Avatar        avatar.Upload            `param:"avatar" doc:"A picture of at most 200 KiB; empty to remove it."`
}

func (f *Family) update(ctx context.Context, s auth.User, r *updateRequest) (User, error) {
	picture, err := f.Avatars.Check(ctx, r.Avatar)
	if err != nil {
		return User{}, err
	}
	if err := f.movable(ctx, s.User, r.Username); err != nil {
		return User{}, err
	}
	u, err := f.users.Update(ctx, s.Subject, s.User.RESTID(), func(u *v1alpha1.User) error {
		before := u.Spec
		u.Spec.Email = r.Email.Or(u.Spec.Email)
		u.Spec.Name = r.Name.Or(u.Spec.Name)
		u.Spec.Username = r.Username.Or(u.Spec.Username)
		u.Spec.Admin = r.Admin.Or(u.Spec.Admin)
		u.Spec.External = r.External.Or(u.Spec.External)
		u.Spec.Auditor = r.Auditor.Or(u.Spec.Auditor)
		if r.ProjectsLimit.Set {
			u.Spec.ProjectsLimit = projectsLimit(r.ProjectsLimit)
		}
		if equality.Semantic.DeepEqual(before, u.Spec) {
			return nil
		}
		return f.check(ctx, u, before.Username)
	})
	if err == nil && r.Username.Set {
		err = f.move(ctx, u)
	}
	if err == nil {
		u, err = avatar.Set(ctx, f.Avatars, f.users, s.Subject, u, picture)
	}
	if err != nil {
		return User{}, err
	}
	return f.full(u, true), nil
}

// movable returns an error if restWrites protects the group of the user's personal projects, because that group would keep the former
// username as its path.
func (f *Family) movable(ctx context.Context, u *v1alpha1.User, username endpoint.Optional[string]) error {
	if username.Or(u.Spec.Username) == u.Spec.Username {
		return nil
	}
	g, err := namespace.FindPersonal(ctx, f.Catalog, u, f.Home)
	if err != nil {
		return catalog.IgnoreNotFound(err)
	}
	of := auth.Subject{Scope: catalog.Scope{Groups: []*v1alpha1.Group{g}}}
	return f.groups.CheckMove(ctx, of, store.Only{}, catalog.Scope{})
}

// move sets the path of the group of a user's personal projects, if it exists, to their username.
func (f *Family) move(ctx context.Context, u *v1alpha1.User) error {
	g, err := namespace.FindPersonal(ctx, f.Catalog, u, f.Home)
	if err != nil {
		return catalog.IgnoreNotFound(err)
	}
	_, err = f.groups.UpdateUnasked(ctx, g, func(g *v1alpha1.Group) error {
		g.Spec.Path = u.Spec.Username
		return nil
	})
	return err
}

// limit sets the limit of projects of a new user to the default, if the request has no limit.
func (f *Family) limit(ctx context.Context, u *v1alpha1.User) error {
	if u.Spec.ProjectsLimit != nil {
		return nil
	}
	limit, set, err := f.Features.ProjectsLimit(ctx)
	if set {
		u.Spec.ProjectsLimit = &limit
	}
	return err
}

// projectsLimit returns the requested limit, or nil if it is null or missing. check refuses invalid values.
func projectsLimit(sent endpoint.Optional[int64]) *int32 {
	if !sent.Set || sent.Null {
		return nil
	}
	return ptr.To(int32(max(-1, min(sent.Value, maxProjects+1))))
}

// Limits of the schema.
const (
	maxProjects = 1_000_000
	maxName     = 255
	maxEmail    = 254
)

var (
	usernames = regexp.MustCompile(`^[a-zA-Z0-9_]([a-zA-Z0-9_.-]*[a-zA-Z0-9_])?$`)
	emails    = regexp.MustCompile(`^[^@\s]+@[^@\s]+$`)
)

// check returns the validation errors of a user: attributes that are invalid or taken. An existing user can have no name and no address.
// was is the previous username, empty for a new user.
func (f *Family) check(ctx context.Context, u *v1alpha1.User, was string) error {
	declared := u.UID != ""
	wrong := map[string][]string{}
	add := func(attribute, what string) { wrong[attribute] = append(wrong[attribute], what) }
	if what := wrongUsername(u.Spec.Username, was); what != "" {
		add("username", what)
	}
	switch name := u.Spec.Name; {
	case name == "" && declared: // the username stands in for it
	case strings.TrimSpace(name) == "":
		add("name", "can't be blank")
	case len([]rune(name)) > maxName:
		add("name", "is too long (maximum is 255 characters)")
	}
	if e := u.Spec.Email; (e != "" || !declared) && (!emails.MatchString(e) || len(e) > maxEmail) {
		add("email", "is invalid")
	}
	if n := u.Spec.ProjectsLimit; n != nil && (*n < 0 || *n > maxProjects) {
		add("projects_limit", "must be 0 to 1000000")
	}
	if len(wrong) > 0 {
		return endpoint.Invalid(wrong)
	}
	if err := f.free(ctx, u); err != nil || u.Spec.Username == was {
		return err
	}
	return f.freeAtRoot(ctx, u)
}

// wrongUsername returns the validation error of a username. was is the previous one, which can stay even if a new user could not have it.
func wrongUsername(name, was string) string {
	switch {
	case name == "":
		return "can't be blank"
	case name != was && namespace.Reserved(name):
		return namespace.ReservedName
	case len(name) < 2:
		return "is too short (minimum is 2 characters)"
	case len(name) > maxName:
		return "is too long (maximum is 255 characters)"
	case !usernames.MatchString(name):
		return "can contain only letters, digits, '_', '-' and '.', and begins and ends with a letter, digit or '_'"
	case name != was && (strings.HasSuffix(name, ".git") || strings.HasSuffix(name, ".atom")):
		return "cannot end in '.git' or '.atom'"
	}
	return ""
}

// freeAtRoot refuses a username that is the path of a root group, unless that is the group of the user's own personal projects.
func (f *Family) freeAtRoot(ctx context.Context, u *v1alpha1.User) error {
	holder, err := f.Catalog.ByPath(ctx, u.Spec.Username)
	if err != nil {
		return catalog.IgnoreNotFound(err)
	}
	if own, err := namespace.IsPersonal(ctx, f.Catalog, holder, u, f.Home); own || err != nil {
		return err
	}
	return taken("Username")
}

// free refuses an address or username that another user has.
func (f *Family) free(ctx context.Context, u *v1alpha1.User) error {
	if u.Spec.Email != "" {
		other, err := f.Catalog.UserByEmail(ctx, u.Spec.Email)
		if err == nil && other.UID != u.UID {
			return taken("Email")
		}
		if err := catalog.IgnoreNotFound(err); err != nil {
			return err
		}
	}
	other, err := f.Catalog.UserByUsername(ctx, u.Spec.Username)
	if err == nil && other.UID != u.UID {
		return taken("Username")
	}
	return catalog.IgnoreNotFound(err)
}

func taken(attribute string) error { return endpoint.Conflict(attribute + " has already been taken") }
