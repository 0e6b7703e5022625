package familytest

import (
	"context"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
)

func (f *Forge) fake(t testing.TB, objects []client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.User{}, &v1alpha1.Group{}, &v1alpha1.Project{}, &v1alpha1.AccessToken{}, &v1alpha1.TriggerToken{},
			&v1alpha1.RemoteMirror{}, &v1alpha1.StorageMove{}, &v1alpha1.Variable{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				f.stamp(o)
				return f.write(ctx, c, "create", o, func() error { return c.Create(ctx, o, opts...) })
			},
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				return f.write(ctx, c, "", o, func() error { return c.Update(ctx, o, opts...) })
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				return f.write(ctx, c, "patch", o, func() error { return c.Patch(ctx, o, p, opts...) })
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				return f.write(ctx, c, "delete", o, func() error { return c.Delete(ctx, o, opts...) })
			},
			SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
				return f.write(ctx, c, "", o, func() error { return c.SubResource(sub).Update(ctx, o, opts...) })
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				return f.write(ctx, c, "patch "+sub, o, func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
			},
		})
	if err := catalogtest.AddSelectable(t.Context(), indexer{builder}); err != nil {
		t.Fatal(err)
	}
	return builder.Build()
}

// write writes an object, and then caches it. The verb is empty for the updates of tests, which Before does not see.
func (f *Forge) write(ctx context.Context, c client.Client, verb string, o client.Object, write func() error) error {
	if f.Before != nil && verb != "" {
		if err := f.Before(verb, o); err != nil {
			return err
		}
	}
	if err := write(); err != nil {
		return err
	}
	return f.cache(ctx, c, o)
}

// cache makes the cache hold an object as the client does.
func (f *Forge) cache(ctx context.Context, c client.Client, o client.Object) error {
	f.caching.Lock()
	defer f.caching.Unlock()
	is := reflect.New(reflect.TypeOf(o).Elem()).Interface().(client.Object)
	err := c.Get(ctx, client.ObjectKeyFromObject(o), is)
	if apierrors.IsNotFound(err) {
		f.cached.Remove(o)
		return nil
	}
	if err == nil {
		f.cached.Put(is)
	}
	return err
}

// indexer registers the selectable fields with a fake client.
type indexer struct{ builder *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, o client.Object, field string, values client.IndexerFunc) error {
	i.builder.WithIndex(o, field, values)
	return nil
}
