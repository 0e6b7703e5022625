// Package auth identifies callers and decides what they may do.
package auth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/accesstoken"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/fair"
)

// Errors of authentication.
var (
	// ErrInvalidToken says that a token identifies nobody. ErrExpired and ErrRevoked wrap it.
	ErrInvalidToken = errors.New("the token is not known")
	// ErrExpired says that a token has expired.
	ErrExpired = fmt.Errorf("the token has expired: %w", ErrInvalidToken)
	// ErrRevoked says that a token was revoked.
	ErrRevoked = fmt.Errorf("the token was revoked: %w", ErrInvalidToken)
	// ErrBlocked says that a token is valid but its user is blocked.
	ErrBlocked = errors.New("the account is blocked")
)

// Caller is the identity behind a request. The zero value is the anonymous caller.
type Caller struct {
	// User is nil for an anonymous caller, and for an administrator of the cluster without a User.
	User *v1alpha1.User
	// Admin is true for an administrator of the instance.
	Admin bool
	// Token is the access token that the caller presented; nil for an anonymous caller and for a Kubernetes identity.
	Token *v1alpha1.AccessToken
	// Scopes limit what the caller may do.
	Scopes []v1alpha1.TokenScope
}

// Anonymous reports whether the caller has not signed in.
func (c Caller) Anonymous() bool { return c.User == nil && !c.Admin }

// keyed returns a context whose work counts for the caller: for the user, or for the Kubernetes identity that acts without one. Such an
// identity gets the share of callers who have not signed in, because a tenant can have many identities; an identity that administers the
// instance does not. A caller without an identity keeps the address that ctx has.
func (c Caller) keyed(ctx context.Context) context.Context {
	if c.User != nil {
		return fair.With(ctx, fair.User(c.User.RESTID()))
	}
	if name, ok := IdentityFrom(ctx); ok {
		k := fair.Identity(name)
		if !c.Admin {
			k = k.Unsigned()
		}
		return fair.With(ctx, k)
	}
	return ctx
}

// Creator returns the label that marks objects that the caller creates and that count against a user's limits. It is empty if the caller
// acts without a user.
func (c Caller) Creator() map[string]string {
	if c.User == nil {
		return nil
	}
	return map[string]string{v1alpha1.LabelCreator: strconv.FormatInt(c.User.RESTID(), 10)}
}

// Is reports whether the caller is the user with an id.
func (c Caller) Is(id int64) bool { return c.User != nil && c.User.RESTID() == id }

// Person returns the user that the caller acts as. An administrator of the cluster can act without a user; the error is then an answer for
// the client.
func (c Caller) Person() (*v1alpha1.User, error) {
	if c.User == nil {
		return nil, endpoint.Forbidden("Your Kubernetes identity is not linked to a user: a User must name it in spec.kubernetes.username")
	}
	return c.User, nil
}

// HasScope reports whether the token has at least one of the scopes.
func (c Caller) HasScope(one ...v1alpha1.TokenScope) bool {
	return slices.ContainsFunc(one, func(s v1alpha1.TokenScope) bool { return slices.Contains(c.Scopes, s) })
}

// Administrators knows which Kubernetes identities administer the instance.
type Administrators interface {
	// Include reports whether the request of ctx comes from an administrator.
	Include(ctx context.Context) (bool, error)
}

// Authenticator identifies the callers of tokens and Kubernetes identities.
type Authenticator struct {
	catalog        *catalog.Catalog
	clock          clock.PassiveClock
	administrators Administrators
}

// NewAuthenticator returns an authenticator that looks up tokens in cat. administrators may be nil if no Kubernetes identities call.
func NewAuthenticator(cat *catalog.Catalog, clk clock.PassiveClock, administrators Administrators) *Authenticator {
	return &Authenticator{catalog: cat, clock: clk, administrators: administrators}
}

// Token returns the caller of an access token. The error is ErrInvalidToken or ErrBlocked, or the error of a lookup. A call costs one hash
// and two lookups in memory.
func (a *Authenticator) Token(ctx context.Context, value string) (Caller, error) {
	return a.byDigest(ctx, credential.Digest(value))
}

// byDigest is Token for the digest of a token.
func (a *Authenticator) byDigest(ctx context.Context, digest string) (Caller, error) {
	t, err := accesstoken.ByDigest(ctx, a.catalog, digest)
	if errors.Is(err, catalog.ErrNotFound) {
		return Caller{}, ErrInvalidToken
	}
	if err != nil {
		return Caller{}, err
	}
	record := audit.From(ctx)
	record.Token(t)
	if t.Spec.Revoked || !t.DeletionTimestamp.IsZero() {
		return Caller{}, ErrRevoked
	}
	if t.Spec.ExpiresAt != nil && !a.clock.Now().Before(t.Spec.ExpiresAt.Time) {
		return Caller{}, ErrExpired
	}
	u, err := a.catalog.User(ctx, t.Spec.UserRef)
	switch {
	case errors.Is(err, catalog.ErrNotFound):
		return Caller{}, ErrInvalidToken
	case err != nil:
		return Caller{}, err
	}
	record.User(u)
	return Caller{User: u, Admin: u.Spec.Admin, Token: t, Scopes: t.Spec.Scopes}, a.usable(u)
}

// Again returns the current state of a caller, for a decision that is made some time after they were admitted. The error is ErrInvalidToken
// or ErrBlocked if the token or the user is no longer valid. A Kubernetes identity is taken from ctx.
func (a *Authenticator) Again(ctx context.Context, c Caller) (Caller, error) {
	if c.Token == nil {
		identity, ok := IdentityFrom(ctx)
		if !ok {
			return c, nil // an anonymous caller stays anonymous
		}
		now, err := a.Kubernetes(ctx, identity)
		if err == nil && !sameUser(c.User, now.User) {
			err = ErrInvalidToken
		}
		return now, err
	}
	now, err := a.byDigest(ctx, c.Token.Status.Digest)
	switch {
	case err != nil:
		return Caller{}, err
	case now.Token.UID != c.Token.UID:
		return Caller{}, ErrInvalidToken
	case sameUser(c.User, now.User):
		return now, nil
	default:
		return a.sudoAgain(ctx, now, c.User)
	}
}

// sudoAgain is Again for an administrator who acts as another user.
func (a *Authenticator) sudoAgain(ctx context.Context, now Caller, as *v1alpha1.User) (Caller, error) {
	if as == nil || !now.Admin || !now.HasScope(v1alpha1.ScopeSudo) {
		return Caller{}, ErrInvalidToken
	}
	u, err := a.catalog.User(ctx, v1alpha1.Reference{ID: as.RESTID()})
	switch {
	case errors.Is(err, catalog.ErrNotFound), err == nil && !sameUser(u, as):
		return Caller{}, ErrInvalidToken
	case err != nil:
		return Caller{}, err
	}
	now.User, now.Admin = u, u.Spec.Admin
	return now, a.usable(u)
}

// sameUser reports whether both are the same user, and not two users who had the same name or id one after the other.
func sameUser(a, b *v1alpha1.User) bool {
	return a == nil && b == nil || a != nil && b != nil && a.UID == b.UID
}

// usable returns an error if nobody may act as a user.
func (a *Authenticator) usable(u *v1alpha1.User) error {
	switch {
	case u.Spec.State == v1alpha1.UserBlocked || !u.DeletionTimestamp.IsZero():
		return ErrBlocked
	case u.Status.ID == 0 || u.Status.ID != u.RESTID():
		// Another user holds the id by which the rest of the forge knows them.
		return ErrInvalidToken
	default:
		return nil
	}
}

// identityKey is the context key of the Kubernetes identity that the server has authenticated.
type identityKey struct{}

// WithIdentity returns a context for requests from a Kubernetes identity, with the name that kube-apiserver gives it.
func WithIdentity(ctx context.Context, username string) context.Context {
	return context.WithValue(ctx, identityKey{}, username)
}

// IdentityFrom returns the Kubernetes identity of a request.
func IdentityFrom(ctx context.Context) (username string, ok bool) {
	username, ok = ctx.Value(identityKey{}).(string)
	return username, ok
}

// Kubernetes returns the caller of a Kubernetes identity: the user who declares the identity, or a caller without a user. Either can
// administer the instance if the identity has the permission in the cluster.
func (a *Authenticator) Kubernetes(ctx context.Context, username string) (Caller, error) {
	var c Caller
	record := audit.From(ctx)
	record.Identity(username)
	u, err := a.catalog.UserByKubernetes(ctx, username)
	switch {
	case errors.Is(err, catalog.ErrNotFound):
	case err != nil:
		return Caller{}, err
	default:
		record.User(u)
		if err := a.usable(u); err != nil {
			return Caller{}, err
		}
		c = Caller{User: u, Admin: u.Spec.Admin}
	}
	if !c.Admin && a.administrators != nil {
		c.Admin, err = a.administrators.Include(ctx)
		return c, err
	}
	return c, nil
}
