// Package accesstokens is the family of personal access tokens.
package accesstokens

import (
	"context"
	"errors"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/declare"
)

// +kubebuilder:rbac:groups=forgeplane.dev,resources=accesstokens,verbs=get;create;patch;delete,roleName=forgeplane-apiserver
// +kubebuilder:rbac:groups=forgeplane.dev,resources=accesstokens/status,verbs=patch,roleName=forgeplane-apiserver

// Family serves personal access tokens.
type Family struct {
	catalog *catalog.Catalog
	writer  *declare.Writer
	clock   clock.PassiveClock
}

// New returns the family.
func New(cat *catalog.Catalog, w *declare.Writer, clk clock.PassiveClock) *Family {
	return &Family{catalog: cat, writer: w, clock: clk}
}

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	// What a token tells about itself, and that it can be revoked, needs no scope in particular.
	all := []string{
		"api", "read_api", "read_user", "read_repository", "write_repository", "read_registry", "write_registry", "sudo",
	}
	return endpoint.Table{
		endpoint.Post("/users/{user_id}/personal_access_tokens", f.create).Needs(auth.AdminInstance).
			Doc("Create a token for a user. Its value is in this answer only."),
		endpoint.Get("/personal_access_tokens", f.list).
			Doc("List the caller's tokens; for administrators those of all users."),
		endpoint.Get("/personal_access_tokens/self", f.self).Scopes(all...).Also(http.StatusMethodNotAllowed).
			Doc("Get the token that the request is made with."),
		endpoint.Get("/personal_access_tokens/{id}", f.get).
			Doc("Get a token."),
		endpoint.Post("/personal_access_tokens/self/rotate", f.rotateSelf).Status(http.StatusOK).Also(http.StatusMethodNotAllowed).
			Doc("Replace the token that the request is made with. The new value is in this answer only."),
		endpoint.Post("/personal_access_tokens/{id}/rotate", f.rotate).Status(http.StatusOK).
			Doc("Revoke a token and create one like it. The new value is in this answer only."),
		endpoint.Delete("/personal_access_tokens/self", f.revokeSelf).Scopes(all...).Also(http.StatusMethodNotAllowed).
			Doc("Revoke the token that the request is made with."),
		endpoint.Delete("/personal_access_tokens/{id}", f.revoke).
			Doc("Revoke a token."),
	}
}

type tokenRequest struct {
	ID int64 `param:"id" doc:"Id of the token."`
}

func (f *Family) get(ctx context.Context, s auth.Instance, r *tokenRequest) (Token, error) {
	t, err := f.reachable(ctx, s, r.ID)
	if err != nil {
		return Token{}, err
	}
	return t.show(f.clock.Now()), nil
}

func (f *Family) self(ctx context.Context, s auth.Instance, _ *endpoint.None) (Token, error) {
	t, err := f.own(ctx, s)
	if err != nil {
		return Token{}, err
	}
	return t.show(f.clock.Now()), nil
}

type rotateRequest struct {
	ID        int64                        `param:"id" doc:"Id of the token."`
	ExpiresAt endpoint.Optional[time.Time] `param:"expires_at" doc:"Day on which the new token ends to be accepted; in a week when omitted."`
}

func (f *Family) rotate(ctx context.Context, s auth.Instance, r *rotateRequest) (NewToken, error) {
	t, err := f.reachable(ctx, s, r.ID)
	if err != nil {
		return NewToken{}, err
	}
	return f.replace(ctx, t, r.ExpiresAt)
}

type rotateSelfRequest struct {
	ExpiresAt endpoint.Optional[time.Time] `param:"expires_at" doc:"Day on which the new token ends to be accepted; in a week when omitted."`
}

func (f *Family) rotateSelf(ctx context.Context, s auth.Instance, r *rotateSelfRequest) (NewToken, error) {
	t, err := f.own(ctx, s)
	if err != nil {
		return NewToken{}, err
	}
	return f.replace(ctx, t, r.ExpiresAt)
}

func (f *Family) revoke(ctx context.Context, s auth.Instance, r *tokenRequest) (endpoint.None, error) {
	t, err := f.find(ctx, r.ID)
	if err != nil {
		return endpoint.None{}, err
	}
	if t == nil || !may(s, t.user) {
		return endpoint.None{}, endpoint.NotFound("")
	}
	return endpoint.None{}, f.end(ctx, *t)
}

func (f *Family) revokeSelf(ctx context.Context, s auth.Instance, _ *endpoint.None) (endpoint.None, error) {
	t, err := f.own(ctx, s)
	if err != nil {
		return endpoint.None{}, err
	}
	return endpoint.None{}, f.end(ctx, t)
}

// own returns the token that a request is made with. A Kubernetes identity has none.
func (f *Family) own(ctx context.Context, s auth.Instance) (owned, error) {
	t := s.Caller.Token
	if t == nil {
		return owned{}, endpoint.Message(http.StatusMethodNotAllowed, "405 Method Not Allowed")
	}
	// With sudo the caller is not the user whom the token stands for.
	u, err := f.catalog.User(ctx, t.Spec.UserRef)
	return owned{t.DeepCopy(), u}, err
}

// reachable returns a token of the caller, or for an administrator of anybody. Only administrators learn that there is none.
func (f *Family) reachable(ctx context.Context, s auth.Instance, id int64) (owned, error) {
	t, err := f.find(ctx, id)
	switch {
	case err != nil:
		return owned{}, err
	case t != nil && may(s, t.user):
		return *t, nil
	case s.Access.Admin:
		return owned{}, endpoint.Message(http.StatusNotFound, "404 Not Found")
	default:
		return owned{}, endpoint.Unauthorized("")
	}
}

// may reports whether the caller has to do with the tokens of a user.
func may(s auth.Instance, u *v1alpha1.User) bool {
	return s.Access.Admin || s.Caller.Is(u.RESTID())
}

// find returns a copy of the token that has an id; nil when there is none, or none that stands for anybody.
func (f *Family) find(ctx context.Context, id int64) (*owned, error) {
	t, err := f.catalog.Token(ctx, id)
	var u *v1alpha1.User
	if err == nil {
		u, err = f.catalog.User(ctx, t.Spec.UserRef)
	}
	switch {
	case errors.Is(err, catalog.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	default:
		return &owned{t.DeepCopy(), u}, nil
	}
}
