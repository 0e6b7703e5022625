package accesstoken

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/accesstoken"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/frame"
)

// kept is the time for which a token that was created over REST remains visible to its user after it has ended.
const kept = 30 * 24 * time.Hour

// end removes the value that Forgeplane generated for a token once the token has ended, and schedules a reconcile for that time. A value
// that somebody else has put into the Secret stays there.
func (c *Controller) end(ctx context.Context, t *v1alpha1.AccessToken) error {
	if !accesstoken.Ended(t, c.clock.Now()) {
		t.Status.EndedAt = nil
		if t.Spec.ExpiresAt != nil {
			return frame.RequeueAfter(t.Spec.ExpiresAt.Sub(c.clock.Now()))
		}
		return nil
	}
	if t.Status.EndedAt == nil {
		t.Status.EndedAt = &metav1.Time{Time: c.clock.Now().Truncate(time.Second)}
	}
	ref := t.Spec.SecretRef
	if ref == nil {
		return nil
	}
	secret := &corev1.Secret{}
	err := c.frame.Client.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: ref.Name}, secret)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if !credential.IsGenerated(secret, ref.Key) {
		return nil
	}
	sharing, err := accesstoken.OfSecret(ctx, c.frame.Catalog, *ref)
	if err != nil {
		return err
	}
	if holder := claim.Holder(sharing, claim.TokenSecret("", ref.Name, ref.Key)); holder == nil || holder.UID != t.UID {
		return nil // It belongs to another token.
	}
	before := secret.DeepCopy()
	credential.Remove(secret, ref.Key)
	told := audit.WithReason(ctx, audit.Event{Action: "remove", Reason: "the value under the key " + ref.Key + ": the token has ended"})
	if err := c.frame.Client.Patch(told, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("removing the value from Secret %s: %w", ref.Name, err)
	}
	return nil
}

// clear removes a token that was created over REST once it has ended long enough ago, and schedules a reconcile for that time.
func (c *Controller) clear(ctx context.Context, t *v1alpha1.AccessToken) error {
	if t.Spec.Digest == "" || !accesstoken.Ended(t, c.clock.Now()) {
		return nil
	}
	if left := kept - c.clock.Since(t.Status.EndedAt.Time); left > 0 {
		return frame.RequeueAfter(left)
	}
	return c.orphans.Remove(ctx, t, "was created over REST and ended a month ago")
}
