package bottoken

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/accesstoken"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/bottoken"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/frame"
)

// claimSecret prevents two tokens from sharing one value.
func (c *Controller) claimSecret(ctx context.Context, t *v1alpha1.BotToken) error {
	ref := t.Spec.SecretRef
	if ref == nil {
		return nil
	}
	holder, err := c.holderOfSecret(ctx, t)
	if err != nil {
		return err
	}
	err = c.frame.Take(ctx, t, holder, secretClaim(t), "key %s of Secret %s", ref.Key, ref.Name)
	if err != nil {
		setDigest(t, "")
	}
	return err
}

func secretClaim(t *v1alpha1.BotToken) claim.Claim {
	return claim.TokenSecret(t.Namespace, t.Spec.SecretRef.Name, t.Spec.SecretRef.Key)
}

func (c *Controller) holderOfSecret(ctx context.Context, t *v1alpha1.BotToken) (*v1alpha1.BotToken, error) {
	sharing, err := bottoken.OfSecret(ctx, c.frame.Catalog, t.Namespace, *t.Spec.SecretRef)
	return claim.Holder(sharing, secretClaim(t)), err
}

// digest keeps the declared digest, or the digest of the value in the Secret. It generates a value if the Secret has none.
func (c *Controller) digest(ctx context.Context, t *v1alpha1.BotToken) error {
	ref := t.Spec.SecretRef
	if ref == nil {
		return c.claimValue(ctx, t, t.Spec.Digest, "the value of spec.digest")
	}
	rotate, err := credential.Rotation(t)
	if err != nil {
		return err
	}
	s, needed, err := c.secret(ctx, t)
	if err != nil || !needed {
		return err
	}
	generated, err := c.generate(ctx, t, s, rotate)
	if err != nil {
		return err
	}
	value := s.Data[ref.Key]
	if err := credential.CheckValue(value); err != nil {
		setDigest(t, "")
		return frame.Stalled(v1alpha1.ReasonInvalid, "key %s of Secret %s holds a value %w: %s", ref.Key, ref.Name, err, credential.Remedy)
	}
	if err := c.claimValue(ctx, t, credential.Digest(string(value)), "key %s of Secret %s", ref.Key, ref.Name); err != nil {
		return err
	}
	switch {
	case generated && rotate != "":
		t.Status.Rotated = rotate
	case rotate != "" && rotate != t.Status.Rotated:
		return credential.NotRotated(s, ref.Key)
	}
	return nil
}

// secret returns the Secret of a token, and whether the token needs it. A token that has ended needs no Secret. It keeps its digest, so that a
// caller with the value learns that the token has ended.
func (c *Controller) secret(ctx context.Context, t *v1alpha1.BotToken) (s *corev1.Secret, needed bool, err error) {
	s, err = offer(t).Check(ctx, c.frame.Client)
	if c.ended(t) && frame.IsWaiting(err) {
		return nil, false, nil
	}
	if err == nil {
		err = credential.Opaque(s)
	}
	if err != nil {
		setDigest(t, "")
		return nil, false, err
	}
	return s, len(s.Data[t.Spec.SecretRef.Key]) > 0 || !c.ended(t), nil
}

// generate puts a value into the Secret if there is none, or if another one is requested, and reports whether the value was generated.
func (c *Controller) generate(ctx context.Context, t *v1alpha1.BotToken, s *corev1.Secret, rotate string) (bool, error) {
	key := t.Spec.SecretRef.Key
	generated := credential.IsGenerated(s, key)
	asked := rotate != "" && rotate != t.Status.Rotated && rotate != s.Annotations[v1alpha1.AnnotationRotated]
	if len(s.Data[key]) > 0 && (!generated || !asked || c.ended(t)) {
		return generated, nil
	}
	// The token has the same prefix as a personal one, so that a leaked one is recognized.
	return true, credential.Replace(ctx, c.frame.Client, t, s, key, accesstoken.Generate())
}

func offer(t *v1alpha1.BotToken) credential.Offer {
	return credential.Offer{Holder: t, Field: "secretRef", Name: t.Spec.SecretRef.Name, Kind: v1alpha1.SecretOfBotToken}
}

// claimValue puts a value into force by its digest, unless another token has the same value, which identifies its caller as that token.
// Messages do not name the other token, which can be that of another tenant. format and args name the place of the value.
func (c *Controller) claimValue(ctx context.Context, t *v1alpha1.BotToken, digest, format string, args ...any) error {
	taken, err := c.taken(ctx, t, digest)
	if err == nil && !taken {
		var by catalog.Taken
		by, err = c.frame.Catalog.Take(ctx, t, claim.BotTokenValue(digest))
		if by.Busy {
			err = apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("claims").GroupResource(), t.Name, errBusy)
		}
		taken = by.By != nil
	}
	switch {
	case err != nil:
		return err
	case taken:
		claim.Release(t, claim.BotTokenValue(digest))
		setDigest(t, "")
		return frame.Stalled(v1alpha1.ReasonAlreadyExists, format+" is the value of another token: %s", append(args, credential.Remedy)...)
	default:
		setDigest(t, digest)
		return nil
	}
}

// errBusy says that another token takes the value at the moment.
var errBusy = errors.New("another token is taking the value")

// taken reports whether another token holds a value according to the declarations.
func (c *Controller) taken(ctx context.Context, t *v1alpha1.BotToken, digest string) (bool, error) {
	if _, err := accesstoken.ByDigest(ctx, c.frame.Catalog, digest); !errors.Is(err, catalog.ErrNotFound) {
		return err == nil, err
	}
	holder, err := bottoken.Holder(ctx, c.frame.Catalog, t, digest)
	if err == nil && holder.UID != t.UID {
		// The holder may have released it before this token began to wait.
		c.frame.Catalog.Register().Wait(claim.BotTokenValue(digest), "BotToken", client.ObjectKeyFromObject(t))
		holder, err = bottoken.Holder(ctx, c.frame.Catalog, t, digest)
	}
	return err == nil && holder.UID != t.UID, err
}

// setDigest sets the digest of another value, or none, and releases the previous one.
func setDigest(t *v1alpha1.BotToken, digest string) {
	if t.Status.Digest != "" && t.Status.Digest != digest {
		claim.Release(t, claim.BotTokenValue(t.Status.Digest))
	}
	t.Status.Digest = digest
}

// removeValue removes the value that Forgeplane generated for a token that has ended. A value that somebody else has put into the Secret
// stays there, and so does one that belongs to another token.
func (c *Controller) removeValue(ctx context.Context, t *v1alpha1.BotToken) error {
	ref := t.Spec.SecretRef
	if ref == nil {
		return nil
	}
	var s corev1.Secret
	if err := c.frame.Client.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: ref.Name}, &s); err != nil {
		return client.IgnoreNotFound(err)
	}
	if s.Labels[v1alpha1.LabelSecret] != v1alpha1.SecretOfBotToken || !credential.IsGenerated(&s, ref.Key) {
		return nil
	}
	if holder, err := c.holderOfSecret(ctx, t); err != nil || holder.UID != t.UID {
		return err
	}
	before := s.DeepCopy()
	credential.Remove(&s, ref.Key)
	told := audit.WithReason(ctx, audit.Event{Action: "remove", Reason: "the value under the key " + ref.Key + ": the token has ended"})
	if err := c.frame.Client.Patch(told, &s, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("removing the value from Secret %s: %w", ref.Name, err)
	}
	return nil
}
