package credential

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/accesstoken"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/bottoken"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/triggertoken"
)

// clear removes from a Secret the values that Forgeplane generated for tokens that no longer exist or now name something else. It keeps
// values that somebody else put there, and values that another token names: that token may have waited for the key, or a restore may have
// created it. A restore may create the Secret before the token, so a value whose token disappeared unobserved is kept for a while.
func (c *Controller) clear(ctx context.Context, s *corev1.Secret, released map[types.UID]bool) (reconcile.Result, error) {
	var wait time.Duration
	before := s.DeepCopy()
	for _, g := range credential.GeneratedIn(before) {
		named, err := c.named(ctx, s, g.Key)
		if err != nil {
			return reconcile.Result{}, err
		}
		switch age := c.clock.Since(s.CreationTimestamp.Time); {
		case named:
		case released[g.For], age >= grace:
			credential.Remove(s, g.Key)
		default:
			wait = grace - age
		}
	}
	if len(s.Data) == len(before.Data) {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	told := audit.WithReason(ctx, audit.Event{Action: "remove", Reason: "values that tokens no longer use"})
	err := c.client.Patch(told, s, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		for uid := range released {
			c.release(client.ObjectKeyFromObject(s), uid)
		}
		return reconcile.Result{}, fmt.Errorf("removing unused values of tokens from Secret %s: %w", s.Name, err)
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}

// named reports whether a token has its value under a key of a Secret.
func (c *Controller) named(ctx context.Context, s *corev1.Secret, key string) (bool, error) {
	ref := v1alpha1.SecretKeyReference{Name: s.Name, Key: key}
	if s.Namespace == c.namespace {
		tokens, err := accesstoken.OfSecret(ctx, c.catalog, ref)
		return len(tokens) > 0, err
	}
	triggers, err := triggertoken.OfSecret(ctx, c.catalog, s.Namespace, ref)
	if len(triggers) > 0 || err != nil {
		return true, err
	}
	bots, err := bottoken.OfSecret(ctx, c.catalog, s.Namespace, ref)
	return len(bots) > 0, err
}
