package variable

import (
	"cmp"
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
	"github.com/forgeplane/forgeplane/internal/variable"
)

// grace is the time for which a new variable can have no value: a server that creates one over REST stores the value next.
const grace = time.Minute

// value puts the value into force, and reports if it cannot be used. A value that the Secret no longer has is withdrawn.
func (c *Controller) value(ctx context.Context, v *v1alpha1.Variable) error {
	s, err := c.find(ctx, v)
	if err != nil {
		if frame.IsWaiting(err) || frame.IsStalled(err) {
			v.Status.SecretRef.Name = ""
		}
		return err
	}
	v.Status.SecretRef.Name = s.Name
	if err := variable.Check(&v.Spec, string(s.Data[credential.ValueKey])); err != nil {
		return frame.Stalled(v1alpha1.ReasonInvalid, "the variable is left out of pipelines because of its value: %w", err)
	}
	return nil
}

// find returns the Secret of the platform with the value.
func (c *Controller) find(ctx context.Context, v *v1alpha1.Variable) (*corev1.Secret, error) {
	name := cmp.Or(v.Status.SecretRef.Name, credential.NameOf(v1alpha1.SecretOfVariable, v))
	held, err := c.options.Store.Of(ctx, v1alpha1.SecretOfVariable, v, name)
	if err == nil && held == nil && v.Status.SecretRef.Name != "" {
		held, err = c.options.Store.Live(ctx, c.options.Secrets, v1alpha1.SecretOfVariable, v, name)
	}
	if err != nil {
		return nil, err
	}
	if v.Spec.SecretRef != nil {
		return c.copied(ctx, v, held)
	}
	// A copy that remains after secretRef was removed is not a value that was set over REST.
	if held != nil && held.Annotations[v1alpha1.AnnotationSource] == "" {
		return held, nil
	}
	if left := grace - c.options.Clock.Since(v.CreationTimestamp.Time); left > 0 {
		return nil, frame.Progressing(left, v1alpha1.ReasonProgressing, "the variable has no value yet")
	}
	return nil, frame.Stalled(v1alpha1.ReasonInvalid, "the variable has no value: name a Secret in secretRef, or set the value over REST")
}

// copied returns a copy of the declared value that is up to date. held is the present one, or nil.
func (c *Controller) copied(ctx context.Context, v *v1alpha1.Variable, held *corev1.Secret) (*corev1.Secret, error) {
	ref := v.Spec.SecretRef
	offer := credential.Offer{Holder: v, Field: "secretRef", Name: ref.Name, Kind: v1alpha1.SecretOfVariable}
	declared, err := offer.Check(ctx, c.frame.Client)
	if err != nil || held != nil && held.Annotations[v1alpha1.AnnotationSource] == source(declared, ref.Key) {
		return held, err
	}
	if declared, err = offer.Read(ctx, c.options.Secrets); err != nil {
		return nil, err
	}
	value, ok := declared.Data[ref.Key]
	switch {
	case !ok:
		return nil, frame.Waiting(v1alpha1.ReasonReferenceNotFound, "secretRef: Secret %s has no key %s", ref.Name, ref.Key)
	case len(value) > variable.MaxValue: // the platform does not store it
		return nil, frame.Stalled(v1alpha1.ReasonInvalid, "secretRef: the value under the key %s of Secret %s cannot be used: %w", ref.Key, ref.Name, variable.ErrTooLong)
	case held == nil:
		return c.create(ctx, v, source(declared, ref.Key), value)
	default:
		return c.replace(ctx, held, source(declared, ref.Key), value)
	}
}

// source identifies a version of a Secret, and a key.
func source(s *corev1.Secret, key string) string {
	return fmt.Sprintf("%s@%s/%s", s.UID, s.ResourceVersion, key)
}

func (c *Controller) create(ctx context.Context, v *v1alpha1.Variable, from string, value []byte) (*corev1.Secret, error) {
	s := c.options.Store.New(v1alpha1.SecretOfVariable, v, map[string][]byte{credential.ValueKey: value})
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.AnnotationSource, from)
	err := c.frame.Client.Create(copying(ctx), s)
	return s, written(s, err, apierrors.IsAlreadyExists(err))
}

func (c *Controller) replace(ctx context.Context, held *corev1.Secret, from string, value []byte) (*corev1.Secret, error) {
	s := held.DeepCopy()
	s.Data = map[string][]byte{credential.ValueKey: value}
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.AnnotationSource, from)
	// The lock keeps a stale cache from replacing a newer value.
	err := c.frame.Client.Patch(copying(ctx), s, client.MergeFromWithOptions(held, client.MergeFromWithOptimisticLock{}))
	return s, written(s, err, apierrors.IsNotFound(err))
}

// written returns the error of a write. If the cache was behind, it is a conflict, and the variable is not at fault.
func written(s *corev1.Secret, err error, behind bool) error {
	if behind {
		err = apierrors.NewConflict(corev1.Resource("secrets"), s.Name, err)
	}
	if err != nil {
		return fmt.Errorf("writing Secret %s of the platform: %w", s.Name, err)
	}
	return nil
}

func copying(ctx context.Context) context.Context {
	return audit.WithReason(ctx, audit.Event{Action: "copy", Reason: "the declared value has changed"})
}
