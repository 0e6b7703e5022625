// Package accesstokens is the family of personal access tokens.
package accesstokens

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/bots"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// +kubebuilder:rbac:groups=forgeplane.dev,resources=accesstokens,verbs=get;create;patch;delete,roleName=forgeplane-apiserver
// +kubebuilder:rbac:groups=forgeplane.dev,resources=accesstokens/status,verbs=patch,roleName=forgeplane-apiserver

// Family serves personal access tokens.
type Family struct {
	family.Kit
	tokens *store.Store[owned, *v1alpha1.AccessToken]
	bots   *bots.Tokens
}

// New returns the family.
func New(k family.Kit) *Family {
	return &Family{Kit: k, tokens: store.New(k.Writer, changed), bots: bots.New(k)}
}

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	// Reading the token itself and revoking it need no particular scope.
	all := []string{
		"api", "read_api", "read_user", "read_repository", "write_repository", "read_registry", "write_registry", "sudo",
	}
	return endpoint.Table{
		endpoint.Post("/users/{user_id}/personal_access_tokens", f.create).Needs(auth.AdminInstance).
			Doc("Create a token for a user. Its value is in this answer only."),
		endpoint.Get("/personal_access_tokens", f.list).Asks(auth.AdminInstance).
			Doc("List the caller's tokens, or for administrators the tokens of all users."),
		endpoint.Get("/personal_access_tokens/self", f.self).Scopes(all...).Also(http.StatusMethodNotAllowed).
			Doc("Get the token of the request."),
		endpoint.Get("/personal_access_tokens/{id}", f.get).Found(f.reachable).Needs(auth.AdminInstance).Or(auth.Own).Denies(endpoint.Unauthorized("")).
			Doc("Get a token."),
		endpoint.Post("/personal_access_tokens/self/rotate", f.rotateSelf).Anybody().Status(http.StatusOK).Also(http.StatusMethodNotAllowed).
			Doc("Rotate the token of the request. The new value is in this answer only."),
		endpoint.Post("/personal_access_tokens/{id}/rotate", f.rotate).Status(http.StatusOK).
			Found(f.reachable).Needs(auth.AdminInstance).Or(auth.Own).Denies(endpoint.Unauthorized("")).
			Doc("Rotate a token. The new value is in this answer only."),
		endpoint.Delete("/personal_access_tokens/self", f.revokeSelf).Anybody().Scopes(all...).Also(http.StatusMethodNotAllowed).
			Doc("Revoke the token of the request."),
		endpoint.Delete("/personal_access_tokens/{id}", f.revoke).Found(f.find).Needs(auth.AdminInstance).Or(auth.Own).Denies(endpoint.NotFound("")).
			Doc("Revoke a token."),
	}
}

func (f *Family) get(ctx context.Context, s auth.Record[owned], _ *endpoint.None) (entity.Token, error) {
	return f.show(s.Record, f.used(ctx, s.Record)), nil
}

func (f *Family) self(ctx context.Context, s auth.Instance, _ *endpoint.None) (entity.Token, error) {
	if b := s.Caller.Bot; b != nil {
		return f.bots.Show(b.Token, f.bots.Used(ctx, b.Token)), nil
	}
	t, err := f.own(ctx, s)
	if err != nil {
		return entity.Token{}, err
	}
	return f.show(t, f.used(ctx, t)), nil
}

type rotateRequest struct {
	ExpiresAt endpoint.Optional[time.Time] `param:"expires_at" doc:"Day from which the new token is no longer accepted; a week from now when omitted."`
}

func (f *Family) rotate(ctx context.Context, s auth.Record[owned], r *rotateRequest) (entity.NewToken, error) {
	return f.replace(ctx, s.Subject, s.Record, r.ExpiresAt)
}

func (f *Family) rotateSelf(ctx context.Context, s auth.Instance, r *rotateRequest) (entity.NewToken, error) {
	if b := s.Caller.Bot; b != nil {
		return f.bots.Rotate(ctx, bots.Self(s.Subject), b.Token, r.ExpiresAt)
	}
	t, err := f.own(ctx, s)
	if err != nil {
		return entity.NewToken{}, err
	}
	return f.replace(ctx, s.Subject, t, r.ExpiresAt)
}

func (f *Family) revoke(ctx context.Context, s auth.Record[owned], _ *endpoint.None) (endpoint.None, error) {
	return endpoint.None{}, f.end(ctx, s.Subject, s.Record)
}

func (f *Family) revokeSelf(ctx context.Context, s auth.Instance, _ *endpoint.None) (endpoint.None, error) {
	if b := s.Caller.Bot; b != nil {
		return endpoint.None{}, f.bots.Revoke(ctx, bots.Self(s.Subject), b.Token.RESTID())
	}
	t, err := f.own(ctx, s)
	if err != nil {
		return endpoint.None{}, err
	}
	return endpoint.None{}, f.end(ctx, s.Subject, t)
}

// own returns the token of the request. The error is 405 for a Kubernetes identity.
func (f *Family) own(ctx context.Context, s auth.Instance) (owned, error) {
	t, personal := s.Caller.Token.(*v1alpha1.AccessToken)
	if !personal {
		return owned{}, endpoint.Message(http.StatusMethodNotAllowed, "405 Method Not Allowed")
	}
	// With sudo, the caller is not the owner of the token.
	u, err := f.Catalog.User(ctx, t.Spec.UserRef)
	return owned{t, u}, err
}

// changed returns the token that the request may change, for the store.
func changed(_ context.Context, _ auth.Subject, t owned) (*v1alpha1.AccessToken, error) {
	return t.AccessToken, nil
}

// reachable is find with the response for administrators if the token does not exist. Other callers do not learn that.
func (f *Family) reachable(ctx context.Context, s auth.Subject, id int64) (owned, error) {
	t, err := f.find(ctx, s, id)
	var missing *endpoint.Error
	if errors.As(err, &missing) {
		err = endpoint.Message(http.StatusNotFound, "404 Not Found")
	}
	return t, err
}

// find returns the token with an id, if it has an owner.
func (f *Family) find(ctx context.Context, _ auth.Subject, id int64) (owned, error) {
	t, err := catalog.ByID[*v1alpha1.AccessToken](ctx, f.Catalog, id)
	var u *v1alpha1.User
	if err == nil {
		u, err = f.Catalog.User(ctx, t.Spec.UserRef)
	}
	if errors.Is(err, catalog.ErrNotFound) {
		err = endpoint.NotFound("")
	}
	return owned{t, u}, err
}
