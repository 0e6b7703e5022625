package triggertoken

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/triggertoken"
)

// held is the Secret with the value of a token.
type held struct {
	*corev1.Secret
	key string
	// platform says that the Secret belongs to Forgeplane and is in the platform's namespace.
	platform bool
	// generated says that this reconcile has generated its value.
	generated bool
}

func (h *held) value() string { return string(h.Data[h.key]) }

// replaceable reports whether Forgeplane generated the value.
func (h *held) replaceable() bool { return h.platform || credential.IsGenerated(h.Secret, h.key) }

// digest keeps the digest of the value in the Secret. It generates a value if there is none.
func (c *Controller) digest(ctx context.Context, t *v1alpha1.TriggerToken) error {
	rotate, err := credential.Rotation(t)
	if err != nil {
		return err
	}
	h, err := c.find(ctx, t)
	if err != nil {
		return err
	}
	asked := rotate != "" && rotate != t.Status.Rotated && rotate != h.Annotations[v1alpha1.AnnotationRotated]
	own := h.replaceable() || h.value() == ""
	if !h.generated && (h.value() == "" || own && asked) {
		if err := c.replace(ctx, t, h); err != nil {
			return err
		}
	}
	if !h.generated {
		if err := c.accept(ctx, t, h); err != nil {
			t.Status.Digest = ""
			return err
		}
	}
	t.Status.Digest = credential.Digest(h.value())
	switch {
	case own && rotate != "":
		t.Status.Rotated = rotate
	case rotate != "" && rotate != t.Status.Rotated:
		return credential.NotRotated(h.Secret, h.key)
	}
	return nil
}

// find returns the Secret with the value: the declared one, or otherwise the platform's, which it creates if necessary.
func (c *Controller) find(ctx context.Context, t *v1alpha1.TriggerToken) (*held, error) {
	if ref := t.Spec.SecretRef; ref != nil {
		t.Status.SecretRef.Name = ""
		offer := credential.Offer{Holder: t, Field: "secretRef", Name: ref.Name, Kind: v1alpha1.SecretOfTriggerToken}
		s, err := offer.Check(ctx, c.frame.Client)
		if err == nil {
			err = credential.Opaque(s)
		}
		if err != nil {
			t.Status.Digest = ""
			return nil, err
		}
		return &held{Secret: s, key: ref.Key}, nil
	}
	s, err := c.store.Of(ctx, v1alpha1.SecretOfTriggerToken, t, t.Status.SecretRef.Name)
	if err != nil {
		return nil, err
	}
	if s != nil {
		return &held{Secret: s, key: credential.TokenKey, platform: true}, nil
	}
	return c.issue(ctx, t)
}

// issue stores a generated value in a Secret of the platform.
func (c *Controller) issue(ctx context.Context, t *v1alpha1.TriggerToken) (*held, error) {
	s := c.store.New(v1alpha1.SecretOfTriggerToken, t, map[string][]byte{credential.TokenKey: []byte(triggertoken.Generate())})
	if rotate := t.Annotations[v1alpha1.AnnotationRotate]; rotate != "" {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.AnnotationRotated, rotate)
	}
	err := c.frame.Client.Create(audit.WithReason(ctx, audit.Event{Action: "generate", Reason: "a value under the key " + credential.TokenKey}), s)
	if apierrors.IsAlreadyExists(err) {
		// A server has just created it, for a client that waits for the value.
		name := s.Name
		if s, err = c.store.Of(ctx, v1alpha1.SecretOfTriggerToken, t, name); s == nil && err == nil {
			err = apierrors.NewConflict(corev1.Resource("secrets"), name, fmt.Errorf("the cache does not show it yet"))
		}
		if err != nil {
			return nil, err
		}
		t.Status.SecretRef.Name = name
		return &held{Secret: s, key: credential.TokenKey, platform: true}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("creating Secret %s of the platform: %w", s.Name, err)
	}
	t.Status.SecretRef.Name = s.Name
	return &held{Secret: s, key: credential.TokenKey, platform: true, generated: true}, nil
}

// replace writes a generated value to a Secret.
func (c *Controller) replace(ctx context.Context, t *v1alpha1.TriggerToken, h *held) error {
	h.generated = true
	if !h.platform {
		return credential.Replace(ctx, c.frame.Client, t, h.Secret, h.key, triggertoken.Generate())
	}
	before := h.DeepCopy()
	h.Data = map[string][]byte{h.key: []byte(triggertoken.Generate())}
	return credential.Write(ctx, c.frame.Client, t, before, h.Secret, h.key)
}

// accept returns an error if a value that a user may have chosen is not accepted.
func (c *Controller) accept(ctx context.Context, t *v1alpha1.TriggerToken, h *held) error {
	if err := credential.CheckValue(h.Data[h.key]); err != nil {
		return frame.Stalled(v1alpha1.ReasonInvalid, "key %s of Secret %s holds a value %w: %s", h.key, h.Name, err, credential.Remedy)
	}
	digest := credential.Digest(h.value())
	if t.Status.Digest == digest {
		return nil // another token with the same value does not remove it
	}
	holders, err := triggertoken.OfDigest(ctx, c.frame.Catalog, digest)
	if err != nil {
		return err
	}
	for _, other := range holders {
		switch {
		case other.UID == t.UID: // a server has just written the digest of the value that it generated
		case other.Namespace == t.Namespace:
			return frame.Stalled(v1alpha1.ReasonAlreadyExists, "key %s of Secret %s holds the value of the TriggerToken %s: %s", h.key, h.Name, other.Name, credential.Remedy)
		default: // the message does not name the other token
			return frame.Stalled(v1alpha1.ReasonAlreadyExists, "key %s of Secret %s holds the value of a token of another project: %s", h.key, h.Name, credential.Remedy)
		}
	}
	return nil
}
