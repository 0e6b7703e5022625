package declare_test

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/forgeplane/forgeplane/internal/declare"
)

func TestDiscard_removesObjectAfterClientLeft(t *testing.T) {
	obj := protection()
	_, c := newWriter(t, obj.DeepCopy(), nil)
	heeding := interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if _, ok := ctx.Deadline(); !ok || ctx.Err() != nil {
				t.Errorf("bounded %v, %v", ok, ctx.Err())
			}
			return c.Delete(ctx, o, opts...)
		},
	})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 { // the second call finds no object
		if err := declare.NewWriter(heeding, c, nil).Discard(gone, obj); err != nil {
			t.Error(err)
		}
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) {
		t.Errorf("it is there: %v", err)
	}
}
