package bottokens

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/accesstoken"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/role"
)

// maxText is the maximum number of characters in a name or a description.
const maxText = 255

type createRequest struct {
	Name        string                       `param:"name" required:"" example:"deploy" doc:"Display name of the token and of its bot."`
	Description string                       `param:"description" doc:"Purpose of the token."`
	Scopes      []string                     `param:"scopes" required:"" comma:"" values:"api,read_api,read_user,read_repository,write_repository,read_registry,write_registry" example:"read_api" doc:"Purposes for which the token can be used."`
	AccessLevel endpoint.Optional[int]       `param:"access_level" values:"10,20,30,40,50" doc:"Role of the bot, at most that of the caller; 40 when omitted."`
	ExpiresAt   endpoint.Optional[time.Time] `param:"expires_at" doc:"Day from which the token is no longer accepted; a year from now when omitted."`
}

func (f *Family) create(ctx context.Context, s auth.Subject, r *createRequest) (NewToken, error) {
	if s.Caller.Bot != nil {
		return NewToken{}, endpoint.Forbidden("The bot of a project or group access token cannot create tokens")
	}
	level := role.Role(r.AccessLevel.Or(int(role.Maintainer)))
	if level > s.Access.Role {
		return NewToken{}, endpoint.BadRequest("Access level of the token can't be greater the access level of the user who created the token").
			Describe("You have the role %s, and cannot give a higher one.", s.Access.Role)
	}
	if err := r.check(); err != nil {
		return NewToken{}, err
	}
	expires, ok := accesstoken.Expiry(r.ExpiresAt.Or(time.Time{}), accesstoken.Lifetime, f.Clock.Now())
	if !ok {
		return NewToken{}, endpoint.BadRequest("expires_at must be a date in the future")
	}
	value := accesstoken.Generate()
	spec := v1alpha1.BotTokenSpec{
		Name: r.Name, Description: r.Description, Role: v1alpha1.Role(level.String()), ExpiresAt: &expires, Digest: credential.Digest(value),
	}
	spec.ProjectRef, spec.GroupRef = s.Scope.Refs()
	for _, scope := range r.Scopes {
		if !slices.Contains(spec.Scopes, v1alpha1.TokenScope(scope)) {
			spec.Scopes = append(spec.Scopes, v1alpha1.TokenScope(scope))
		}
	}
	of := s.Scope.Target()
	t := &v1alpha1.BotToken{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: of.GetNamespace(), Name: v1alpha1.NaturalName(of.GetName(), r.Name, rand.Text()), Labels: s.Caller.Creator(),
		},
		Spec: spec,
	}
	// The digest is in the spec, so a server needs no status to recognize the token.
	if err := f.tokens.Create(ctx, t); err != nil {
		return NewToken{}, err
	}
	return NewToken{Token: show(t, f.tokens.Show(t, nil)), Value: value}, nil
}

func (r *createRequest) check() error {
	var a endpoint.Attributes
	if strings.TrimSpace(r.Name) == "" {
		a.Refuse("name", "can't be blank")
	}
	if len(r.Scopes) == 0 {
		a.Refuse("scopes", "can't be blank")
	}
	a.Text("name", r.Name, maxText)
	a.Text("description", r.Description, maxText)
	return a.Err()
}

type rotateRequest struct {
	ExpiresAt endpoint.Optional[time.Time] `param:"expires_at" doc:"Day from which the token is no longer accepted; a week from now when omitted."`
}

type rotateOneRequest struct {
	tokenRequest
	rotateRequest
}

// rotateSelf replaces the value of the token of a bot of the project or group itself.
func (f *Family) rotateSelf(ctx context.Context, s auth.Subject, r *rotateRequest) (NewToken, error) {
	if s.Caller.Bot == nil || s.Caller.Bot.Target != s.Scope.Target().GetUID() {
		return NewToken{}, endpoint.Message(http.StatusMethodNotAllowed, "405 Method Not Allowed")
	}
	return f.replace(ctx, s, s.Caller.Bot.Token, r.ExpiresAt)
}

func (f *Family) rotate(ctx context.Context, s auth.Subject, r *rotateOneRequest) (NewToken, error) {
	t, err := f.find(ctx, s, r.TokenID)
	if err != nil {
		return NewToken{}, err
	}
	if err := own(s, t); err != nil {
		return NewToken{}, err
	}
	// The new value gives the caller all permissions of the bot.
	if catalog.RoleOf(t.Spec.Role) > s.Access.Role {
		return NewToken{}, endpoint.Forbidden("The role of the token is higher than yours").
			Describe("The token has the role %s, and you have the role %s.", t.Spec.Role, s.Access.Role)
	}
	return f.replace(ctx, s, t, r.ExpiresAt)
}

// own returns an error if the caller is a bot and the token belongs to another bot.
func own(s auth.Subject, t *v1alpha1.BotToken) error {
	if b := s.Caller.Bot; b != nil && !b.Is(t.UID) {
		return endpoint.Forbidden("The bot of a project or group access token cannot change other tokens")
	}
	return nil
}

func (f *Family) replace(ctx context.Context, s auth.Subject, old *v1alpha1.BotToken, day endpoint.Optional[time.Time]) (NewToken, error) {
	rotated, err := f.tokens.Rotate(ctx, s, old, day)
	return NewToken{Token: show(old, rotated.Token), Value: rotated.Value}, err
}

// revoke ends a token. It succeeds if the token had ended before.
func (f *Family) revoke(ctx context.Context, s auth.Subject, r *tokenRequest) (endpoint.None, error) {
	t, err := f.find(ctx, s, r.TokenID)
	if err == nil {
		err = own(s, t)
	}
	if err != nil {
		return endpoint.None{}, err
	}
	return endpoint.None{}, f.tokens.Revoke(ctx, s, r.TokenID)
}
