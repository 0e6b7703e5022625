// Package auth tells who calls, and what the caller may do.
package auth

import (
	"context"
	"errors"
	"slices"

	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// Errors of authentication.
var (
	// ErrInvalidToken says that a token is unknown, expired or revoked, without telling which.
	ErrInvalidToken = errors.New("the token is not known, has expired or was revoked")
	// ErrBlocked says that the user behind a good token is blocked.
	ErrBlocked = errors.New("the account is blocked")
)

// Caller is who calls. The zero value is nobody in particular.
type Caller struct {
	// User is nil for an anonymous caller.
	User *v1alpha1.User
	// Scopes limit what the caller's token may be used for.
	Scopes []v1alpha1.TokenScope
}

// Anonymous reports whether nobody has signed in.
func (c Caller) Anonymous() bool { return c.User == nil }

// HasScope reports whether the token has any of the scopes.
func (c Caller) HasScope(any ...v1alpha1.TokenScope) bool {
	return slices.ContainsFunc(any, func(s v1alpha1.TokenScope) bool { return slices.Contains(c.Scopes, s) })
}

// Authenticator knows tokens.
type Authenticator struct {
	catalog *catalog.Catalog
	clock   clock.PassiveClock
}

// NewAuthenticator returns an authenticator that looks tokens up in cat.
func NewAuthenticator(cat *catalog.Catalog, clk clock.PassiveClock) *Authenticator {
	return &Authenticator{catalog: cat, clock: clk}
}

// Token returns the caller whom an access token stands for. It gives ErrInvalidToken or ErrBlocked, and costs one hash and
// two look-ups in memory.
func (a *Authenticator) Token(ctx context.Context, value string) (Caller, error) {
	t, err := a.catalog.TokenByValue(ctx, value)
	if errors.Is(err, catalog.ErrNotFound) {
		return Caller{}, ErrInvalidToken
	}
	if err != nil {
		return Caller{}, err
	}
	expired := t.Spec.ExpiresAt != nil && !a.clock.Now().Before(t.Spec.ExpiresAt.Time)
	if t.Spec.Revoked || expired || !t.DeletionTimestamp.IsZero() {
		return Caller{}, ErrInvalidToken
	}
	u, err := a.catalog.User(ctx, t.Spec.UserRef)
	switch {
	case errors.Is(err, catalog.ErrNotFound):
		return Caller{}, ErrInvalidToken
	case err != nil:
		return Caller{}, err
	case u.Spec.State == v1alpha1.UserBlocked || !u.DeletionTimestamp.IsZero():
		return Caller{}, ErrBlocked
	case u.Status.ID == 0 || u.Status.ID != u.Spec.ID:
		// Another user holds the id, which is what the rest of the forge knows him by.
		return Caller{}, ErrInvalidToken
	}
	return Caller{User: u, Scopes: t.Spec.Scopes}, nil
}
