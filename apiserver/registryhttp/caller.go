package registryhttp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/registry/token"
)

// bearerKey is the context key of a bearer.
type bearerKey struct{}

// bearer has the claims of the token of a request and its current caller, or err if the token is not accepted.
type bearer struct {
	claims token.Claims
	caller auth.Caller
	err    error
}

// Writes reports whether a request changes what clients of the registry see, for the audit log. An upload alone changes nothing.
func Writes(r *http.Request) bool {
	return r.Method == http.MethodDelete || r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/manifests/")
}

// IsOfJob reports whether the token of a request seems to be one that was issued to a job. It does not verify the token.
func IsOfJob(r *http.Request) bool {
	_, claims, _ := strings.Cut(r.Header.Get("Authorization"), ".")
	claims, _, _ = strings.Cut(claims, ".")
	text, err := base64.RawURLEncoding.DecodeString(claims)
	return err == nil && bytes.Contains(text, []byte(`"auth_type":"`+ofJob+`"`))
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
	if b.err == nil {
		ctx, b = h.known(ctx, b)
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

// known adds the caller of a token to it and to a context, unless the access token for which it was issued is no longer accepted.
func (h *Handler) known(ctx context.Context, b bearer) (context.Context, bearer) {
	b.caller, b.err = h.access.caller(ctx, b.claims)
	if invalid(b.err) && h.access.outdated != nil { // the server that has issued the token may know the access token earlier
		again, behind := h.access.outdated(ctx)
		if b.err = cmp.Or(behind, b.err); again {
			b.caller, b.err = h.access.caller(ctx, b.claims)
		}
	}
	if b.err == nil && !b.caller.Anonymous() {
		ctx = fair.With(ctx, b.caller.Key())
	}
	return ctx, b
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
