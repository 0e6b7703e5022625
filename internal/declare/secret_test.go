package declare_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/forgeplane/forgeplane/internal/declare"
)

// late returns a client whose cache lags behind: the first reads after each write find nothing, and the next ones the previous state.
func late() client.Client {
	var before *corev1.Secret
	behind := 0
	return fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			before, behind = nil, 3
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			before, behind = &corev1.Secret{}, 3
			if err := c.Get(ctx, client.ObjectKeyFromObject(o), before); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if behind--; behind < 0 {
				return c.Get(ctx, key, o, opts...)
			}
			if before == nil {
				return apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
			}
			before.DeepCopyInto(o.(*corev1.Secret))
			return nil
		},
	}).Build()
}

func TestWriter_waitsUntilCacheShowsSecret(t *testing.T) {
	c := late()
	w := declare.NewWriter(c, c, nil)
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "s"}, Data: map[string][]byte{"token": []byte("1")}}
	if err := w.Create(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	expect := func(value string) {
		t.Helper()
		var shown corev1.Secret
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(s), &shown); err != nil || string(shown.Data["token"]) != value {
			t.Errorf("it returned before the cache showed the write: %v", err)
		}
	}
	expect("1")
	err := w.Update(t.Context(), s, func() error {
		s.Data["token"] = []byte("2")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	expect("2")

	if err := w.Delete(t.Context(), s); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.ResourceVersion = ""
	if err := w.Create(ctx, s); !errors.Is(err, context.Canceled) {
		t.Errorf("a client who is gone is waited for: %v", err)
	}
}
