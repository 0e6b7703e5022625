// Package users is the family of users.
package users

import (
	"context"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/avatar"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/store"
)

// +kubebuilder:rbac:groups=forgeplane.dev,resources=users,verbs=get;create;patch;delete,roleName=forgeplane-apiserver
// +kubebuilder:rbac:groups=forgeplane.dev,resources=users/status,verbs=patch,roleName=forgeplane-apiserver

// Family serves users.
type Family struct {
	family.Kit
	users  *store.Store[int64, *v1alpha1.User]
	groups *store.Store[store.Only, *v1alpha1.Group]
	tree   *store.Remover
}

// New returns the family.
func New(k family.Kit) *Family {
	byID := func(ctx context.Context, _ auth.Subject, id int64) (*v1alpha1.User, error) {
		return k.Catalog.User(ctx, v1alpha1.Reference{ID: id})
	}
	users := store.New(k.Writer, byID).Named("User", "User")
	return &Family{Kit: k, users: users, groups: store.Groups(k.Writer), tree: store.NewRemover(k.Writer)}
}

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	reading := []string{"api", "read_api", "read_user"}
	return endpoint.Table{
		endpoint.Get("/user", f.current).Scopes(reading...).
			Doc("Get the current user."),
		endpoint.Get("/users", f.list).Scopes(reading...).
			Doc("List users. Administrators see their accounts."),
		endpoint.Get("/users/{id}", f.get).Scopes(reading...).
			Doc("Get a user. Administrators also see the account."),
		avatar.Taking(endpoint.Post("/users", f.create).Needs(auth.AdminInstance).
			Doc("Create a user.")),
		avatar.Taking(endpoint.Put("/users/{id}", f.update).Needs(auth.AdminInstance).
			Doc("Update a user.")),
		endpoint.Get("/users/{id}/avatar", f.avatar).Scopes(reading...).
			Doc("Get the avatar of a user, as a PNG."),
		avatar.Taking(endpoint.Put("/user/avatar", f.setAvatar).Anybody().
			Doc("Update the avatar of the current user.")),
		endpoint.Delete("/users/{id}", f.remove).Needs(auth.AdminInstance).
			Conditional().Doc("Delete a user."),
		endpoint.Post("/users/{id}/block", f.block).Needs(auth.AdminInstance).
			Doc("Block a user. All of the user's tokens are refused."),
		endpoint.Post("/users/{id}/unblock", f.unblock).Needs(auth.AdminInstance).
			Doc("Unblock a user."),
		endpoint.Post("/users/{id}/deactivate", f.deactivate).Needs(auth.AdminInstance).
			Doc("Deactivate a user who no longer uses the forge."),
		endpoint.Post("/users/{id}/activate", f.activate).Needs(auth.AdminInstance).
			Doc("Activate a deactivated user."),
		endpoint.Post("/users/{id}/ban", f.ban).Needs(auth.AdminInstance).
			Doc("Ban a user."),
		endpoint.Post("/users/{id}/unban", f.unban).Needs(auth.AdminInstance).
			Doc("Unban a user."),
	}
}

func (f *Family) current(_ context.Context, s auth.Instance, _ *endpoint.None) (User, error) {
	caller := s.Caller
	u, err := caller.Person()
	if err != nil {
		return User{}, err
	}
	return f.own(u, caller.Admin), nil
}

func (f *Family) get(_ context.Context, s auth.User, _ *endpoint.None) (User, error) {
	if s.Access.Admin {
		return f.full(s.User, true), nil
	}
	return seen(s.User, f.WebURL), nil
}
