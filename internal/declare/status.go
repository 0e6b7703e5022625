package declare

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Observe changes the status of obj with mutate, which is called again after a conflict. Use it only if a response cannot wait for the
// controller, which must compute the same result with the same function. obj has the result. The error is ErrGone if obj was deleted, even
// if another object has its name.
func (w *Writer) Observe(ctx context.Context, obj client.Object, mutate func()) error {
	uid := obj.GetUID()
	err := retry.RetryOnConflict(contention, func() error {
		before := obj.DeepCopyObject().(client.Object)
		mutate()
		if data, err := client.MergeFrom(before).Data(obj); err == nil && string(data) == "{}" {
			return nil
		}
		err := w.client.Status().Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if !apierrors.IsConflict(err) {
			return err
		}
		if err := reread(ctx, w.live, obj); err != nil {
			return err
		}
		if obj.GetUID() != uid {
			return ErrGone
		}
		return err
	})
	if err != nil {
		return explain(err)
	}
	return w.seen(ctx, obj)
}
