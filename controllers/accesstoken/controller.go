// Package accesstoken reconciles access tokens: it generates or adopts the values of declared tokens in Secrets, and keeps their digests.
package accesstoken

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/accesstoken"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/orphan"
)

// minLength is the minimum length of an adopted value, because the digest of a short one could be guessed.
const minLength = 20

// Controller reconciles access tokens.
type Controller struct {
	orphans   *orphan.Collector
	clock     clock.PassiveClock
	namespace string
	frame     *frame.Frame[*v1alpha1.AccessToken]
}

// New returns the controller. o removes the objects of deleted users, and namespace is the platform's namespace, which has the Secrets.
func New(b frame.Base, o *orphan.Collector, clk clock.PassiveClock, namespace string) *Controller {
	return &Controller{orphans: o, clock: clk, namespace: namespace, frame: frame.New(b, frame.WithClaims(claims))}
}

func claims(_ context.Context, _ *catalog.Catalog, t *v1alpha1.AccessToken) (all []claim.Claim, err error) {
	if ref := t.Spec.SecretRef; ref != nil {
		all = append(all, claim.TokenSecret("", ref.Name, ref.Key))
	}
	if t.Status.Digest != "" {
		all = append(all, claim.TokenValue(t.Status.Digest)) // until the Secret is read
	}
	return all, nil
}

// +kubebuilder:rbac:groups=forgeplane.dev,resources=accesstokens,verbs=get;patch;delete
// +kubebuilder:rbac:groups=forgeplane.dev,resources=accesstokens/status,verbs=patch
// +kubebuilder:rbac:groups="",namespace=forgeplane-system,resources=secrets,verbs=list;watch;create;patch

// SetupWithManager starts the controller with mgr.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	return c.frame.Watch(mgr, o).
		OnReferred(&v1alpha1.User{}, c.frame.Catalog.Referrers(&v1alpha1.AccessTokenList{}, catalog.IndexUser)).
		OnReleased(&v1alpha1.AccessToken{}, c.frame.Catalog.Peers(&v1alpha1.AccessTokenList{}, accesstoken.IndexSecret, secretName)).
		OnReferred(&corev1.Secret{}, c.frame.Catalog.Peers(&v1alpha1.AccessTokenList{}, accesstoken.IndexSecret, c.name)).
		OnReferred(&v1alpha1.AccessToken{}, c.rivals).
		Complete(reconcile.AsReconciler(c.frame.Client, c))
}

// Reconcile reconciles one token.
func (c *Controller) Reconcile(ctx context.Context, t *v1alpha1.AccessToken) (reconcile.Result, error) {
	// Tokens that must be removed are removed whether or not the user exists.
	return c.frame.Run(ctx, t, c.end, c.clear, c.resolveUser, c.claimSecret, c.digest, c.accept)
}

func (c *Controller) resolveUser(ctx context.Context, t *v1alpha1.AccessToken) error {
	t.Status.Username = ""
	u, err := c.frame.Catalog.User(ctx, t.Spec.UserRef)
	if err == nil {
		t.Status.Username = u.Spec.Username
	}
	// The digest stays: a server may know the user already, and looks them up on each request.
	return c.orphans.Unresolved(ctx, t, "userRef", t.Spec.UserRef, err)
}

// claimSecret prevents two tokens from sharing one value.
func (c *Controller) claimSecret(ctx context.Context, t *v1alpha1.AccessToken) error {
	if t.Spec.SecretRef == nil {
		return nil
	}
	sharing, err := accesstoken.OfSecret(ctx, c.frame.Catalog, *t.Spec.SecretRef)
	if err != nil {
		return err
	}
	k := claim.TokenSecret("", t.Spec.SecretRef.Name, t.Spec.SecretRef.Key)
	err = c.frame.Take(ctx, t, claim.Holder(sharing, k), k, "key %s of Secret %s", t.Spec.SecretRef.Key, t.Spec.SecretRef.Name)
	if err != nil {
		setDigest(t, "")
	}
	return err
}

// digest keeps the declared digest, or the digest of the value in the Secret. It generates a value if the Secret has none.
func (c *Controller) digest(ctx context.Context, t *v1alpha1.AccessToken) error {
	ref := t.Spec.SecretRef
	if ref == nil {
		return c.claimValue(ctx, t, t.Spec.Digest, "the value of spec.digest")
	}
	secret := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: ref.Name}}
	err := c.frame.Client.Get(ctx, client.ObjectKeyFromObject(&secret), &secret)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Secret %s: %w", ref.Name, err)
	}
	value := secret.Data[ref.Key]
	if len(value) == 0 && accesstoken.Ended(t, c.clock.Now()) {
		return nil // The digest stays, so that a caller with the value learns that the token has ended.
	}
	if len(value) == 0 {
		if value, err = c.generate(ctx, t, &secret, apierrors.IsNotFound(err)); err != nil {
			return err
		}
	}
	if len(value) < minLength {
		setDigest(t, "")
		return frame.Waiting(v1alpha1.ReasonInvalid, "key %s of Secret %s holds a value shorter than %d characters: remove the key to get a generated one",
			ref.Key, ref.Name, minLength)
	}
	return c.claimValue(ctx, t, credential.Digest(string(value)), "the value under key %s of Secret %s", ref.Key, ref.Name)
}

// claimValue puts a value into force by its digest, unless another token holds the same value, which identifies its caller as that token.
// format and args name the value in messages.
func (c *Controller) claimValue(ctx context.Context, t *v1alpha1.AccessToken, digest, format string, args ...any) error {
	k := claim.TokenValue(digest)
	holder, err := accesstoken.Holder(ctx, c.frame.Catalog, t, digest)
	if err == nil && holder.UID != t.UID {
		// The holder may have released it before this token began to wait.
		c.frame.Catalog.Register().Wait(k, "AccessToken", client.ObjectKeyFromObject(t))
		holder, err = accesstoken.Holder(ctx, c.frame.Catalog, t, digest)
	}
	if err != nil {
		return err
	}
	if err := c.frame.Take(ctx, t, holder, k, format, args...); err != nil {
		setDigest(t, "")
		return err
	}
	setDigest(t, digest)
	return nil
}

// setDigest sets the digest of another value, or none, and releases the previous one.
func setDigest(t *v1alpha1.AccessToken, digest string) {
	if t.Status.Digest != "" && t.Status.Digest != digest {
		claim.Release(t, claim.TokenValue(t.Status.Digest))
	}
	t.Status.Digest = digest
}

// rivals returns the tokens that wait for the value that a token has, or had before it changed.
func (c *Controller) rivals(_ context.Context, obj client.Object) []reconcile.Request {
	digest := obj.(*v1alpha1.AccessToken).Status.Digest
	if digest == "" {
		return nil
	}
	names := c.frame.Catalog.Waiting(obj)(claim.TokenValue(digest).String())
	requests := make([]reconcile.Request, len(names))
	for i, n := range names {
		requests[i].NamespacedName = n
	}
	return requests
}

// generate writes a value to the Secret: to a new one, which is deleted with the token, or to the existing one.
func (c *Controller) generate(ctx context.Context, t *v1alpha1.AccessToken, secret *corev1.Secret, absent bool) ([]byte, error) {
	before, value := secret.DeepCopy(), accesstoken.Generate()
	key := t.Spec.SecretRef.Key
	ctx = audit.WithReason(ctx, audit.Event{Action: "generate", Reason: "a value under the key " + key})
	credential.Generate(secret, key, t.UID, value)
	if absent {
		if err := controllerutil.SetControllerReference(t, secret, c.frame.Client.Scheme(), controllerutil.WithBlockOwnerDeletion(false)); err != nil {
			return nil, fmt.Errorf("setting the owner of Secret %s: %w", secret.Name, err)
		}
		err := c.frame.Client.Create(ctx, secret)
		if apierrors.IsAlreadyExists(err) {
			// The cache is outdated: its state of tenants' Secrets is taken for its state of all Secrets.
			err = apierrors.NewConflict(corev1.Resource("secrets"), secret.Name, err)
		}
		if err != nil {
			return nil, fmt.Errorf("creating Secret %s: %w", secret.Name, err)
		}
		return []byte(value), nil
	}
	if len(secret.OwnerReferences) > 0 && !metav1.IsControlledBy(secret, t) {
		// Another token created the Secret, so it must not be deleted with that token alone.
		if err := controllerutil.SetOwnerReference(t, secret, c.frame.Client.Scheme()); err != nil {
			return nil, fmt.Errorf("setting the owner of Secret %s: %w", secret.Name, err)
		}
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.frame.Client.Patch(ctx, secret, patch); err != nil {
		return nil, fmt.Errorf("writing Secret %s: %w", secret.Name, err)
	}
	return []byte(value), nil
}

// accept sets the condition of a token that is not accepted.
func (c *Controller) accept(ctx context.Context, t *v1alpha1.AccessToken) error {
	if t.Spec.Revoked {
		return frame.Settled(v1alpha1.ReasonRevoked, "the token is revoked")
	}
	expires := t.Spec.ExpiresAt
	if accesstoken.Ended(t, c.clock.Now()) {
		return frame.Settled(v1alpha1.ReasonExpired, "the token expired at %s", expires.UTC().Format(time.RFC3339))
	}
	u, err := c.frame.Catalog.User(ctx, t.Spec.UserRef)
	if err != nil {
		return frame.Unresolved("userRef", err)
	}
	if !u.Active() {
		return frame.Waiting(v1alpha1.ReasonBlocked, "the user %s is %s", u.Spec.Username, strings.ToLower(string(u.InState())))
	}
	return nil
}

// name returns the name of a Secret of the platform. It is also called for Secrets of tenants.
func (c *Controller) name(_ context.Context, obj client.Object) []string {
	if obj.GetNamespace() != c.namespace {
		return nil
	}
	return []string{obj.GetName()}
}

func secretName(_ context.Context, obj client.Object) []string {
	if ref := obj.(*v1alpha1.AccessToken).Spec.SecretRef; ref != nil {
		return []string{ref.Name}
	}
	return nil
}
