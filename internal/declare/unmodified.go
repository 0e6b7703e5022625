package declare

import (
	"context"
	"time"

	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/internal/fieldmanager"
)

// DeleteUnmodified is Delete for an object whose spec has not changed after a time, to the second. Otherwise the error is ErrChanged. The
// zero time means that there is no condition.
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

// Unmodified returns ErrChanged if the spec of an object has changed after a time. The zero time means that there is no condition.
func (w *Writer) Unmodified(ctx context.Context, obj client.Object, since time.Time) error {
	if since.IsZero() {
		return nil
	}
	_, err := w.unmodified(ctx, obj, since)
	return explain(err)
}

// unmodified returns the resource version of the unchanged object.
func (w *Writer) unmodified(ctx context.Context, obj client.Object, since time.Time) (version string, err error) {
	// The cache does not contain managed fields.
	current := obj.DeepCopyObject().(client.Object)
	if err := w.live.Get(ctx, client.ObjectKeyFromObject(obj), current); err != nil {
		return "", err
	}
	switch {
	case current.GetUID() != obj.GetUID():
		return "", ErrGone
	case fieldmanager.Changed(current).After(since):
		return "", ErrChanged
	default:
		return current.GetResourceVersion(), nil
	}
}
