package declare_test

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/declare"
	"github.com/forgeplane/forgeplane/internal/fieldmanager"
)

var noon = time.Date(2020, 6, 15, 12, 0, 0, 0, time.UTC)

// managed returns an entry with which the API server records that a manager changed fields at a time.
func managed(manager, subresource, fields string, at time.Time) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Subresource: subresource, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: v1alpha1.GroupVersion.String(),
		Time: &metav1.Time{Time: at}, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func protection(notes ...metav1.ManagedFieldsEntry) *v1alpha1.ProtectedBranch {
	return &v1alpha1.ProtectedBranch{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "acme", Name: "main", UID: "1", CreationTimestamp: metav1.Time{Time: noon}, ManagedFields: notes,
		},
		Spec: v1alpha1.ProtectedBranchSpec{Branch: "main"},
	}
}

// newWriter returns a writer in a cluster that has obj. Each read past the cache calls meanwhile after it has read.
func newWriter(t *testing.T, obj *v1alpha1.ProtectedBranch, meanwhile func(c client.Client)) (*declare.Writer, client.Client) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(obj).WithReturnManagedFields().Build()
	live := interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			if meanwhile != nil {
				meanwhile(c)
			}
			return err
		},
	})
	return declare.NewWriter(c, live, nil), c
}

func TestDeleteUnmodified_keepsObjectsChangedLater(t *testing.T) {
	spec, meta := `{"f:spec":{"f:branch":{}}}`, `{"f:metadata":{"f:finalizers":{}}}`
	hour := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Hour) }
	tests := map[string]struct {
		notes []metav1.ManagedFieldsEntry
		since time.Time
		want  error
	}{
		"no condition":                {[]metav1.ManagedFieldsEntry{managed("kubectl", "", spec, hour(1))}, time.Time{}, nil},
		"created before":              {nil, hour(0), nil},
		"created later":               {nil, hour(-1), declare.ErrChanged},
		"changed in the same second":  {[]metav1.ManagedFieldsEntry{managed("kubectl", "", spec, hour(1))}, hour(1), nil},
		"changed later":               {[]metav1.ManagedFieldsEntry{managed("kubectl", "", spec, hour(2))}, hour(1), declare.ErrChanged},
		"changed later over REST":     {[]metav1.ManagedFieldsEntry{managed("forgeplane-rest", "", spec, hour(2))}, hour(1), declare.ErrChanged},
		"changed later by one of two": {[]metav1.ManagedFieldsEntry{managed("a", "", spec, hour(2)), managed("b", "", spec, hour(0))}, hour(1), declare.ErrChanged},
		"a later status":              {[]metav1.ManagedFieldsEntry{managed("forgeplane", "status", `{"f:status":{}}`, hour(2))}, hour(1), nil},
		"later metadata":              {[]metav1.ManagedFieldsEntry{managed("forgeplane", "", meta, hour(2))}, hour(1), nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			obj := protection(tt.notes...)
			kept := obj.DeepCopy()
			for range 2 { // a cache can transform an object twice
				fieldmanager.Keep(kept, true)
			}
			if got, want := fieldmanager.Changed(kept), fieldmanager.Changed(obj); !got.Equal(want) || len(kept.ManagedFields) > 1 {
				t.Errorf("a cache keeps %v as %v, want %s", got, kept.ManagedFields, want)
			}
			w, c := newWriter(t, obj.DeepCopy(), nil)
			if err := w.Unmodified(t.Context(), obj, tt.since); !errors.Is(err, tt.want) {
				t.Errorf("the check gave %v, want %v", err, tt.want)
			}
			if err := w.DeleteUnmodified(t.Context(), obj, tt.since); !errors.Is(err, tt.want) {
				t.Errorf("the removal gave %v, want %v", err, tt.want)
			}
			err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj.DeepCopy())
			if gone := apierrors.IsNotFound(err); gone != (tt.want == nil) {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

func TestDeleteUnmodified_noticesConcurrentChange(t *testing.T) {
	obj := protection()
	looks := 0
	w, c := newWriter(t, obj.DeepCopy(), func(c client.Client) {
		if looks++; looks > 1 {
			return
		}
		changed := protection()
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), changed); err != nil {
			t.Error(err)
		}
		changed.Spec.AllowForcePush = true
		changed.ManagedFields = []metav1.ManagedFieldsEntry{managed("kubectl", "", `{"f:spec":{"f:allowForcePush":{}}}`, noon.Add(time.Hour))}
		if err := c.Update(t.Context(), changed); err != nil {
			t.Error(err)
		}
	})
	if err := w.DeleteUnmodified(t.Context(), obj, noon); !errors.Is(err, declare.ErrChanged) {
		t.Errorf("got %v after %d looks", err, looks)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj.DeepCopy()); err != nil {
		t.Errorf("it is gone: %v", err)
	}
}

func TestUnmodified_failsIfObjectIsGone(t *testing.T) {
	other := protection()
	other.UID = "2"
	w, _ := newWriter(t, other, nil)
	if err := w.DeleteUnmodified(t.Context(), protection(), noon); !errors.Is(err, declare.ErrGone) {
		t.Errorf("another object of the name: got %v", err)
	}
	missing := protection()
	missing.Name = "missing"
	if err := w.Unmodified(t.Context(), missing, noon); !errors.Is(err, declare.ErrGone) {
		t.Errorf("no object of the name: got %v", err)
	}
}
