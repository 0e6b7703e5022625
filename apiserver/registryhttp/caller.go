package registryhttp

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/registry/token"
)

// bearerKey is the context key of a bearer.
type bearerKey struct{}

// bearer is what the token of a request says, or err if the token is not valid.
type bearer struct {
	claims token.Claims
	err    error
}

// Writes reports whether a request changes what clients of the registry see, for the audit log. An upload alone changes nothing.
func Writes(r *http.Request) bool {
	return r.Method == http.MethodDelete || r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/manifests/")
}

// identify verifies the token of a request once. It tells the slots and the audit log who calls.
func (h *Handler) identify(r *http.Request) *http.Request {
	ctx := r.Context()
	record := audit.From(ctx)
	record.Action(strings.ToLower(r.Method)+" image", r.URL.EscapedPath())
	scheme, text, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		record.Skip() // clients first ask without a token where to get one
		return r
	}
	var b bearer
	b.claims, b.err = h.access.keys.Verify(strings.TrimSpace(text))
	if b.err == nil && b.claims.Subject != "" {
		ctx, b.err = h.known(ctx, b.claims)
	}
	ctx = context.WithValue(ctx, bearerKey{}, b)
	if name, ok := repositoryOf(r.URL.Path); ok && record != nil {
		if means, err := h.registry.Names.Resolve(ctx, name); err == nil {
			if s, err := h.catalog.ProjectScope(ctx, means.Project); err == nil {
				record.About(means.Project, s.Path())
			}
		}
	}
	return r.WithContext(ctx)
}

// errBlocked says that the user of a token cannot act any more.
var errBlocked = errors.New("the account is blocked or deleted")

// known adds the bearer of a token to a context, unless the user was blocked or deleted after the token was issued. The bots of a project or group
// have no object.
func (h *Handler) known(ctx context.Context, c token.Claims) (context.Context, error) {
	if c.Bot {
		audit.From(ctx).User(&v1alpha1.User{Spec: v1alpha1.UserSpec{Username: c.Subject}})
		return fair.With(ctx, fair.Bots(c.Subject)), nil
	}
	u, err := h.catalog.UserByUsername(ctx, c.Subject)
	if err != nil && h.access.outdated != nil { // the server that has issued the token may know the user earlier
		again, behind := h.access.outdated(ctx)
		if err = cmp.Or(behind, err); again {
			u, err = h.catalog.UserByUsername(ctx, c.Subject)
		}
	}
	if errors.Is(err, catalog.ErrNotFound) {
		return ctx, errBlocked
	}
	if err != nil {
		return ctx, err
	}
	audit.From(ctx).User(u)
	if !u.Active() || !u.DeletionTimestamp.IsZero() {
		return ctx, errBlocked
	}
	return fair.With(ctx, fair.User(u.RESTID())), nil
}

// repositoryOf returns the name of the repository in a path.
func repositoryOf(path string) (name string, ok bool) {
	for _, marker := range []string{"/manifests/", "/blobs/", "/tags/"} {
		if at := strings.LastIndex(path, marker); at > len(Prefix) {
			return path[len(Prefix)+1 : at], true
		}
	}
	return "", false
}
