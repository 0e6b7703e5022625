// Package users is the family of users.
package users

import (
	"context"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/quota"
)

// +kubebuilder:rbac:groups=forgeplane.dev,resources=users,verbs=get;create;patch;delete,roleName=forgeplane-apiserver
// +kubebuilder:rbac:groups=forgeplane.dev,resources=users/status,verbs=patch,roleName=forgeplane-apiserver

// Family serves users.
type Family struct {
	catalog *catalog.Catalog
	users   *store.Store[int64, *v1alpha1.User]
	groups  *store.Store[store.Only, *v1alpha1.Group]
	webURL  string
	// home is the Kubernetes namespace of personal projects.
	home string
	// limits are the limits of users who have none of their own.
	limits quota.Limits
}

// New returns the family; webURL is the address of the installation, without a slash at its end, and home the Kubernetes namespace of
// the personal projects of all users.
func New(cat *catalog.Catalog, w store.Writer, webURL, home string) *Family {
	byID := func(ctx context.Context, _ auth.Subject, id int64) (*v1alpha1.User, error) {
		return cat.User(ctx, v1alpha1.Reference{ID: id})
	}
	return &Family{
		catalog: cat, users: store.New(w, byID).Named("User", "User"), groups: store.Groups(w), webURL: webURL, home: home, limits: quota.DefaultLimits(),
	}
}

// Within returns the family for other limits of users than the usual ones.
func (f *Family) Within(l quota.Limits) *Family {
	f.limits = l
	return f
}

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	reading := []string{"api", "read_api", "read_user"}
	return endpoint.Table{
		endpoint.Get("/user", f.current).Scopes(reading...).
			Doc("Get the user who calls."),
		endpoint.Get("/users", f.list).Scopes(reading...).
			Doc("List users; administrators see their accounts."),
		endpoint.Get("/users/{id}", f.get).Scopes(reading...).
			Doc("Get a user. Administrators also see the account."),
		endpoint.Post("/users", f.create).Needs(auth.AdminInstance).
			Doc("Create a user."),
		endpoint.Put("/users/{id}", f.update).Needs(auth.AdminInstance).
			Doc("Change a user."),
		endpoint.Delete("/users/{id}", f.remove).Needs(auth.AdminInstance).
			Conditional().Doc("Remove a user."),
		endpoint.Post("/users/{id}/block", f.block).Needs(auth.AdminInstance).
			Doc("Refuse a user everywhere, whatever token is shown."),
		endpoint.Post("/users/{id}/unblock", f.unblock).Needs(auth.AdminInstance).
			Doc("Let a blocked user in again."),
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
	return seen(s.User, f.webURL), nil
}

func (f *Family) remove(ctx context.Context, s auth.User, _ *endpoint.None) (endpoint.None, error) {
	return endpoint.None{}, f.users.Delete(ctx, s.Subject, s.User.RESTID())
}

func (f *Family) block(ctx context.Context, s auth.User, _ *endpoint.None) (bool, error) {
	if s.Caller.Is(s.User.RESTID()) {
		return false, endpoint.Forbidden("The API initiating user cannot be blocked by the API")
	}
	return f.enter(ctx, s, v1alpha1.UserBlocked)
}

func (f *Family) unblock(ctx context.Context, s auth.User, _ *endpoint.None) (bool, error) {
	return f.enter(ctx, s, v1alpha1.UserActive)
}

// enter brings a user into a state.
func (f *Family) enter(ctx context.Context, s auth.User, state v1alpha1.UserState) (bool, error) {
	_, err := f.users.Update(ctx, s.Subject, s.User.RESTID(), func(u *v1alpha1.User) error {
		u.Spec.State = state
		return nil
	})
	return err == nil, err
}
