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
// with ErrExists. An object that has the name but stands for something else by now, for example after a rename, is not in the way: its name
// becomes a part of the next key to try. same reports whether an object from the API server is equivalent to obj.
func CreateUnique[T client.Object](ctx context.Context, w *Writer, obj T, same func(holder T) bool, key ...string) error {
	for {
		obj.SetName(v1alpha1.NaturalName(key...))
		err := w.Create(ctx, obj)
		if !errors.Is(err, ErrExists) {
			return err
		}
		// The cache may have to learn yet what was made or renamed just now.
		holder := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(T)
		err = w.live.Get(ctx, client.ObjectKeyFromObject(obj), holder)
		if apierrors.IsNotFound(err) || err == nil && same(holder) {
			return ErrExists // or did until now, which is for the caller to try again
		}
		if err != nil {
			return fmt.Errorf("reading the objects with the name %s: %w", obj.GetName(), err)
		}
		key = append(key, holder.GetName())
	}
}
