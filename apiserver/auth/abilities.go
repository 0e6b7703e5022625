package auth

import (
	"context"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/role"
)

// Ability is something that can be done with a project.
type Ability int

// The abilities.
const (
	// ReadProject is to know that the project exists, and to see what is public of it.
	ReadProject Ability = iota
	// ReadCode is to clone, fetch and read the repository.
	ReadCode
	// PushCode is to push, as far as protections allow.
	PushCode
)

// Access is what one caller may do with one project.
type Access struct {
	// Role is the caller's effective role; Owner for an administrator.
	Role role.Role
	// Admin is true for an administrator of the instance.
	Admin bool

	signedIn   bool
	visibility v1alpha1.Visibility
	code       v1alpha1.FeatureAccess
}

// May reports whether the caller has an ability.
func (a Access) May(what Ability) bool {
	switch what {
	case ReadProject:
		return a.sees()
	case ReadCode:
		return a.readsCode()
	case PushCode:
		return a.readsCode() && a.Role >= role.Developer
	default:
		return false
	}
}

func (a Access) sees() bool { return a.Role >= role.Guest || a.open() }

// open reports whether the caller sees the project without being a member.
func (a Access) open() bool {
	switch a.visibility {
	case v1alpha1.VisibilityPublic:
		return true
	case v1alpha1.VisibilityInternal:
		return a.signedIn
	default:
		return false
	}
}

// readsCode lets a guest read what everybody may who sees the project, and no more.
func (a Access) readsCode() bool {
	switch a.code {
	case v1alpha1.FeatureEnabled:
		return a.Role >= role.Reporter || a.open()
	case v1alpha1.FeaturePrivate:
		return a.Role >= role.Reporter
	default:
		return false
	}
}

// Access returns what a caller may do with the project of a scope.
func (a *Authenticator) Access(ctx context.Context, c Caller, s catalog.Scope) (Access, error) {
	access := Access{
		signedIn:   !c.Anonymous(),
		visibility: catalog.Visibility(s.Project.Spec.Visibility, s.Groups),
		code:       s.Project.Spec.Features.Repository,
	}
	if c.Anonymous() {
		return access, nil
	}
	if c.User.Spec.Admin {
		access.Role, access.Admin = role.Owner, true
		return access, nil
	}
	var err error
	access.Role, err = a.catalog.ProjectRole(ctx, c.User, s.Project, a.clock.Now())
	return access, err
}

// InGroup reports whether a caller is a member of a group, of it or of one above it.
func (a *Authenticator) InGroup(ctx context.Context, c Caller, g *v1alpha1.Group) (bool, error) {
	if c.Anonymous() {
		return false, nil
	}
	r, err := a.catalog.GroupRole(ctx, c.User, g, a.clock.Now())
	return r > role.None, err
}
