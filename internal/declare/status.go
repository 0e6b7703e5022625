package declare

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Observe writes into the status of obj what mutate says, which is called again when somebody else was faster: only what a controller
// would come to by the same function, and where an answer cannot wait for it. obj has the result. When obj has gone it is ErrGone, be
// there another one of its name or not.
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
