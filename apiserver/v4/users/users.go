// Package users is the family of users.
package users

import (
	"context"
	"errors"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/conditional"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/refusal"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/declare"
	"github.com/forgeplane/forgeplane/internal/quota"
)

// +kubebuilder:rbac:groups=forgeplane.dev,resources=users,verbs=get;create;patch;delete,roleName=forgeplane-apiserver
// +kubebuilder:rbac:groups=forgeplane.dev,resources=users/status,verbs=patch,roleName=forgeplane-apiserver

// Family serves users.
type Family struct {
	catalog *catalog.Catalog
	writer  *declare.Writer
	webURL  string
	// home is the Kubernetes namespace of personal projects.
	home string
	// limits are those of users who have none of their own.
	limits quota.Limits
}

// New returns the family; webURL is the address of the installation, without a slash at its end, and home the Kubernetes namespace of
// the personal projects of all users.
func New(cat *catalog.Catalog, w *declare.Writer, webURL, home string) *Family {
	return &Family{catalog: cat, writer: w, webURL: webURL, home: home, limits: quota.DefaultLimits()}
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
			Doc("Get a user; administrators see his account."),
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

type userRequest struct {
	ID int64 `param:"id" doc:"Id of the user."`
}

func (f *Family) get(ctx context.Context, s auth.Instance, r *userRequest) (User, error) {
	u, err := f.user(ctx, r.ID)
	switch {
	case err != nil:
		return User{}, err
	case s.Access.Admin:
		return f.full(u, true), nil
	default:
		return seen(u, f.webURL), nil
	}
}

func (f *Family) remove(ctx context.Context, _ auth.Instance, r *userRequest) (endpoint.None, error) {
	u, err := f.user(ctx, r.ID)
	if err == nil {
		err = conditional.Delete(ctx, f.writer, u)
	}
	return endpoint.None{}, refusal.Of(err, "User")
}

func (f *Family) block(ctx context.Context, s auth.Instance, r *userRequest) (bool, error) {
	if s.Caller.Is(r.ID) {
		return false, endpoint.Forbidden("The API initiating user cannot be blocked by the API")
	}
	return f.enter(ctx, r.ID, v1alpha1.UserBlocked)
}

func (f *Family) unblock(ctx context.Context, _ auth.Instance, r *userRequest) (bool, error) {
	return f.enter(ctx, r.ID, v1alpha1.UserActive)
}

// enter brings a user into a state.
func (f *Family) enter(ctx context.Context, id int64, state v1alpha1.UserState) (bool, error) {
	u, err := f.user(ctx, id)
	if err != nil {
		return false, err
	}
	err = f.writer.Update(ctx, u, func() error {
		u.Spec.State = state
		return nil
	})
	return err == nil, refusal.Of(err, "User")
}

// user returns a copy of the user who has an id.
func (f *Family) user(ctx context.Context, id int64) (*v1alpha1.User, error) {
	u, err := f.catalog.User(ctx, v1alpha1.Reference{ID: id})
	if errors.Is(err, catalog.ErrNotFound) {
		return nil, endpoint.NotFound("User")
	}
	if err != nil {
		return nil, err
	}
	return u.DeepCopy(), nil
}
