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

	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/token"
	"github.com/forgeplane/forgeplane/internal/watermark"
)

// access decides with the tokens of the registry what a request may do. It implements distribution.AccessController.
type access struct {
	keys  *token.Keys
	names *registry.Names
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
	if !c.insufficient {
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
	if errors.Is(b.err, watermark.ErrBehind) {
		_ = registry.Refuse(r.Context(), registry.Unavailable)
		return nil, b.err
	}
	if !ok || b.err != nil {
		asked.invalid = ok
		return nil, asked
	}
	grant := &distribution.Grant{User: distribution.UserInfo{Name: b.claims.Subject}}
	for _, w := range wanted {
		allowed, ok := b.claims.Allows(w.Type, w.Name, w.Action)
		if ok && w.Type == token.TypeRepository {
			var err error
			if ok, err = a.same(r, w.Name, allowed.Meta); err != nil {
				// The library would answer with an empty body.
				_ = registry.Refuse(r.Context(), registry.Unavailable)
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

// same reports whether a name still means the project that the token is for. The server that has issued the token may know the project earlier
// than this one.
func (a *access) same(r *http.Request, name string, is *token.Meta) (bool, error) {
	ctx := r.Context()
	same, known, err := a.compare(ctx, name, is)
	if err == nil && (!same || !known) && a.outdated != nil {
		var again bool
		if again, err = a.outdated(ctx); again {
			same, _, err = a.compare(ctx, name, is)
		}
	}
	return same, err
}

// compare is same with what this server knows, and reports whether it knows a project with the name.
func (a *access) compare(ctx context.Context, name string, is *token.Meta) (same, known bool, err error) {
	means, err := a.names.Resolve(ctx, name)
	if errors.Is(err, registry.ErrNoProject) {
		return true, false, nil // there is nothing behind the name, as the answer says
	}
	if err != nil {
		return false, false, err
	}
	return is != nil && is.ProjectUID == means.Project.UID, true, nil
}
