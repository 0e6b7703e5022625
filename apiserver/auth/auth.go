// Package auth identifies callers and decides what they may do.
package auth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/accesstoken"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/bottoken"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/pipeline"
	"github.com/forgeplane/forgeplane/internal/runner"
	"github.com/forgeplane/forgeplane/internal/tokenuse"
)

// Errors of authentication.
var (
	// ErrInvalidToken says that a token does not identify a caller. ErrExpired and ErrRevoked wrap it.
	ErrInvalidToken = errors.New("the token is not known")
	// ErrExpired says that a token has expired.
	ErrExpired = fmt.Errorf("the token has expired: %w", ErrInvalidToken)
	// ErrRevoked says that a token was revoked.
	ErrRevoked = fmt.Errorf("the token was revoked: %w", ErrInvalidToken)
	// ErrBlocked says that a token is valid but its user is blocked.
	ErrBlocked = errors.New("the account is blocked")
	// ErrDeactivated says that a token is valid but its user is deactivated. It wraps ErrBlocked.
	ErrDeactivated = fmt.Errorf("the account is deactivated: %w", ErrBlocked)
)

// Caller is the identity behind a request. The zero value is the anonymous caller.
type Caller struct {
	// User is nil for an anonymous caller, and for an administrator of the cluster without a User. For a bot it only describes the bot: no
	// such User is declared.
	User *v1alpha1.User
	// Bot is the bot of a project or group that calls; nil for everybody else.
	Bot *bottoken.Bot
	// Admin is true for an administrator of the instance.
	Admin bool
	// Token is the token that the caller presented, an AccessToken or the BotToken of a bot; nil for an anonymous caller and for a Kubernetes
	// identity.
	Token v1alpha1.Identified
	// Scopes limit what the caller may do.
	Scopes []v1alpha1.TokenScope
	// Runner is the runner that calls, and Registration that of a program that becomes one. Both have no user. Job is the job whose token the caller
	// presented.
	Runner       *runner.Runner
	Registration *runner.Registration
	Job          *pipeline.Job
}

// Anonymous reports whether the caller has not signed in.
func (c Caller) Anonymous() bool { return c.User == nil && !c.Admin }

// External reports whether the restrictions of external users apply to the caller.
func (c Caller) External() bool { return c.User != nil && c.User.Spec.External && !c.Admin }

// insider reports whether internal groups and projects are open to the caller.
func (c Caller) insider() bool { return !c.Anonymous() && !c.External() }

// Auditor reports whether the caller can read every group and project.
func (c Caller) Auditor() bool { return c.User != nil && c.User.Spec.Auditor }

// keyed returns a context whose work counts for the caller: for the user, or for the Kubernetes identity that acts without one. Such an
// identity gets the share of callers who have not signed in, because a tenant can have many identities; an identity that administers the
// instance does not. A caller without an identity keeps the address that ctx has.
func (c Caller) keyed(ctx context.Context) context.Context {
	switch {
	case c.Runner != nil:
		return fair.With(ctx, fair.Runner(c.Runner.ID))
	case c.User == nil && c.Job != nil:
		return fair.With(ctx, fair.Runner(c.Job.RunnerID))
	}
	if c.User != nil {
		return fair.With(ctx, c.Key())
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

// Key returns the key that the work for a caller with a user counts for. All bots of one project or group share a key.
func (c Caller) Key() fair.Key {
	if c.Bot != nil {
		return fair.Bots(string(c.Bot.Target))
	}
	return fair.User(c.User.RESTID())
}

// Creator returns the label of objects that count toward the quota of the caller. It is empty if the caller acts without a user. The objects
// of a bot count for the user who created its token, if it was created over REST.
func (c Caller) Creator() map[string]string {
	switch {
	case c.Bot != nil:
		if creator := c.Bot.Token.Labels[v1alpha1.LabelCreator]; creator != "" {
			return map[string]string{v1alpha1.LabelCreator: creator}
		}
		return nil
	case c.User == nil:
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

// Account is Person without bots, for what a declared object refers to: nothing can refer to a bot.
func (c Caller) Account() (*v1alpha1.User, error) {
	if c.Bot != nil {
		return nil, endpoint.Forbidden("The bot of a project or group access token cannot do this")
	}
	return c.Person()
}

// View returns the groups and projects of a catalog as the caller sees them.
func (c Caller) View(cat *catalog.Catalog, now time.Time) *catalog.View {
	if c.Bot != nil {
		return cat.ViewOf(c.Bot.Bot)
	}
	return cat.View(c.User, now)
}

// HasScope reports whether the token has at least one of the scopes.
func (c Caller) HasScope(one ...v1alpha1.TokenScope) bool {
	return slices.ContainsFunc(one, func(s v1alpha1.TokenScope) bool { return slices.Contains(c.Scopes, s) })
}

// Viewer tells callers apart by what they can see, where answers are remembered. It is comparable.
type Viewer struct {
	user types.UID
	// version is the version of the user, who can become external or an auditor.
	version string
	admin   bool
	bot     catalog.Bot
}

// Viewer returns the viewer that the caller is.
func (c Caller) Viewer() Viewer {
	v := Viewer{admin: c.Admin}
	if c.User != nil {
		v.user, v.version = c.User.UID, c.User.ResourceVersion
	}
	if c.Bot != nil {
		v.bot = c.Bot.Bot
	}
	return v
}

// Administrators knows which Kubernetes identities administer the instance.
type Administrators interface {
	// Include reports whether the request of ctx comes from an administrator.
	Include(ctx context.Context) (bool, error)
}

// Uses is told of tokens that are used; a tokenuse.Recorder is. Note must not wait.
type Uses interface {
	Note(token database.Subject, at time.Time)
}

// Authenticator identifies the callers of tokens and Kubernetes identities.
type Authenticator struct {
	catalog        *catalog.Catalog
	clock          clock.PassiveClock
	administrators Administrators
	uses           Uses
	runners        Runners
	jobs           Jobs
	collaborations Collaborations
}

// NewAuthenticator returns an authenticator that looks up tokens in cat. administrators may be nil if no Kubernetes identities call.
func NewAuthenticator(cat *catalog.Catalog, clk clock.PassiveClock, administrators Administrators) *Authenticator {
	return &Authenticator{catalog: cat, clock: clk, administrators: administrators}
}

// Noting sets the recorder of the tokens that identify callers. Without it, uses of tokens are not recorded.
func (a *Authenticator) Noting(u Uses) *Authenticator {
	a.uses = u
	return a
}

// Token returns the caller of an access token. The error is ErrInvalidToken or ErrBlocked, or the error of a lookup. A call costs one hash
// and two lookups in memory.
func (a *Authenticator) Token(ctx context.Context, value string) (Caller, error) {
	c, err := a.byDigest(ctx, credential.Digest(value))
	if err == nil && a.uses != nil {
		a.uses.Note(database.Subject{Kind: useOf(c.Token), ID: c.Token.RESTID(), UID: c.Token.GetUID()}, a.clock.Now())
	}
	return c, err
}

// useOf returns the kind of a token in the activity database.
func useOf(t v1alpha1.Identified) string {
	if _, personal := t.(*v1alpha1.AccessToken); personal {
		return tokenuse.KindAccessToken
	}
	return tokenuse.KindBotToken
}

// byDigest is like Token, but takes the digest.
func (a *Authenticator) byDigest(ctx context.Context, digest string) (Caller, error) {
	t, err := accesstoken.ByDigest(ctx, a.catalog, digest)
	if errors.Is(err, catalog.ErrNotFound) {
		return a.bot(ctx, digest)
	}
	if err != nil {
		return Caller{}, err
	}
	record := audit.From(ctx)
	record.Token(t)
	if t.Spec.Revoked || !t.DeletionTimestamp.IsZero() {
		return Caller{}, ErrRevoked
	}
	if accesstoken.Expired(t, a.clock.Now()) {
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

// bot is byDigest for the tokens of projects and groups.
func (a *Authenticator) bot(ctx context.Context, digest string) (Caller, error) {
	t, err := bottoken.ByDigest(ctx, a.catalog, digest)
	if errors.Is(err, catalog.ErrNotFound) {
		return Caller{}, ErrInvalidToken
	}
	if err != nil {
		return Caller{}, err
	}
	record := audit.From(ctx)
	record.Token(t)
	switch {
	case t.Spec.Revoked || !t.DeletionTimestamp.IsZero():
		return Caller{}, ErrRevoked
	case bottoken.Expired(t, a.clock.Now()):
		return Caller{}, ErrExpired
	}
	b, err := bottoken.Of(ctx, a.catalog, t)
	if errors.Is(err, catalog.ErrNotFound) {
		return Caller{}, ErrInvalidToken
	}
	if err != nil {
		return Caller{}, err
	}
	record.User(b.User)
	return Caller{User: b.User, Bot: &b, Token: t, Scopes: t.Spec.Scopes}, nil
}

// SignIn returns the caller of an access token or of the token of a running job, with the errors of Token and Job.
func (a *Authenticator) SignIn(ctx context.Context, value string) (Caller, error) {
	if strings.HasPrefix(value, pipeline.TokenPrefix) {
		return a.Job(ctx, value)
	}
	return a.Token(ctx, value)
}

// Credential returns the digest and the UID of the token that the caller presented, for Issued. The token of a job has no UID.
func (c Caller) Credential() (digest string, uid types.UID) {
	if c.Job != nil {
		return c.Job.TokenDigest, ""
	}
	return digestOf(c.Token), c.Token.GetUID()
}

// Issued returns the caller of a token that was presented earlier, with the same errors as SignIn. It does not count as a use of the token.
func (a *Authenticator) Issued(ctx context.Context, digest string, uid types.UID) (Caller, error) {
	if uid == "" {
		return a.jobByDigest(ctx, digest)
	}
	c, err := a.byDigest(ctx, digest)
	if err == nil && c.Token.GetUID() != uid {
		err = ErrInvalidToken
	}
	if err != nil {
		return Caller{}, err
	}
	return c, nil
}

// digestOf returns the digest by which a token was found.
func digestOf(t v1alpha1.Identified) string {
	if t, ok := t.(*v1alpha1.AccessToken); ok {
		return t.Status.Digest
	}
	return bottoken.Digest(t.(*v1alpha1.BotToken))
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
	now, err := a.Issued(ctx, digestOf(c.Token), c.Token.GetUID())
	switch {
	case err != nil:
		return Caller{}, err
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

// usable returns an error if no request may act as a user.
func (a *Authenticator) usable(u *v1alpha1.User) error {
	switch {
	case u.InState() == v1alpha1.UserDeactivated:
		return ErrDeactivated
	case !u.Active() || !u.DeletionTimestamp.IsZero():
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
