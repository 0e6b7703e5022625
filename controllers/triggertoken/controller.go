// Package triggertoken reconciles trigger tokens: it generates or adopts their values in Secrets, and keeps their digests.
package triggertoken

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/orphan"
	"github.com/forgeplane/forgeplane/internal/triggertoken"
)

// Controller reconciles trigger tokens.
type Controller struct {
	store   *credential.Store
	orphans *orphan.Collector
	clock   clock.PassiveClock
	frame   *frame.Frame[*v1alpha1.TriggerToken]
}

// New returns the controller. s stores the values of tokens without a secretRef, and o removes the objects of deleted users.
func New(b frame.Base, s *credential.Store, o *orphan.Collector, clk clock.PassiveClock) *Controller {
	return &Controller{store: s, orphans: o, clock: clk, frame: frame.New(b, frame.WithClaims(claims))}
}

func claims(_ context.Context, _ *catalog.Catalog, t *v1alpha1.TriggerToken) ([]claim.Claim, error) {
	if t.Spec.SecretRef == nil {
		return nil, nil // no other token can use its own Secret
	}
	return []claim.Claim{claim.TokenSecret(t.Namespace, t.Spec.SecretRef.Name, t.Spec.SecretRef.Key)}, nil
}

// +kubebuilder:rbac:groups=forgeplane.dev,resources=triggertokens,verbs=get;patch;delete
// +kubebuilder:rbac:groups=forgeplane.dev,resources=triggertokens/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=list;watch;patch
// +kubebuilder:rbac:groups="",namespace=forgeplane-system,resources=secrets,verbs=list;watch;create;patch

// SetupWithManager starts the controller with mgr.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	tokens := &v1alpha1.TriggerTokenList{}
	return c.frame.Watch(mgr, o).
		OnReferred(&v1alpha1.User{}, c.frame.Catalog.Referrers(tokens, catalog.IndexUser)).
		OnDeclared(&v1alpha1.Membership{}, c.frame.Catalog.Peers(tokens, catalog.IndexUser, c.memberKeys)).
		// Only the condition shows that a membership has expired.
		OnReady(&v1alpha1.Membership{}, c.frame.Catalog.Peers(tokens, catalog.IndexUser, c.memberKeys)).
		OnReferred(&corev1.Secret{}, c.frame.Catalog.Peers(tokens, credential.IndexSecret, credential.Keys)).
		OnReferred(&v1alpha1.TriggerToken{}, c.frame.Catalog.Peers(tokens, credential.IndexSecret, c.rivals)).
		OnReleased(&v1alpha1.TriggerToken{}, c.frame.Catalog.Peers(tokens, credential.IndexSecret, secretKeys)).
		Complete(reconcile.AsReconciler(c.frame.Client, c))
}

// Reconcile reconciles one token.
func (c *Controller) Reconcile(ctx context.Context, t *v1alpha1.TriggerToken) (reconcile.Result, error) {
	return c.frame.Run(ctx, t, frame.InScope(c.frame, frame.Reachable(c.frame), c.resolveOwner), c.claimSecret, c.digest)
}

// resolveOwner reports if the state or role of the owner prevents the token from being accepted. The digest stays, because the owner is
// checked each time the token is used.
func (c *Controller) resolveOwner(ctx context.Context, t *v1alpha1.TriggerToken, s catalog.Scope) error {
	if t.Spec.OwnerRef == nil {
		return nil
	}
	u, err := c.frame.Catalog.User(ctx, *t.Spec.OwnerRef)
	if err != nil {
		return c.orphans.Unresolved(ctx, t, "ownerRef", *t.Spec.OwnerRef, err)
	}
	if !u.Active() {
		return frame.Waiting(v1alpha1.ReasonBlocked, "the user %s is %s", u.Spec.Username, strings.ToLower(string(u.InState())))
	}
	may, err := triggertoken.MayOwn(ctx, c.frame.Catalog, u, t, s.Project, c.clock.Now())
	switch {
	case err != nil || may:
		return err
	case u.Spec.Admin:
		return frame.Waiting(v1alpha1.ReasonOwnerNotAllowed,
			"the user %s is an administrator: administrators can own only trigger tokens that they created over REST themselves", u.Spec.Username)
	default:
		return frame.Waiting(v1alpha1.ReasonOwnerNotAllowed, "the user %s is not a Maintainer of the project", u.Spec.Username)
	}
}

// memberKeys maps a membership to the keys of its user.
func (c *Controller) memberKeys(ctx context.Context, obj client.Object) []string {
	u, err := c.frame.Catalog.User(ctx, obj.(*v1alpha1.Membership).Spec.UserRef)
	if err != nil {
		return nil // the user's own event triggers their tokens
	}
	return catalog.UserKeys(u)
}

// claimSecret prevents two tokens from sharing one value.
func (c *Controller) claimSecret(ctx context.Context, t *v1alpha1.TriggerToken) error {
	ref := t.Spec.SecretRef
	if ref == nil {
		return nil // no other token can use its own Secret
	}
	sharing, err := triggertoken.OfSecret(ctx, c.frame.Catalog, t.Namespace, *ref)
	if err != nil {
		return err
	}
	k := claim.TokenSecret(t.Namespace, ref.Name, ref.Key)
	err = c.frame.Take(ctx, t, claim.Holder(sharing, k), k, "key %s of Secret %s", ref.Key, ref.Name)
	if err != nil {
		t.Status.Digest = ""
	}
	return err
}

// rivals returns the Secrets with the value that a token has, or had before it changed: tokens that name them may get it next.
func (c *Controller) rivals(ctx context.Context, obj client.Object) []string {
	own := secretKeys(ctx, obj)
	return slices.DeleteFunc(triggertoken.SecretsOfDigest(ctx, c.frame.Catalog, obj.(*v1alpha1.TriggerToken).Status.Digest), func(key string) bool {
		return slices.Contains(own, key)
	})
}

func secretKeys(_ context.Context, obj client.Object) []string {
	return credential.KeysOf(obj, obj.(*v1alpha1.TriggerToken).Spec.SecretRef)
}
