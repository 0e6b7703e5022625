// Package bottokens is the family of the access tokens of projects and groups.
package bottokens

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/bots"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/bottoken"
)

// +kubebuilder:rbac:groups=forgeplane.dev,resources=bottokens,verbs=get;create;patch,roleName=forgeplane-apiserver

// Family serves the access tokens of projects and groups.
type Family struct {
	family.Kit
	tokens *bots.Tokens
}

// New returns the family.
func New(k family.Kit) *Family {
	return &Family{Kit: k, tokens: bots.New(k)}
}

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	return append(
		table[auth.Project](f, "/projects/{id}/access_tokens", "project", auth.ManageProjectTokens, auth.ReadProject),
		table[auth.Group](f, "/groups/{id}/access_tokens", "group", auth.ManageGroupTokens, auth.ReadGroup)...)
}

func table[S auth.Form](f *Family, path, of string, manage, read endpoint.Ability) endpoint.Table {
	const one = "/{token_id}"
	refused := endpoint.Unauthorized("")
	return endpoint.Table{
		endpoint.Get(path, auth.On[S](f.list)).Needs(manage).Denies(refused).
			Doc("List the access tokens of a " + of + "."),
		endpoint.Get(path+one, auth.On[S](f.get)).Needs(manage).Denies(refused).
			Doc("Get an access token of a " + of + "."),
		endpoint.Post(path, auth.On[S](f.create)).Needs(manage).Denies(refused).
			Doc("Create an access token of a " + of + ", and the bot that it authenticates. Its value is in this answer only."),
		endpoint.Post(path+"/self/rotate", auth.On[S](f.rotateSelf)).Needs(read).Status(http.StatusOK).Also(http.StatusMethodNotAllowed).
			Doc("Rotate the token of the request, if it is an access token of the " + of + ". The new value is in this answer only."),
		endpoint.Post(path+one+"/rotate", auth.On[S](f.rotate)).Needs(manage).Denies(refused).Status(http.StatusOK).
			Doc("Rotate an access token of a " + of + ". The new value is in this answer only."),
		endpoint.Delete(path+one, auth.On[S](f.revoke)).Needs(manage).Denies(refused).
			Doc("Revoke an access token of a " + of + "."),
	}
}

type listRequest struct {
	endpoint.Paging
	State string `param:"state" values:"active,inactive" doc:"Only tokens that are accepted, or only others."`
}

func (f *Family) list(ctx context.Context, s auth.Subject, r *listRequest) (endpoint.List[Token], error) {
	all, err := f.tokens.List(ctx, s)
	if err != nil {
		return endpoint.List[Token]{}, err
	}
	now := f.Clock.Now()
	all = store.Visible(all, func(t *v1alpha1.BotToken) bool {
		return r.State == "" || (r.State == "active") != bottoken.Ended(t, now)
	})
	used := f.tokens.Used(ctx, endpoint.Rows(r.Paging, all)...)
	return endpoint.Page(r.Paging, all, func(t *v1alpha1.BotToken) Token { return show(t, f.tokens.Show(t, used)) }), nil
}

type tokenRequest struct {
	TokenID int64 `param:"token_id" doc:"Id of the token."`
}

func (f *Family) get(ctx context.Context, s auth.Subject, r *tokenRequest) (Token, error) {
	t, err := f.find(ctx, s, r.TokenID)
	if err != nil {
		return Token{}, err
	}
	return show(t, f.tokens.Show(t, f.tokens.Used(ctx, t))), nil
}

// find returns the token of the project or group with an id.
func (f *Family) find(ctx context.Context, s auth.Subject, id int64) (*v1alpha1.BotToken, error) {
	t, err := f.tokens.Get(ctx, s, id)
	if missing := new(endpoint.Error); errors.As(err, &missing) {
		of := "group"
		if s.Scope.Project != nil {
			of = "project"
		}
		err = endpoint.NotFound(fmt.Sprintf("Could not find %s access token with token_id: %d", of, id))
	}
	return t, err
}
