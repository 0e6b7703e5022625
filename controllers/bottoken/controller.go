// Package bottoken reconciles the access tokens of projects and groups: it generates or adopts the values of declared tokens in Secrets, keeps
// their digests, and ends the tokens.
package bottoken

import (
	"context"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/bottoken"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/orphan"
)

// kept is the time for which a token that was created over REST remains visible after it has ended.
const kept = 30 * 24 * time.Hour

// Controller reconciles bot tokens.
type Controller struct {
	orphans *orphan.Collector
	clock   clock.PassiveClock
	frame   *frame.Frame[*v1alpha1.BotToken]
}

// New returns the controller; o removes the tokens that have ended.
func New(b frame.Base, o *orphan.Collector, clk clock.PassiveClock) *Controller {
	return &Controller{orphans: o, clock: clk, frame: frame.New(b, frame.WithClaims(claims))}
}

// claims returns the claims of a token; none if its project or group does not exist.
func claims(ctx context.Context, cat *catalog.Catalog, t *v1alpha1.BotToken) (all []claim.Claim, err error) {
	if _, err := cat.Target(ctx, t); err != nil {
		return nil, catalog.IgnoreNotFound(err)
	}
	if ref := t.Spec.SecretRef; ref != nil {
		all = append(all, claim.TokenSecret(t.Namespace, ref.Name, ref.Key))
	}
	if digest := bottoken.Digest(t); digest != "" {
		all = append(all, claim.BotTokenValue(digest)) // until the Secret is read
	}
	return all, nil
}

// +kubebuilder:rbac:groups=forgeplane.dev,resources=bottokens,verbs=get;patch;delete
// +kubebuilder:rbac:groups=forgeplane.dev,resources=bottokens/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=list;watch;patch

// SetupWithManager starts the controller with mgr.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	tokens := &v1alpha1.BotTokenList{}
	return c.frame.Watch(mgr, o).
		OnReferred(&corev1.Secret{}, c.frame.Catalog.Peers(tokens, credential.IndexSecret, credential.Keys)).
		OnReleased(&v1alpha1.BotToken{}, c.frame.Catalog.Peers(tokens, credential.IndexSecret, secretKey)).
		OnReferred(&v1alpha1.BotToken{}, c.rivals).
		OnReferred(&v1alpha1.User{}, c.frame.Catalog.Peers(tokens, catalog.IndexID, botID)).
		Complete(reconcile.AsReconciler(c.frame.Client, c))
}

// Reconcile reconciles one token.
func (c *Controller) Reconcile(ctx context.Context, t *v1alpha1.BotToken) (reconcile.Result, error) {
	// Tokens that must be removed are removed whether or not the project exists.
	return c.frame.Run(ctx, t, c.end, c.clear,
		frame.InScope(c.frame, frame.Reachable(c.frame), c.describe), c.claimSecret, c.digest, c.accept)
}

// describe shows which user the bot is.
func (c *Controller) describe(ctx context.Context, t *v1alpha1.BotToken, s catalog.Scope) error {
	id := bottoken.UserID(t)
	t.Status.UserID, t.Status.Username = id, bottoken.Username(t, s)
	u, err := catalog.ByID[*v1alpha1.User](ctx, c.frame.Catalog, id)
	if err == nil {
		return frame.Stalled(v1alpha1.ReasonAlreadyExists, "the bot of this token would have the id %d, which User %s has: make a new token", id, u.Name)
	}
	return catalog.IgnoreNotFound(err)
}

// botID maps a user to the id of the token whose bot would have the id of the user.
func botID(_ context.Context, obj client.Object) []string {
	return []string{strconv.FormatInt(bottoken.TokenID(obj.(*v1alpha1.User).RESTID()), 10)}
}

// end records when a token has ended, removes the value that Forgeplane generated for it, and schedules a reconcile for the end of a token.
func (c *Controller) end(ctx context.Context, t *v1alpha1.BotToken) error {
	if !c.ended(t) {
		t.Status.EndedAt = nil
		if t.Spec.ExpiresAt != nil {
			return frame.RequeueAfter(t.Spec.ExpiresAt.Sub(c.clock.Now()))
		}
		return nil
	}
	if t.Status.EndedAt == nil {
		t.Status.EndedAt = &metav1.Time{Time: c.clock.Now().Truncate(time.Second)}
	}
	return c.removeValue(ctx, t)
}

// clear removes a token that was created over REST once it has ended long enough ago, and schedules a reconcile for that time.
func (c *Controller) clear(ctx context.Context, t *v1alpha1.BotToken) error {
	if t.Spec.Digest == "" || !c.ended(t) {
		return nil
	}
	if left := kept - c.clock.Since(t.Status.EndedAt.Time); left > 0 {
		return frame.RequeueAfter(left)
	}
	return c.orphans.Remove(ctx, t, "was created over REST and ended a month ago")
}

// accept sets the condition of a token that has ended.
func (c *Controller) accept(_ context.Context, t *v1alpha1.BotToken) error {
	switch {
	case t.Spec.Revoked:
		return frame.Settled(v1alpha1.ReasonRevoked, "the token is revoked")
	case c.ended(t):
		return frame.Settled(v1alpha1.ReasonExpired, "the token expired at %s", t.Spec.ExpiresAt.UTC().Format(time.RFC3339))
	default:
		return nil
	}
}

func (c *Controller) ended(t *v1alpha1.BotToken) bool { return bottoken.Ended(t, c.clock.Now()) }

// rivals returns the tokens that wait for the value that a token has, or had before it changed.
func (c *Controller) rivals(_ context.Context, obj client.Object) []reconcile.Request {
	digest := bottoken.Digest(obj.(*v1alpha1.BotToken))
	if digest == "" {
		return nil
	}
	names := c.frame.Catalog.Waiting(obj)(claim.BotTokenValue(digest).String())
	requests := make([]reconcile.Request, len(names))
	for i, n := range names {
		requests[i].NamespacedName = n
	}
	return requests
}

func secretKey(_ context.Context, obj client.Object) []string {
	return credential.KeysOf(obj, obj.(*v1alpha1.BotToken).Spec.SecretRef)
}
