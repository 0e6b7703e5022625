package declare

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DeleteUnmodified is Delete for an object whose spec nobody has changed after a time, to the second; otherwise the error is ErrChanged.
// The zero time means that there is no condition.
func (w *Writer) DeleteUnmodified(ctx context.Context, obj client.Object, since time.Time) error {
	if since.IsZero() {
		return w.Delete(ctx, obj)
	}
	uid := obj.GetUID()
	err := retry.RetryOnConflict(contention, func() error {
		version, err := w.unmodified(ctx, obj, since)
		if err != nil {
			return err
		}
		return w.client.Delete(ctx, obj, client.Preconditions{UID: &uid, ResourceVersion: &version})
	})
	if err != nil {
		return explain(err)
	}
	return w.unseen(ctx, obj)
}

// Unmodified returns ErrChanged if somebody has changed the spec of an object after a time. The zero time means that there is no condition.
func (w *Writer) Unmodified(ctx context.Context, obj client.Object, since time.Time) error {
	if since.IsZero() {
		return nil
	}
	_, err := w.unmodified(ctx, obj, since)
	return explain(err)
}

// unmodified returns the resource version that has not changed since.
func (w *Writer) unmodified(ctx context.Context, obj client.Object, since time.Time) (version string, err error) {
	// The cache does not keep who changed what, and when.
	current := obj.DeepCopyObject().(client.Object)
	if err := w.live.Get(ctx, client.ObjectKeyFromObject(obj), current); err != nil {
		return "", err
	}
	switch {
	case current.GetUID() != obj.GetUID():
		return "", ErrGone
	case Changed(current).After(since):
		return "", ErrChanged
	default:
		return current.GetResourceVersion(), nil
	}
}

// Changed returns the time of the last change to the spec of an object, to the second, from its managed fields. For an object without
// managed fields, as in most caches, it returns the creation time.
func Changed(obj client.Object) time.Time {
	last := obj.GetCreationTimestamp().Time
	for _, m := range obj.GetManagedFields() {
		if m.Time != nil && specifies(m) && m.Time.After(last) {
			last = m.Time.Time
		}
	}
	return last
}

// someSpec stands for whatever somebody says in a spec.
var someSpec = metav1.NewFieldsV1(`{"f:spec":{}}`)

// KeepChanged drops from an object the notes of the API server that Changed does not need, for a cache.
func KeepChanged(obj client.Object) {
	var kept []metav1.ManagedFieldsEntry
	if last := Changed(obj); last.After(obj.GetCreationTimestamp().Time) {
		kept = []metav1.ManagedFieldsEntry{{Time: &metav1.Time{Time: last}, FieldsV1: someSpec}}
	}
	obj.SetManagedFields(kept)
}

// specifies reports whether a field manager says something in the spec.
func specifies(m metav1.ManagedFieldsEntry) bool {
	return m.Subresource == "" && m.FieldsV1 != nil && strings.Contains(m.FieldsV1.GetRawString(), `"f:spec"`)
}
