package audit

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Client returns a client that adds its writes to the Record of the request for which it writes. It does not record writes without a
// request; see Log.Client.
func Client(c client.Client) client.Client {
	if c == nil {
		return nil
	}
	return recorder{c, func(ctx context.Context, verb string, obj client.Object, err error) { From(ctx).Wrote(verb, obj, err) }}
}

// recorder calls wrote after each write.
type recorder struct {
	client.Client
	wrote wroteFunc
}

type wroteFunc func(ctx context.Context, verb string, obj client.Object, err error)

// updateStatus is the verb for a write of a status.
const updateStatus = "update-status"

// Create implements client.Writer.
func (r recorder) Create(ctx context.Context, obj client.Object, o ...client.CreateOption) error {
	err := r.Client.Create(ctx, obj, o...)
	r.wrote(ctx, "create", obj, err)
	return err
}

// Update implements client.Writer.
func (r recorder) Update(ctx context.Context, obj client.Object, o ...client.UpdateOption) error {
	err := r.Client.Update(ctx, obj, o...)
	r.wrote(ctx, "update", obj, err)
	return err
}

// Patch implements client.Writer.
func (r recorder) Patch(ctx context.Context, obj client.Object, p client.Patch, o ...client.PatchOption) error {
	err := r.Client.Patch(ctx, obj, p, o...)
	r.wrote(ctx, "update", obj, err)
	return err
}

// Delete implements client.Writer.
func (r recorder) Delete(ctx context.Context, obj client.Object, o ...client.DeleteOption) error {
	err := r.Client.Delete(ctx, obj, o...)
	r.wrote(ctx, "delete", obj, err)
	return err
}

// DeleteAllOf implements client.Writer.
func (r recorder) DeleteAllOf(ctx context.Context, obj client.Object, o ...client.DeleteAllOfOption) error {
	err := r.Client.DeleteAllOf(ctx, obj, o...)
	r.wrote(ctx, "delete", obj, err)
	return err
}

// Apply implements client.Writer.
func (r recorder) Apply(ctx context.Context, obj runtime.ApplyConfiguration, o ...client.ApplyOption) error {
	err := r.Client.Apply(ctx, obj, o...)
	if applied, ok := obj.(client.Object); ok {
		r.wrote(ctx, "update", applied, err)
	}
	return err
}

// Status implements client.StatusClient.
func (r recorder) Status() client.SubResourceWriter { return status{r.Client.Status(), r.wrote} }

type status struct {
	client.SubResourceWriter
	wrote wroteFunc
}

// Patch implements client.SubResourceWriter.
func (s status) Patch(ctx context.Context, obj client.Object, p client.Patch, o ...client.SubResourcePatchOption) error {
	err := s.SubResourceWriter.Patch(ctx, obj, p, o...)
	s.wrote(ctx, updateStatus, obj, err)
	return err
}
