package declare_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/declare"
	"github.com/forgeplane/forgeplane/internal/frame"
)

// stale returns a client whose first reads find the former state of an object, like a cache that lags behind.
func stale(c client.Client, was client.Object) client.Client {
	behind := 4
	return interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if behind--; behind < 0 {
				return c.Get(ctx, key, o, opts...)
			}
			return c.Scheme().Convert(was.DeepCopyObject(), o, nil)
		},
	})
}

func TestObserve_waitsUntilCacheShowsWriteOfController(t *testing.T) {
	obj := protection()
	_, c := newWriter(t, protection(), nil)
	c = fake.NewClientBuilder().WithScheme(c.Scheme()).WithObjects(obj).WithStatusSubresource(obj).Build()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		t.Fatal(err)
	}
	cache, theirs := stale(c, obj.DeepCopy()), obj.DeepCopy()
	theirs.Status.ID = 7
	if err := c.Status().Update(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	if err := declare.NewWriter(cache, c, nil).Observe(t.Context(), obj, func() { obj.Status.ID = 7 }); err != nil {
		t.Fatal(err)
	}
	now := protection()
	if err := cache.Get(t.Context(), client.ObjectKeyFromObject(obj), now); err != nil || now.Status.ID != 7 {
		t.Errorf("it returned before the cache showed the status: %+v: %v", now.Status, err)
	}
}

func TestUpdate_keepsChangesMissingFromCache(t *testing.T) {
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

// decoding returns a client that reads without a cache: it leaves fields alone that are missing in the answer.
func decoding(c client.Client) client.Client {
	return interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			is := o.DeepCopyObject().(client.Object)
			if err := c.Get(ctx, key, is); err != nil {
				return err
			}
			answer, err := json.Marshal(is)
			if err != nil {
				return err
			}
			return json.Unmarshal(answer, o)
		},
	})
}

func TestUpdate_repeatsMutationAfterConflict(t *testing.T) {
	obj := protection()
	_, c := newWriter(t, obj.DeepCopy(), nil)
	was := protection()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), was); err != nil {
		t.Fatal(err)
	}
	theirs := was.DeepCopy()
	theirs.Labels = map[string]string{"theirs": "true"}
	if err := c.Update(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	w := declare.NewWriter(stale(c, was), decoding(c), nil)
	if err := w.Update(t.Context(), obj, func() error { obj.Spec.ID, obj.Spec.AllowForcePush = 7, true; return nil }); err != nil {
		t.Fatal(err)
	}
	now := protection()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), now); err != nil || now.Spec.ID != 7 || !now.Spec.AllowForcePush {
		t.Errorf("it is %+v: %v", now.Spec, err)
	}
}

func TestObserve_leavesRecreatedObjectAlone(t *testing.T) {
	obj := protection()
	obj.UID = "first"
	_, c := newWriter(t, protection(), nil)
	c = fake.NewClientBuilder().WithScheme(c.Scheme()).WithObjects(obj).WithStatusSubresource(obj).Build()
	w := declare.NewWriter(c, decoding(c), nil)
	read := func() *v1alpha1.ProtectedBranch {
		now := protection()
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), now); err != nil {
			t.Fatal(err)
		}
		return now
	}
	obj = read()
	theirs := obj.DeepCopy()
	theirs.Labels = map[string]string{"theirs": "true"}
	if err := c.Update(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	if err := w.Observe(t.Context(), obj, func() { obj.Status.ID = 7 }); err != nil || read().Status.ID != 7 {
		t.Errorf("of one that was changed meanwhile: %v, %+v", err, read().Status)
	}
	next := protection()
	next.UID = "second"
	if err := errors.Join(c.Delete(t.Context(), obj.DeepCopy()), c.Create(t.Context(), next)); err != nil {
		t.Fatal(err)
	}
	if err := w.Observe(t.Context(), obj, func() { obj.Status.ID = 8 }); !errors.Is(err, declare.ErrGone) || read().Status.ID != 0 {
		t.Errorf("of one that was made anew: %v, %+v", err, read().Status)
	}
}

func TestUpdate_givesUpAfterManyConflicts(t *testing.T) {
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

// counter hands out ids that the tests do not expect.
type counter struct{ frame.Allocator }

func (counter) Allocate(context.Context, v1alpha1.Identified) (int64, error) { return 1000, nil }

func TestUpdate_restoresIDThatReplaceRemoved(t *testing.T) {
	obj := protection()
	obj.Status.ID = 7
	_, c := newWriter(t, obj.DeepCopy(), nil)
	err := declare.NewWriter(c, c, counter{}).Update(t.Context(), obj, func() error {
		obj.Spec.AllowForcePush = true
		return nil
	})
	now := protection()
	if err := errors.Join(err, c.Get(t.Context(), client.ObjectKeyFromObject(obj), now)); err != nil || now.Spec.ID != 7 {
		t.Errorf("the id is %d: %v", now.Spec.ID, err)
	}
}
