// Package declare writes declared objects for REST callers. A write returns when the cache of this process shows it, so
// that what the same process reads next, over whichever door, includes it.
package declare

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/internal/frame"
)

// FieldOwner is the field manager of what is written here.
const FieldOwner = client.FieldOwner("forgeplane-rest")

// Errors of writes.
var (
	// ErrExists says that there is an object of the name already, and so of the natural key.
	ErrExists = errors.New("it exists already")
	// ErrGone says that the object was deleted meanwhile.
	ErrGone = errors.New("it does not exist any more")
)

// InvalidError says that the API server refuses an object, and why.
type InvalidError struct{ Reason string }

func (e *InvalidError) Error() string { return e.Reason }

// Writer writes objects. It is safe for use by several goroutines.
type Writer struct {
	client client.Client
	ids    frame.Allocator
}

// NewWriter returns a writer. c reads its own writes.
func NewWriter(c client.Client, ids frame.Allocator) *Writer {
	return &Writer{client: client.WithFieldOwner(c, string(FieldOwner)), ids: ids}
}

// Create makes an object, with a REST id where its kind has one.
func (w *Writer) Create(ctx context.Context, obj client.Object) error {
	if identified, ok := obj.(frame.Identified); ok {
		if spec, _ := identified.IDs(); *spec == 0 {
			id, err := w.ids.Allocate(ctx, identified)
			if err != nil {
				return err
			}
			*spec = id
		}
	}
	if err := w.client.Create(ctx, obj); err != nil {
		return explain(err)
	}
	return w.seen(ctx, obj)
}

// Update changes an object as mutate says, which is called again when somebody else was faster. obj has the result.
func (w *Writer) Update(ctx context.Context, obj client.Object, mutate func() error) error {
	key := client.ObjectKeyFromObject(obj)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := w.client.Get(ctx, key, obj); err != nil {
			return err
		}
		before := obj.DeepCopyObject().(client.Object)
		if err := mutate(); err != nil {
			return err
		}
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if data, err := client.MergeFrom(before).Data(obj); err == nil && string(data) == "{}" {
			return nil
		}
		return w.client.Patch(ctx, obj, patch)
	})
	if err != nil {
		return explain(err)
	}
	return w.seen(ctx, obj)
}

// Delete removes an object.
func (w *Writer) Delete(ctx context.Context, obj client.Object) error {
	uid := obj.GetUID()
	if err := w.client.Delete(ctx, obj, client.Preconditions{UID: &uid}); err != nil {
		return explain(err)
	}
	return client.IgnoreNotFound(w.seen(ctx, obj))
}

// seen waits until the cache shows the write: the client holds a read back until then.
func (w *Writer) seen(ctx context.Context, obj client.Object) error {
	shown := obj.DeepCopyObject().(client.Object)
	if err := w.client.Get(ctx, client.ObjectKeyFromObject(obj), shown); err != nil {
		return fmt.Errorf("waiting for the cache to show %s: %w", client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

func explain(err error) error {
	switch {
	case apierrors.IsAlreadyExists(err):
		return ErrExists
	case apierrors.IsNotFound(err):
		return ErrGone
	case apierrors.IsInvalid(err):
		return &InvalidError{Reason: err.Error()}
	default:
		return err
	}
}
