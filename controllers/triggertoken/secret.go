package triggertoken

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
func (h *held) replaceable(t *v1alpha1.TriggerToken) bool {
	return h.platform || metav1.IsControlledBy(h.Secret, t) || credential.IsGenerated(h.Secret, h.key)
}

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
	own := h.replaceable(t) || h.value() == ""
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

// find returns the Secret with the value: the declared one, or otherwise the platform's, which it creates if necessary. A Secret that an
// earlier version generated in the namespace of the token stays in use, unless it was generated for a client of the REST API.
func (c *Controller) find(ctx context.Context, t *v1alpha1.TriggerToken) (*held, error) {
	ref := t.SecretRef()
	if t.Spec.SecretRef != nil {
		t.Status.SecretRef.Name = ""
		s, err := offer(t).Check(ctx, c.frame.Client)
		if err != nil {
			t.Status.Digest = ""
			return nil, err
		}
		return c.offered(t, s)
	}
	s, err := c.store.Of(ctx, v1alpha1.SecretOfTriggerToken, t, t.Status.SecretRef.Name)
	if err != nil {
		return nil, err
	}
	if s != nil {
		return &held{Secret: s, key: credential.TokenKey, platform: true}, nil
	}
	value := triggertoken.Generate()
	if t.Status.SecretRef.Name == "" {
		former, err := c.former(ctx, t)
		switch {
		case err != nil:
			t.Status.Digest = ""
			return nil, err
		case former != nil && t.Status.IssuedTo == "":
			return &held{Secret: former, key: ref.Key}, nil
		case former != nil && credential.CheckValue(former.Data[ref.Key]) == nil:
			value = string(former.Data[ref.Key])
		}
	}
	return c.issue(ctx, t, value)
}

func offer(t *v1alpha1.TriggerToken) credential.Offer {
	return credential.Offer{Holder: t, Field: "secretRef", Name: t.SecretRef().Name, Kind: v1alpha1.SecretOfTriggerToken}
}

// formerDelay is the delay before looking again for a former Secret, which no informer shows.
const formerDelay = time.Minute

// former returns the Secret that an earlier version created for a token in its namespace, or nil if it is certain that
// no such Secret exists. If a Secret exists and cannot be used, it returns an error, because otherwise the value in use would be replaced.
func (c *Controller) former(ctx context.Context, t *v1alpha1.TriggerToken) (*corev1.Secret, error) {
	s, err := offer(t).Check(ctx, c.frame.Client)
	if err == nil && metav1.IsControlledBy(s, t) {
		return s, nil
	}
	if err == nil || !frame.IsWaiting(err) {
		return nil, err
	}
	// Only the owner and the labels are requested, not the content.
	name, there := t.SecretRef().Name, &metav1.PartialObjectMetadataList{}
	there.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := c.live.List(ctx, there, client.InNamespace(t.Namespace), client.MatchingFields{metav1.ObjectNameField: name}); err != nil {
		return nil, fmt.Errorf("looking for Secret %s: %w", name, err)
	}
	for i := range there.Items {
		switch m := &there.Items[i]; {
		case !metav1.IsControlledBy(m, t):
		case m.Labels[v1alpha1.LabelSecret] == v1alpha1.SecretOfTriggerToken:
			return nil, apierrors.NewConflict(corev1.Resource("secrets"), name, fmt.Errorf("the cache does not show it yet"))
		default:
			return nil, frame.WaitingFor(formerDelay, v1alpha1.ReasonReferenceNotFound,
				"Secret %s holds the value that an earlier version generated, but does not have the label that lets Forgeplane use it; to keep the value, run: "+
					"kubectl label secret %[1]s --namespace %[4]s --overwrite %[2]s=%[3]s; to get another value, delete the Secret",
				name, v1alpha1.LabelSecret, v1alpha1.SecretOfTriggerToken, t.Namespace)
		}
	}
	return nil, nil
}

// offered returns a Secret of the tenant, unless its type declares another purpose or it belongs to another owner.
func (c *Controller) offered(t *v1alpha1.TriggerToken, s *corev1.Secret) (*held, error) {
	if owner := metav1.GetControllerOf(s); owner != nil && owner.Kind == "TriggerToken" && owner.UID != t.UID {
		t.Status.Digest = ""
		return nil, frame.Waiting(v1alpha1.ReasonAlreadyExists, "Secret %s was created for the TriggerToken %s and is deleted with it: reference another Secret, or wait until the TriggerToken is deleted",
			s.Name, owner.Name)
	}
	if err := credential.Opaque(s); err != nil {
		t.Status.Digest = ""
		return nil, err
	}
	return &held{Secret: s, key: t.SecretRef().Key}, nil
}

// issue stores a value in a Secret of the platform.
func (c *Controller) issue(ctx context.Context, t *v1alpha1.TriggerToken, value string) (*held, error) {
	s := c.store.New(v1alpha1.SecretOfTriggerToken, t, map[string][]byte{credential.TokenKey: []byte(value)})
	if rotate := t.Annotations[v1alpha1.AnnotationRotate]; rotate != "" {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.AnnotationRotated, rotate)
	}
	err := c.frame.Client.Create(audit.Because(ctx, audit.Event{Action: "generate", Reason: "a value under the key " + credential.TokenKey}), s)
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
