// Package registryhttp serves the container registry: the tokens of clients at /jwt/auth, and the API of the OCI distribution specification at
// /v2.
package registryhttp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/ratelimit"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/record"
	"github.com/forgeplane/forgeplane/internal/registry/token"
	"github.com/forgeplane/forgeplane/internal/watermark"
)

const (
	// TokenPath is the path at which clients get tokens.
	TokenPath = "/jwt/auth"
	// DefaultLifetime is the lifetime of a token (API behaviour, section 2.11).
	DefaultLifetime = 5 * time.Minute
	// retryAfter is the default of Retry-After, in seconds.
	retryAfter = "10"
	// ofJob is the type of tokens that are issued to jobs.
	ofJob = "build"
	// maxScopes is the maximum number of scopes in a request.
	maxScopes = 100
)

// TokenOptions are the options of a TokenServer.
type TokenOptions struct {
	Authenticator *auth.Authenticator
	Catalog       *catalog.Catalog
	Names         *registry.Names
	Records       *record.Store
	Keys          *token.Keys
	// Lifetime of a token; 0 stands for DefaultLifetime.
	Lifetime time.Duration
	// Slots are shared by the callers whose requests are served; empty stands for DefaultSlots.
	Slots fair.Limits
	// Outdated reports whether a refusal may be older than what a client has written before; nil where that cannot be.
	Outdated func(ctx context.Context) (bool, error)
	Log      logr.Logger
}

// TokenServer issues tokens to those who sign in with HTTP Basic authentication: any username, and as the password an access token
// with a scope for the registry or the token of a running job.
type TokenServer struct {
	o      TokenOptions
	rights rights
	slots  *fair.Slots
}

// NewTokenServer returns a server.
func NewTokenServer(o TokenOptions) *TokenServer {
	if o.Lifetime == 0 {
		o.Lifetime = DefaultLifetime
	}
	if o.Slots == (fair.Limits{}) {
		o.Slots = DefaultSlots()
	}
	return &TokenServer{
		o: o, rights: rights{o.Authenticator, o.Catalog, o.Names}, slots: fair.New("registry-tokens", "requests for tokens of the container registry", o.Slots),
	}
}

// Slots returns the slots of requests, which are a collector of metrics.
func (s *TokenServer) Slots() *fair.Slots { return s.slots }

// refusal is an answer of the token endpoint other than a token.
type refusal struct {
	status  int
	code    string
	message string
	// plain leaves out the status in the body.
	plain bool
}

// Error implements error.
func (r *refusal) Error() string { return r.message }

func (r *refusal) body() map[string]any {
	body := map[string]any{"errors": []map[string]string{{"code": r.code, "message": r.message}}}
	if !r.plain {
		body["http_status"] = r.status
	}
	return body
}

// The answers of API behaviour, section 2.11.
var (
	badCredentials = &refusal{status: http.StatusUnauthorized, code: "UNAUTHORIZED", plain: true,
		message: "HTTP Basic: Access denied. Sign in with your username, and as password an access token with the scope read_registry, write_registry or api."}
	forbidden = &refusal{status: http.StatusForbidden, code: "DENIED", message: "access forbidden"}
)

// ServeHTTP answers with a token, or says why it does not issue one.
func (s *TokenServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		// Clients that prefer POST try GET then.
		w.Header().Set("Allow", "GET, HEAD")
		answer(w, http.StatusMethodNotAllowed, (&refusal{status: http.StatusMethodNotAllowed, code: "UNSUPPORTED", message: "Tokens are issued for GET."}).body())
		return
	}
	text, err := s.issue(r)
	if err == nil {
		w.Header().Set("Cache-Control", "no-store")
		answer(w, http.StatusOK, map[string]any{"token": text, "expires_in": int(s.o.Lifetime.Seconds())})
		return
	}
	var refused *refusal
	var often *ratelimit.Exceeded
	var full *fair.Busy
	switch {
	case errors.As(err, &full):
		w.Header().Set("Retry-After", fmt.Sprint(int(full.RetryAfter.Seconds())+1))
		refused = &refusal{status: http.StatusTooManyRequests, code: "TOOMANYREQUESTS", message: full.Error()}
	case errors.As(err, &often):
		w.Header().Set("Retry-After", fmt.Sprint(int(often.Wait.Seconds())+1))
		refused = &refusal{status: http.StatusTooManyRequests, code: "TOOMANYREQUESTS", message: often.Error()}
	case errors.Is(err, watermark.ErrBehind):
		refused = &refusal{status: http.StatusServiceUnavailable, code: "UNAVAILABLE", message: watermark.Behind}
	case !errors.As(err, &refused):
		s.o.Log.Error(err, "Failed to issue a token for the registry")
		refused = &refusal{status: http.StatusServiceUnavailable, code: "UNAVAILABLE", message: "The token cannot be issued at the moment. Try again later."}
	}
	if refused.status == http.StatusNotFound {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	switch refused.status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Basic realm="Forgeplane"`)
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", retryAfter)
	}
	answer(w, refused.status, refused.body())
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may have gone
}

// issue returns the token for a request. Actions that the caller may not do are left out of it.
func (s *TokenServer) issue(r *http.Request) (string, error) {
	ctx, query := r.Context(), r.URL.Query()
	event := audit.From(ctx)
	event.Action("issue token", r.URL.EscapedPath())
	service := query.Get("service")
	if service != token.Service {
		return "", &refusal{status: http.StatusNotFound}
	}
	caller, err := s.caller(r)
	if err != nil {
		return "", err
	}
	if !caller.Anonymous() {
		ctx = fair.With(ctx, caller.Key())
	}
	if err := ratelimit.CountGit(ctx); err != nil {
		return "", err
	}
	leave, err := s.slots.Enter(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	scopes := scopesOf(query["scope"])
	claims, err := s.claims(ctx, caller, scopes)
	if err == nil && len(claims.Access) < len(scopes) && s.o.Outdated != nil {
		var again bool
		if again, err = s.o.Outdated(ctx); again {
			event.Again()
			claims, err = s.claims(ctx, caller, scopes)
		}
	}
	if err != nil {
		return "", err
	}
	if caller.Anonymous() && len(claims.Access) == 0 {
		return "", forbidden
	}
	return s.o.Keys.Issue(claims, service, s.o.Lifetime)
}

// scopesOf returns the scopes that a client asks for. Some clients send several in one parameter. Malformed ones are left out, as those that
// are denied.
func scopesOf(parameters []string) []token.Scope {
	var scopes []token.Scope
	for _, p := range parameters {
		for _, text := range strings.Fields(p) {
			if s, ok := token.ParseScope(text); ok && len(scopes) < maxScopes {
				scopes = append(scopes, s)
			}
		}
	}
	return scopes
}

// caller returns the caller who signs in, or the anonymous caller if the request has no credentials.
func (s *TokenServer) caller(r *http.Request) (auth.Caller, error) {
	if r.Header.Get("Authorization") == "" {
		return auth.Caller{}, nil
	}
	username, password, ok := r.BasicAuth()
	if !ok || username == "" {
		return auth.Caller{}, badCredentials
	}
	caller, err := s.o.Authenticator.SignIn(r.Context(), password)
	if errors.Is(err, auth.ErrInvalidToken) && s.o.Outdated != nil {
		again, behind := s.o.Outdated(r.Context())
		if err = cmp.Or(behind, err); again {
			caller, err = s.o.Authenticator.SignIn(r.Context(), password)
		}
	}
	switch {
	case errors.Is(err, auth.ErrInvalidToken):
		if err := ratelimit.CountFailedSignIn(r.Context()); err != nil {
			return auth.Caller{}, err
		}
		return auth.Caller{}, badCredentials
	case errors.Is(err, auth.ErrBlocked):
		return auth.Caller{}, forbidden
	case err != nil:
		return auth.Caller{}, err
	case !caller.HasScope(v1alpha1.ScopeAPI, v1alpha1.ScopeReadRegistry, v1alpha1.ScopeWriteRegistry):
		return auth.Caller{}, forbidden
	}
	return caller, nil
}

// claims returns the claims of a token for a caller: the actions of the scopes that the caller is allowed to perform.
func (s *TokenServer) claims(ctx context.Context, caller auth.Caller, scopes []token.Scope) (token.Claims, error) {
	var c token.Claims
	if caller.User != nil {
		digest, uid := caller.Credential()
		c.Subject, c.Type, c.Credential = caller.User.Spec.Username, "personal_access_token", &token.Credential{Digest: digest, UID: uid}
		if caller.Job != nil {
			c.Type = ofJob
		}
	}
	for _, scope := range scopes {
		var granted token.Access
		var err error
		switch scope.Type {
		case token.TypeRepository:
			granted, err = s.repository(ctx, caller, scope)
		case token.TypeRegistry:
			granted = catalogAccess(caller, scope)
		}
		if err != nil {
			return token.Claims{}, err
		}
		if len(granted.Actions) > 0 {
			c.Access = append(c.Access, granted)
		}
	}
	return c, nil
}

// catalogAccess grants administrators the list of all repositories, if they ask for exactly all actions on it.
func catalogAccess(caller auth.Caller, scope token.Scope) token.Access {
	if !caller.Admin || scope.Name != token.Catalog || !slices.Equal(scope.Actions, []string{token.All}) ||
		!caller.HasScope(v1alpha1.ScopeAPI, v1alpha1.ScopeReadRegistry) {
		return token.Access{}
	}
	return token.Access{Type: token.TypeRegistry, Name: token.Catalog, Actions: scope.Actions}
}

// repository grants the actions on a repository that the caller may do now. A grant of push creates the record of the repository.
func (s *TokenServer) repository(ctx context.Context, caller auth.Caller, scope token.Scope) (token.Access, error) {
	granted := token.Access{Type: scope.Type, Name: scope.Name}
	at, err := s.rights.of(ctx, caller, scope.Name)
	if errors.Is(err, registry.ErrNoProject) {
		return granted, nil
	}
	if err != nil {
		return granted, err
	}
	for _, a := range scope.Actions {
		switch {
		case !at.may[a]:
			audit.From(ctx).Refuse()
		case !slices.Contains(granted.Actions, a) && (a == token.Pull || !at.Project.Spec.Archived):
			granted.Actions = append(granted.Actions, a)
		}
	}
	if len(granted.Actions) == 0 {
		return granted, nil
	}
	if slices.Contains(granted.Actions, token.Push) || slices.Contains(granted.Actions, token.All) {
		_, err := s.o.Records.Ensure(ctx, at.Project.RESTID(), at.Project.UID, at.Image)
		if errors.Is(err, record.ErrTooMany) {
			return granted, &refusal{status: http.StatusForbidden, code: "DENIED", message: err.Error()}
		}
		if err != nil {
			return granted, err
		}
	}
	groups := at.scope.Groups
	granted.Meta = &token.Meta{
		ProjectPath: at.scope.Path(), ProjectID: at.Project.RESTID(), ProjectUID: at.Project.UID, RootNamespaceID: groups[len(groups)-1].RESTID(),
	}
	return granted, nil
}
