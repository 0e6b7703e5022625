package forge

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// settled is a client whose writes return when the cache shows them, so that later calls see them in every index. The client below it reads its own
// writes.
type settled struct{ client.Client }

func (s settled) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return s.settle(ctx, obj, s.Client.Create(ctx, obj, opts...))
}

func (s settled) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return s.settle(ctx, obj, s.Client.Update(ctx, obj, opts...))
}

func (s settled) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return s.settle(ctx, obj, s.Client.Patch(ctx, obj, patch, opts...))
}

func (s settled) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return s.settle(ctx, obj, s.Client.Delete(ctx, obj, opts...))
}

func (s settled) Status() client.SubResourceWriter { return settledStatus{s.Client.Status(), s} }

type settledStatus struct {
	client.SubResourceWriter
	whole settled
}

func (s settledStatus) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return s.whole.settle(ctx, obj, s.SubResourceWriter.Patch(ctx, obj, patch, opts...))
}

// settle waits until the cache shows the write of obj that returned err.
func (s settled) settle(ctx context.Context, obj client.Object, err error) error {
	if err != nil || !cached(obj) {
		return err
	}
	seen := obj.DeepCopyObject().(client.Object)
	if err := s.Get(ctx, client.ObjectKeyFromObject(obj), seen); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("waiting for the cache: %w", err)
	}
	return nil
}

func cached(obj client.Object) bool {
	switch o := obj.(type) {
	case v1alpha1.Object, *corev1.Namespace:
		return true
	case *corev1.Secret:
		return o.Namespace == PlatformNamespace || o.Labels[v1alpha1.LabelSecret] != ""
	case *rbacv1.RoleBinding:
		return o.Namespace == PlatformNamespace
	default:
		return false
	}
}
