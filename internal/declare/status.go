package declare

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Observe writes into the status of obj what mutate says: only what a controller would come to by the same function, and
// where an answer cannot wait for it. obj has the result.
func (w *Writer) Observe(ctx context.Context, obj client.Object, mutate func()) error {
	before := obj.DeepCopyObject().(client.Object)
	mutate()
	patch := client.MergeFrom(before)
	if data, err := patch.Data(obj); err == nil && string(data) == "{}" {
		return nil
	}
	if err := w.client.Status().Patch(ctx, obj, patch); err != nil {
		return explain(err)
	}
	return w.seen(ctx, obj)
}
