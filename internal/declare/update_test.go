package declare_test

import (
	"context"
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/forgeplane/forgeplane/internal/declare"
)

// stale reads what an object was, as a cache does that is far behind, and waits for nothing.
func stale(c client.Client, was client.Object) client.Client {
	return interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			return c.Scheme().Convert(was.DeepCopyObject(), o, nil)
		},
	})
}

func TestWhatTheCacheDoesNotShowYetIsNotOverwritten(t *testing.T) {
	obj := protection()
	_, c := newWriter(t, obj.DeepCopy(), nil)
	was := protection()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), was); err != nil {
		t.Fatal(err)
	}
	theirs := was.DeepCopy()
	theirs.Spec.AllowForcePush = true
	if err := c.Update(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	err := declare.NewWriter(stale(c, was), c, nil).Update(t.Context(), obj, func() error {
		obj.Spec.ID = 7
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	now := protection()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), now); err != nil || now.Spec.ID != 7 || !now.Spec.AllowForcePush {
		t.Errorf("it is %+v: %v", now.Spec, err)
	}
}

func TestAWriteEndsWhereOthersAreAlwaysFaster(t *testing.T) {
	obj := protection()
	_, c := newWriter(t, obj.DeepCopy(), nil)
	tries := int64(0)
	err := declare.NewWriter(c, c, nil).Update(t.Context(), obj, func() error {
		tries++
		theirs := obj.DeepCopy()
		theirs.Spec.ID = 100 + tries
		obj.Spec.ID = tries
		return c.Update(t.Context(), theirs)
	})
	if !errors.Is(err, declare.ErrContended) || tries < 5 {
		t.Errorf("got %v after %d tries", err, tries)
	}
}
