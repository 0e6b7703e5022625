package declare_test

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/declare"
)

func TestCreate_recognizesExceededResourceQuota(t *testing.T) {
	forbidden := func(text string) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: "forgeplane.dev", Resource: "memberships"}, "m", errors.New(text))
	}
	const exceeded = "exceeded quota: forge, requested: count/memberships.forgeplane.dev=1, used: count/memberships.forgeplane.dev=1, limited: count/memberships.forgeplane.dev=1"
	for text, quota := range map[string]bool{exceeded: true, "the namespace is being terminated": false} {
		c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
				return forbidden(text)
			},
		}).Build()
		obj := &v1alpha1.Membership{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "m"}}
		err := declare.NewWriter(c, c, nil).Create(t.Context(), obj)
		var full *declare.QuotaError
		if errors.As(err, &full) != quota || err == nil {
			t.Errorf("%s: got %v", text, err)
		}
		if quota && err.Error() != "The ResourceQuota of the Kubernetes namespace does not allow more: "+exceeded {
			t.Errorf("got %q", err)
		}
	}
}
