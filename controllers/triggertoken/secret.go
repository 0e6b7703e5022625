package triggertoken

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/triggertoken"
)

// fieldOwner is the field manager of the label on Secrets that others have made.
const fieldOwner = client.FieldOwner("forgeplane-secrets")

// maxRotate is how long the text of the annotation may be that asks for another value.
const maxRotate = 253

// digest keeps the digest of the value in the Secret, which is made when it is not there.
func (c *Controller) digest(ctx context.Context, t *v1alpha1.TriggerToken) error {
	rotate := t.Annotations[v1alpha1.AnnotationRotate]
	if len(rotate) > maxRotate {
		return frame.Stalled(v1alpha1.ReasonInvalid, "the annotation %s is longer than %d characters", v1alpha1.AnnotationRotate, maxRotate)
	}
	s, generated, err := c.obtain(ctx, t)
	if err != nil {
		return err
	}
	own, asked := metav1.IsControlledBy(s, t), rotate != "" && rotate != t.Status.Rotated
	if own && !generated && (len(s.Data[t.SecretRef().Key]) == 0 || asked && rotate != s.Annotations[v1alpha1.AnnotationRotated]) {
		if err := c.replace(ctx, t, s); err != nil {
			return err
		}
		generated = true
	}
	if !generated {
		if err := c.accept(ctx, t, s); err != nil {
			t.Status.Digest = ""
			return err
		}
	}
	t.Status.Digest = catalog.Digest(string(s.Data[t.SecretRef().Key]))
	switch {
	case own && rotate != "":
		t.Status.Rotated = rotate
	case asked:
		return frame.Stalled(v1alpha1.ReasonInvalid, "the annotation %s has no effect: Secret %s was not made for this token, so its value is not replaced: "+
			"change it, or delete the Secret to get a generated one, and remove the annotation", v1alpha1.AnnotationRotate, s.Name)
	}
	return nil
}

// obtain returns the Secret that a token names, and makes it, with a generated value, where there is none.
func (c *Controller) obtain(ctx context.Context, t *v1alpha1.TriggerToken) (s *corev1.Secret, generated bool, err error) {
	if s, err = c.read(ctx, t); s != nil || err != nil {
		return s, false, err
	}
	s = triggertoken.NewSecret(t, triggertoken.Generate())
	err = c.client.Create(ctx, s)
	switch {
	case err == nil:
		return s, true, nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil, false, frame.Waiting(v1alpha1.ReasonDeleting, "the namespace is being deleted")
	case !apierrors.IsAlreadyExists(err):
		return nil, false, fmt.Errorf("creating Secret %s: %w", s.Name, err)
	}
	// A server has just made it, for a client that waits for the value.
	name := s.Name
	if s, err = c.read(ctx, t); s == nil && err == nil {
		err = fmt.Errorf("the Secret %s comes and goes", name)
	}
	return s, false, err
}

// read returns the Secret that a token names, nil when there is none. The cache has those that bear the label; one that does not
// yet is read once, and is in the cache from then on.
func (c *Controller) read(ctx context.Context, t *v1alpha1.TriggerToken) (*corev1.Secret, error) {
	key := client.ObjectKey{Namespace: t.Namespace, Name: t.SecretRef().Name}
	s := &corev1.Secret{}
	err := c.client.Get(ctx, key, s)
	if apierrors.IsNotFound(err) || err == nil && s.Labels[v1alpha1.LabelSecret] != v1alpha1.SecretOfTriggerToken {
		err = c.secrets.Get(ctx, key, s)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", key.Name, err)
	}
	return s, c.label(ctx, s)
}

// label has the cache hold a Secret. Nothing but the label is written, and only to the object that was read.
func (c *Controller) label(ctx context.Context, s *corev1.Secret) error {
	if s.Labels[v1alpha1.LabelSecret] == v1alpha1.SecretOfTriggerToken {
		return nil
	}
	labelled := corev1apply.Secret(s.Name, s.Namespace).WithUID(s.UID).
		WithLabels(map[string]string{v1alpha1.LabelSecret: v1alpha1.SecretOfTriggerToken})
	if err := c.client.Apply(ctx, labelled, fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("labelling Secret %s: %w", s.Name, err)
	}
	return nil
}

// replace puts a generated value into the token's own Secret.
func (c *Controller) replace(ctx context.Context, t *v1alpha1.TriggerToken, s *corev1.Secret) error {
	before := s.DeepCopy()
	fresh := triggertoken.NewSecret(t, triggertoken.Generate())
	if s.Data == nil {
		s.Data = map[string][]byte{}
	}
	key := t.SecretRef().Key
	s.Data[key] = fresh.Data[key]
	for name, text := range fresh.Annotations {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, name, text)
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.client.Patch(ctx, s, patch); err != nil {
		return fmt.Errorf("writing Secret %s: %w", s.Name, err)
	}
	return nil
}

// accept says why a value is not accepted that may be somebody else's choice.
func (c *Controller) accept(ctx context.Context, t *v1alpha1.TriggerToken, s *corev1.Secret) error {
	const remedy = "put another value there, or delete the Secret to get a generated one"
	if owner := metav1.GetControllerOf(s); owner != nil && owner.Kind == "TriggerToken" && owner.UID != t.UID {
		return frame.Waiting(v1alpha1.ReasonAlreadyExists, "Secret %s was made for the TriggerToken %s, and goes with it: name another one, or wait for its end",
			s.Name, owner.Name)
	}
	if s.Type != corev1.SecretTypeOpaque {
		return frame.Stalled(v1alpha1.ReasonInvalid, "Secret %s is of the type %s, and has to be of the type %s: name another one",
			s.Name, s.Type, corev1.SecretTypeOpaque)
	}
	key := t.SecretRef().Key
	value := s.Data[key]
	if len(value) == 0 {
		return frame.Stalled(v1alpha1.ReasonInvalid, "Secret %s has no value under the key %s: %s", s.Name, key, remedy)
	}
	if err := triggertoken.Check(value); err != nil {
		return frame.Stalled(v1alpha1.ReasonInvalid, "key %s of Secret %s holds a value %w: %s", key, s.Name, err, remedy)
	}
	digest := catalog.Digest(string(value))
	if t.Status.Digest == digest {
		return nil // Whoever comes later with the same value does not take it away.
	}
	holders, err := c.catalog.TriggerTokensOfDigest(ctx, digest)
	if err != nil {
		return err
	}
	for _, h := range holders {
		switch {
		case h.UID == t.UID: // A server has just written the digest of the value that it has made.
		case h.Namespace == t.Namespace:
			return frame.Stalled(v1alpha1.ReasonAlreadyExists, "key %s of Secret %s holds the value of the TriggerToken %s: %s", key, s.Name, h.Name, remedy)
		default: // Who else is here is not told.
			return frame.Stalled(v1alpha1.ReasonAlreadyExists, "key %s of Secret %s holds the value of a token of another project: %s", key, s.Name, remedy)
		}
	}
	return nil
}
