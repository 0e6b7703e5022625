package declare

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// CreateUnique is Create for an object whose name is derived from its natural key, so that the second of two concurrent creations fails
// with ErrExists. If an object has the name but no longer the key, for example after a rename, CreateUnique tries a name derived from the
// key and that name. same reports whether an object from the API server is equivalent to obj.
func CreateUnique[T client.Object](ctx context.Context, w *Writer, obj T, same func(holder T) bool, key ...string) error {
	for {
		obj.SetName(v1alpha1.NaturalName(key...))
		err := w.Create(ctx, obj)
		if !errors.Is(err, ErrExists) {
			return err
		}
		// The cache may not show recent creations and renames yet.
		holder := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(T)
		err = w.live.Get(ctx, client.ObjectKeyFromObject(obj), holder)
		if apierrors.IsNotFound(err) || err == nil && same(holder) {
			return ErrExists // or it was just deleted, and the caller can try again
		}
		if err != nil {
			return fmt.Errorf("reading the objects with the name %s: %w", obj.GetName(), err)
		}
		key = append(key, holder.GetName())
	}
}
