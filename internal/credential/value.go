package credential

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/frame"
)

const (
	// minValue is the minimum length of the value of a token, because short values could be guessed from their digests.
	minValue = 20
	// MaxValue is the maximum length of the value of a token.
	MaxValue = 255
	// maxRotate is the maximum length of the annotation that requests another value.
	maxRotate = 253
)

// tokenSize is the number of random bytes in a token.
const tokenSize = 20

// NewToken returns a new token: a prefix and 160 random bits in hexadecimal.
func NewToken(prefix string) string {
	random := make([]byte, tokenSize)
	_, _ = rand.Read(random) // it never fails: without randomness, the process ends
	return prefix + hex.EncodeToString(random)
}

// Remedy says how to fix a value that is not accepted.
const Remedy = "set another value, or remove the key to get a generated one"

// CheckValue validates a chosen value of a token. Its error does not contain the value.
func CheckValue(value []byte) error {
	switch {
	case len(value) < minValue:
		return fmt.Errorf("shorter than %d characters", minValue)
	case len(value) > MaxValue:
		return fmt.Errorf("longer than %d characters", MaxValue)
	}
	for _, c := range value {
		if c <= ' ' || c > '~' {
			return errors.New("with white space, a line break or other characters that are not visible ASCII")
		}
	}
	return nil
}

// Rotation returns the annotation that requests another value for a token, or a frame.Stalled error if it is too long.
func Rotation(holder client.Object) (string, error) {
	text := holder.GetAnnotations()[v1alpha1.AnnotationRotate]
	if len(text) > maxRotate {
		return "", frame.Stalled(v1alpha1.ReasonInvalid, "the annotation %s is longer than %d characters", v1alpha1.AnnotationRotate, maxRotate)
	}
	return text, nil
}

// NotRotated returns the error for a token whose annotation requests another value, although Forgeplane did not generate the value in its
// Secret.
func NotRotated(s *corev1.Secret, key string) error {
	return frame.Stalled(v1alpha1.ReasonInvalid, "the annotation %s has no effect: Forgeplane did not generate the value in Secret %s and does not replace it: "+
		"change the value, or remove the key %s to get a generated one, and remove the annotation", v1alpha1.AnnotationRotate, s.Name, key)
}

// Opaque returns a frame.Stalled error if the type of a Secret declares a purpose other than to hold the value of a token.
func Opaque(s *corev1.Secret) error {
	if s.Type == corev1.SecretTypeOpaque {
		return nil
	}
	return frame.Stalled(v1alpha1.ReasonInvalid, "Secret %s has the type %s and must have the type %s: reference another Secret",
		s.Name, s.Type, corev1.SecretTypeOpaque)
}

// Replace writes a value that Forgeplane generated for a token into a Secret of the token's namespace, and records the request for it in
// the Secret.
func Replace(ctx context.Context, c client.Client, holder client.Object, s *corev1.Secret, key, value string) error {
	before := s.DeepCopy()
	Generate(s, key, holder.GetUID(), value)
	return Write(ctx, c, holder, before, s, key)
}

// Write writes a Secret with a new value under a key, and records the request for it in the Secret.
func Write(ctx context.Context, c client.Client, holder client.Object, before, s *corev1.Secret, key string) error {
	if rotate := holder.GetAnnotations()[v1alpha1.AnnotationRotate]; rotate != "" {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.AnnotationRotated, rotate)
	}
	ctx = audit.WithReason(ctx, audit.Event{Action: "generate", Reason: "a value under the key " + key})
	if err := c.Patch(ctx, s, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing Secret %s: %w", s.Name, err)
	}
	return nil
}
