package accesstoken

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	values "github.com/forgeplane/forgeplane/internal/accesstoken"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/frame"
)

// ended reports whether a token is revoked or expired.
func (c *Controller) ended(t *v1alpha1.AccessToken) bool {
	return t.Spec.Revoked || t.Spec.ExpiresAt != nil && !c.clock.Now().Before(t.Spec.ExpiresAt.Time)
}

// end removes the value that Forgeplane generated for a token, when the token has ended, and looks again when it is going to. A
// value that somebody else has put into the Secret stays there.
func (c *Controller) end(ctx context.Context, t *v1alpha1.AccessToken) error {
	if !c.ended(t) {
		if t.Spec.ExpiresAt != nil {
			return frame.Again(t.Spec.ExpiresAt.Sub(c.clock.Now()))
		}
		return nil
	}
	ref := t.Spec.SecretRef
	if ref == nil {
		return nil
	}
	secret := &corev1.Secret{}
	err := c.client.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: ref.Name}, secret)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	// Earlier versions did not note what they generated, but owned the Secrets that they made.
	made := metav1.IsControlledBy(secret, t) && strings.HasPrefix(string(secret.Data[ref.Key]), values.Prefix)
	if !made && !credential.IsGenerated(secret, ref.Key) {
		return nil
	}
	sharing, err := c.catalog.TokensOfSecret(ctx, *ref)
	if err != nil {
		return err
	}
	if holder := claim.Holder(sharing, claim.TokenSecret("", ref.Name, ref.Key)); holder == nil || holder.UID != t.UID {
		return nil // It is another token's.
	}
	before := secret.DeepCopy()
	credential.Remove(secret, ref.Key)
	if err := c.client.Patch(ctx, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("removing the value from Secret %s: %w", ref.Name, err)
	}
	return nil
}
