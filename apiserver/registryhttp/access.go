package registryhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/distribution/distribution/v3/registry/api/errcode"
	distribution "github.com/distribution/distribution/v3/registry/auth"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/token"
	"github.com/forgeplane/forgeplane/internal/watermark"
)

// access decides with the tokens of the registry what a request may do. It implements distribution.AccessController.
type access struct {
	keys   *token.Keys
	rights rights
	// realm is the URL at which clients get tokens.
	realm string
	// outdated is Options.Outdated.
	outdated func(ctx context.Context) (bool, error)
}

// challenge asks the client for a token with more access.
type challenge struct {
	realm  string
	wanted []distribution.Access
	// denied is the first that a valid token does not allow.
	denied distribution.Access
	// insufficient says that the client has sent a valid token.
	insufficient, invalid bool
}

var _ distribution.Challenge = challenge{}

// Error implements error.
func (c challenge) Error() string {
	if c.insufficient {
		return "the token does not allow the request"
	}
	return "a token is required"
}

// SetHeaders implements distribution.Challenge (RFC 6750, section 3).
func (c challenge) SetHeaders(_ *http.Request, w http.ResponseWriter) {
	text := fmt.Sprintf("Bearer realm=%q,service=%q", c.realm, token.Service)
	if scope := scopeOf(c.wanted); scope != "" {
		text += fmt.Sprintf(",scope=%q", scope)
	}
	switch {
	case c.invalid:
		text += `,error="invalid_token"`
	case c.insufficient:
		text += `,error="insufficient_scope"`
	}
	w.Header().Set("WWW-Authenticate", text)
}

// scopeOf returns the scopes that ask for access, with a repository once.
func scopeOf(wanted []distribution.Access) string {
	type resource struct{ kind, name string }
	var order []resource
	actions := map[resource][]string{}
	for _, a := range wanted {
		r := resource{a.Type, a.Name}
		if actions[r] == nil {
			order = append(order, r)
		}
		if !slices.Contains(actions[r], a.Action) {
			actions[r] = append(actions[r], a.Action)
		}
	}
	scopes := make([]string, len(order))
	for i, r := range order {
		scopes[i] = r.kind + ":" + r.name + ":" + strings.Join(actions[r], ",")
	}
	return strings.Join(scopes, " ")
}

// refusal is the answer to a client whose token does not suffice. It says the same of what does not exist and of what the client must not see.
func (c challenge) refusal() errcode.Error {
	w := c.denied
	switch {
	case c.invalid:
		return errcode.ErrorCodeUnauthorized.WithMessage("the token has expired or is not valid: sign in again").WithDetail(c.wanted)
	case !c.insufficient:
		return errcode.ErrorCodeUnauthorized.WithDetail(c.wanted)
	}
	return errcode.ErrorCodeUnauthorized.WithMessage(fmt.Sprintf(
		"%s does not exist, or your access token and your role in its project do not allow you to %s it, or the project's container registry is off", w.Name, w.Action,
	)).WithDetail(c.wanted)
}

// Authorized implements distribution.AccessController.
func (a *access) Authorized(r *http.Request, wanted ...distribution.Access) (*distribution.Grant, error) {
	asked := challenge{realm: a.realm, wanted: wanted}
	b, ok := r.Context().Value(bearerKey{}).(bearer)
	switch {
	case !ok, invalid(b.err):
		asked.invalid = ok
		_ = registry.Refuse(r.Context(), asked.refusal())
		return nil, asked
	case b.err != nil:
		// The library would answer with an empty body.
		_ = registry.Refuse(r.Context(), unavailable(b.err))
		return nil, b.err
	}
	grant := &distribution.Grant{User: distribution.UserInfo{Name: b.claims.Subject}}
	for _, w := range wanted {
		allowed, ok := b.claims.Allows(w.Type, w.Name, w.Action)
		if ok {
			var err error
			if ok, err = a.still(r.Context(), b, w, allowed.Meta); err != nil {
				_ = registry.Refuse(r.Context(), unavailable(err))
				return nil, err
			}
		}
		if !ok {
			asked.insufficient, asked.denied = true, w
			_ = registry.Refuse(r.Context(), asked.refusal())
			return nil, asked
		}
		grant.Resources = append(grant.Resources, w.Resource)
	}
	return grant, nil
}

// invalid reports whether an error says that a token is no longer accepted, or that the access token for which it was issued is not.
func invalid(err error) bool {
	return errors.Is(err, token.ErrInvalid) || errors.Is(err, auth.ErrInvalidToken) || errors.Is(err, auth.ErrBlocked)
}

// unavailable returns the answer to a request about which nothing can be decided now.
func unavailable(err error) errcode.Error {
	if errors.Is(err, watermark.ErrBehind) {
		return errcode.ErrorCodeUnavailable.WithMessage(watermark.Behind)
	}
	return registry.Unavailable
}

// caller returns the caller of a token as they are now. The error is one of auth if the access token for which it was issued is not accepted any
// more.
func (a *access) caller(ctx context.Context, c token.Claims) (auth.Caller, error) {
	switch {
	case c.Credential != nil:
		return a.rights.authenticator.Issued(ctx, c.Credential.Digest, c.Credential.UID)
	case c.Subject != "": // a token with a subject must have a credential
		return auth.Caller{}, auth.ErrInvalidToken
	default:
		return auth.Caller{}, nil
	}
}

// still reports whether the caller of a token can do now what the token allows. The server that has issued the token may know the project and the
// role of the caller earlier than this one.
func (a *access) still(ctx context.Context, b bearer, wanted distribution.Access, is *token.Meta) (bool, error) {
	ok, known, err := a.decide(ctx, b.caller, wanted, is)
	if err != nil || ok && known || a.outdated == nil {
		return ok, err
	}
	again, err := a.outdated(ctx)
	if err != nil || !again {
		return ok, err
	}
	caller, err := a.caller(ctx, b.claims)
	if invalid(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	ok, _, err = a.decide(ctx, caller, wanted, is)
	return ok, err
}

// decide is still with what this server knows. It also reports whether it knows what the token is about.
func (a *access) decide(ctx context.Context, c auth.Caller, wanted distribution.Access, is *token.Meta) (ok, known bool, err error) {
	if wanted.Type != token.TypeRepository {
		granted := catalogAccess(c, token.Scope{Name: wanted.Name, Actions: []string{wanted.Action}})
		return len(granted.Actions) > 0, true, nil
	}
	at, err := a.rights.of(ctx, c, wanted.Name)
	if errors.Is(err, registry.ErrNoProject) {
		return true, false, nil // there is nothing behind the name, as the answer says
	}
	if err != nil {
		return false, false, err
	}
	return is != nil && is.ProjectUID == at.Project.UID && at.may[wanted.Action], true, nil
}
