// Package triggertoken reconciles trigger tokens: it makes or adopts their values in Secrets and keeps the digests.
package triggertoken

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
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
	"github.com/forgeplane/forgeplane/internal/reference"
)

// Controller reconciles trigger tokens.
type Controller struct {
	client  client.Client
	live    client.Reader
	store   *credential.Store
	orphans *orphan.Collector
	catalog *catalog.Catalog
	clock   clock.PassiveClock
	frame   *frame.Frame[*v1alpha1.TriggerToken]
}

// New returns the controller; live reads past the cache, s is where values are kept that nobody has a Secret for, and o removes what is
// left of users who are gone.
func New(
	c client.Client, live client.Reader, s *credential.Store, o *orphan.Collector, r events.EventRecorder, cat *catalog.Catalog,
	ids frame.Allocator, clk clock.PassiveClock,
) *Controller {
	return &Controller{
		client: c, live: live, store: s, orphans: o, catalog: cat, clock: clk,
		frame: frame.New(c, r,
			frame.WithIDs[*v1alpha1.TriggerToken](ids),
			frame.WithClaims(cat.Register(), func(_ context.Context, t *v1alpha1.TriggerToken) ([]claim.Claim, error) {
				if t.Spec.SecretRef == nil {
					return nil, nil // its own Secret is nobody else's
				}
				return []claim.Claim{claim.TokenSecret(t.Namespace, t.SecretRef().Name, t.SecretRef().Key)}, nil
			}),
			frame.WithOwner(func(ctx context.Context, t *v1alpha1.TriggerToken) (client.Object, error) {
				return cat.Target(ctx, t.Namespace, &t.Spec.ProjectRef, nil)
			})),
	}
}

// +kubebuilder:rbac:groups=forgeplane.dev,resources=triggertokens,verbs=get;patch;delete
// +kubebuilder:rbac:groups=forgeplane.dev,resources=triggertokens/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=list;watch;patch
// +kubebuilder:rbac:groups="",namespace=forgeplane-system,resources=secrets,verbs=list;watch;create;patch

// SetupWithManager starts the controller with mgr.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	tokens := &v1alpha1.TriggerTokenList{}
	return frame.NewWatch(mgr, "triggertoken", &v1alpha1.TriggerToken{}, o).
		OnReferred(&v1alpha1.Project{}, c.catalog.Referrers(tokens, catalog.IndexProject)).
		OnReferred(&v1alpha1.User{}, c.catalog.Referrers(tokens, catalog.IndexUser)).
		OnDeclared(&v1alpha1.Membership{}, c.catalog.Peers(tokens, catalog.IndexUser, c.memberKeys)).
		// Only its readiness tells that a membership has expired.
		OnReady(&v1alpha1.Membership{}, c.catalog.Peers(tokens, catalog.IndexUser, c.memberKeys)).
		OnReferred(&corev1.Secret{}, c.catalog.Peers(tokens, catalog.IndexSecret, catalog.SecretKeys)).
		OnReferred(&v1alpha1.TriggerToken{}, c.catalog.Peers(tokens, catalog.IndexSecret, c.rivals)).
		OnReleased(&v1alpha1.TriggerToken{}, c.catalog.Peers(tokens, catalog.IndexSecret, ownSecretKey)).
		OnReleased(&v1alpha1.TriggerToken{}, c.catalog.Peers(tokens, catalog.IndexID, catalog.SpecID)).
		OnClaimReleased(&v1alpha1.TriggerToken{}, c.catalog.Waiting(&v1alpha1.TriggerToken{})).
		Complete(reconcile.AsReconciler(c.client, c))
}

// Reconcile brings one token up to date.
func (c *Controller) Reconcile(ctx context.Context, t *v1alpha1.TriggerToken) (reconcile.Result, error) {
	return c.frame.Run(ctx, t, c.resolveProject, c.resolveOwner, c.claimSecret, c.digest)
}

func (c *Controller) resolveProject(ctx context.Context, t *v1alpha1.TriggerToken) error {
	p, err := c.catalog.Project(ctx, t.Namespace, t.Spec.ProjectRef)
	if err != nil {
		return reference.Unresolved("projectRef", err)
	}
	scope, err := c.catalog.ProjectScope(ctx, p)
	if err != nil {
		return reference.Unresolved("projectRef", err)
	}
	return reference.Reachable(ctx, c.catalog, "projectRef", p, scope.Path())
}

// resolveOwner says whose state or role keeps the token from being accepted. The digest stays: whoever accepts a token looks at its
// owner each time.
func (c *Controller) resolveOwner(ctx context.Context, t *v1alpha1.TriggerToken) error {
	if t.Spec.OwnerRef == nil {
		return nil
	}
	u, err := c.catalog.User(ctx, *t.Spec.OwnerRef)
	if err != nil {
		return c.orphans.Unresolved(ctx, t, "ownerRef", *t.Spec.OwnerRef, err)
	}
	if u.Spec.State == v1alpha1.UserBlocked {
		return frame.Waiting(v1alpha1.ReasonBlocked, "the user %s is blocked", u.Spec.Username)
	}
	p, err := c.catalog.Project(ctx, t.Namespace, t.Spec.ProjectRef)
	if err != nil {
		return reference.Unresolved("projectRef", err)
	}
	may, err := c.catalog.MayOwnTriggerToken(ctx, u, t, p, c.clock.Now())
	switch {
	case err != nil || may:
		return err
	case u.Spec.Admin:
		return frame.Waiting(v1alpha1.ReasonOwnerNotAllowed,
			"the user %s is an administrator, who owns only what he has made over REST himself", u.Spec.Username)
	default:
		return frame.Waiting(v1alpha1.ReasonOwnerNotAllowed, "the user %s is no Maintainer of the project", u.Spec.Username)
	}
}

// memberKeys maps a membership to the keys of its user.
func (c *Controller) memberKeys(ctx context.Context, obj client.Object) []string {
	u, err := c.catalog.User(ctx, obj.(*v1alpha1.Membership).Spec.UserRef)
	if err != nil {
		return nil // whose own appearance wakes up his tokens
	}
	return catalog.UserKeys(u)
}

// claimSecret keeps two tokens from sharing one value.
func (c *Controller) claimSecret(ctx context.Context, t *v1alpha1.TriggerToken) error {
	if t.Spec.SecretRef == nil {
		return nil // its own Secret is nobody else's
	}
	ref := t.SecretRef()
	sharing, err := c.catalog.TriggerTokensOfSecret(ctx, t.Namespace, ref)
	if err != nil {
		return err
	}
	k := claim.TokenSecret(t.Namespace, ref.Name, ref.Key)
	err = reference.Take(ctx, c.catalog, t, claim.Holder(sharing, k), k, "key %s of Secret %s", ref.Key, ref.Name)
	if err != nil {
		t.Status.Digest = ""
	}
	return err
}

// rivals are the Secrets that hold the value which a token has, or had before it changed: those who name them may have it next.
func (c *Controller) rivals(ctx context.Context, obj client.Object) (keys []string) {
	t := obj.(*v1alpha1.TriggerToken)
	own := ownSecretKey(ctx, t)[0]
	for _, key := range c.catalog.SecretsOfDigest(ctx, t.Status.Digest) {
		if key != own {
			keys = append(keys, key)
		}
	}
	return keys
}

func ownSecretKey(_ context.Context, obj client.Object) []string {
	return []string{catalog.SecretKey(obj.GetNamespace(), obj.(*v1alpha1.TriggerToken).SecretRef().Name)}
}
