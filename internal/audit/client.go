package audit

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Client returns c, which from now on tells the Record of the request that it writes for what it wrote. What a controller writes by
// it is not told: there is no request.
func Client(c client.Client) client.Client {
	if c == nil {
		return nil
	}
	return recorder{c}
}

type recorder struct{ client.Client }

// Create implements client.Writer.
func (r recorder) Create(ctx context.Context, obj client.Object, o ...client.CreateOption) error {
	err := r.Client.Create(ctx, obj, o...)
	From(ctx).Wrote("create", obj, err)
	return err
}

// Update implements client.Writer.
func (r recorder) Update(ctx context.Context, obj client.Object, o ...client.UpdateOption) error {
	err := r.Client.Update(ctx, obj, o...)
	From(ctx).Wrote("update", obj, err)
	return err
}

// Patch implements client.Writer.
func (r recorder) Patch(ctx context.Context, obj client.Object, p client.Patch, o ...client.PatchOption) error {
	err := r.Client.Patch(ctx, obj, p, o...)
	From(ctx).Wrote("update", obj, err)
	return err
}

// Delete implements client.Writer.
func (r recorder) Delete(ctx context.Context, obj client.Object, o ...client.DeleteOption) error {
	err := r.Client.Delete(ctx, obj, o...)
	From(ctx).Wrote("delete", obj, err)
	return err
}

// DeleteAllOf implements client.Writer.
func (r recorder) DeleteAllOf(ctx context.Context, obj client.Object, o ...client.DeleteAllOfOption) error {
	err := r.Client.DeleteAllOf(ctx, obj, o...)
	From(ctx).Wrote("delete", obj, err)
	return err
}

// Apply implements client.Writer.
func (r recorder) Apply(ctx context.Context, obj runtime.ApplyConfiguration, o ...client.ApplyOption) error {
	err := r.Client.Apply(ctx, obj, o...)
	if applied, ok := obj.(client.Object); ok {
		From(ctx).Wrote("update", applied, err)
	}
	return err
}
