package accesstoken

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/declare"
)

// grace is how long a server of an earlier version may take to create a token. Its last step is to make the token own the Secret.
const grace = 10 * time.Minute

// former returns the place where earlier versions kept the value of a token that was created over REST.
func former(t *v1alpha1.AccessToken) v1alpha1.SecretKeyReference {
	return v1alpha1.SecretKeyReference{Name: "token-" + t.Name, Key: "token"}
}

// formerSecret returns that Secret, or nil if it does not exist.
func (c *Controller) formerSecret(ctx context.Context, t *v1alpha1.AccessToken) (*corev1.Secret, error) {
	var s corev1.Secret
	err := c.frame.Client.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: former(t).Name}, &s)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", former(t).Name, err)
	}
	return &s, nil
}

// upgrade records the digest of a token that an earlier version created over REST, to replace the Secret with its value. forget removes the
// Secret afterwards, so the token is accepted at every point in between. unfinished is how long a server of an earlier version may still be
// creating the token, which stays unchanged until then.
func (c *Controller) upgrade(ctx context.Context, t *v1alpha1.AccessToken) (unfinished time.Duration, err error) {
	if t.Spec.SecretRef == nil || *t.Spec.SecretRef != former(t) || !t.DeletionTimestamp.IsZero() {
		return 0, nil
	}
	s, err := c.formerSecret(ctx, t)
	if s == nil {
		return 0, err
	}
	owner, value := metav1.GetControllerOf(s), s.Data[former(t).Key]
	if len(value) < minLength || owner != nil && owner.UID != t.UID {
		return 0, nil
	}
	if left := grace - c.clock.Since(t.CreationTimestamp.Time); owner == nil && left > 0 {
		return left, nil
	}
	version, err := declare.MadeHere(ctx, c.live, t)
	if err != nil || version != t.ResourceVersion {
		return 0, err // If the cache is outdated, a later event triggers another reconcile.
	}
	before := t.DeepCopy()
	t.Spec.Digest, t.Spec.SecretRef = credential.Digest(string(value)), nil
	told := audit.Because(ctx, audit.Event{Action: "upgrade", Reason: "its digest replaces Secret " + s.Name})
	if err := c.frame.Client.Patch(told, t, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return 0, fmt.Errorf("recording the digest in place of Secret %s: %w", s.Name, err)
	}
	return 0, nil
}

// forget removes the Secret in which an earlier version kept the value of a token that now has its digest.
func (c *Controller) forget(ctx context.Context, t *v1alpha1.AccessToken) error {
	if t.Spec.Digest == "" {
		return nil
	}
	s, err := c.formerSecret(ctx, t)
	if s == nil || credential.Digest(string(s.Data[former(t).Key])) != t.Spec.Digest {
		return err
	}
	told := audit.Because(ctx, audit.Event{Action: "remove", Reason: "the digest of the token is recorded"})
	err = c.frame.Client.Delete(told, s, client.Preconditions{UID: &s.UID, ResourceVersion: &s.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing Secret %s with the value of the token: %w", s.Name, err)
	}
	return nil
}
