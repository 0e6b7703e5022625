package orphan_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/orphan"
)

// live is an API server in memory that has the objects, and selects users by spec.id as the real one does.
func live(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithObjects(objects...).
		WithIndex(&v1alpha1.User{}, catalog.IndexID, func(o client.Object) []string {
			if id := o.(*v1alpha1.User).Spec.ID; id != 0 {
				return []string{fmt.Sprint(id)}
			}
			return []string{""}
		}).Build()
}

func user(uid types.UID, spec, status int64) *v1alpha1.User {
	u := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "u-" + string(uid), UID: uid}}
	u.Spec.ID, u.Status.ID = spec, status
	return u
}

// membership is one in whose spec the managers have said something.
func membership(managers ...string) *v1alpha1.Membership {
	m := &v1alpha1.Membership{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "m", UID: "m"}}
	for _, name := range managers {
		m.ManagedFields = append(m.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: name, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: v1alpha1.GroupVersion.String(),
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:role":{}}}`),
		})
	}
	return m
}

func TestUnresolved_removesWhatNobodyElseDeclaresForAUserWhoIsGone(t *testing.T) {
	gone := v1alpha1.Reference{ID: 7, UID: "ada"}
	tests := map[string]struct {
		ref      v1alpha1.Reference
		managers []string
		users    []client.Object
		removed  bool
	}{
		"gone":                                {gone, []string{"forgeplane-rest"}, nil, true},
		"gone, and reconciled":                {gone, []string{"forgeplane-rest", "forgeplane"}, nil, true},
		"another one has the id":              {gone, []string{"forgeplane-rest"}, []client.Object{user("eve", 7, 7)}, true},
		"another one had the id dropped":      {gone, []string{"forgeplane-rest"}, []client.Object{user("eve", 0, 7)}, true},
		"gone, without a UID":                 {v1alpha1.Reference{ID: 7}, []string{"forgeplane-rest"}, []client.Object{user("eve", 8, 8)}, true},
		"there, and the cache is behind":      {gone, []string{"forgeplane-rest"}, []client.Object{user("ada", 7, 7)}, false},
		"there, and a replace dropped the id": {gone, []string{"forgeplane-rest"}, []client.Object{user("ada", 0, 7)}, false},
		"there, without a UID":                {v1alpha1.Reference{ID: 7}, []string{"forgeplane-rest"}, []client.Object{user("eve", 7, 0)}, false},
		"declared by somebody":                {gone, []string{"gitops"}, nil, false},
		"declared by somebody as well":        {gone, []string{"forgeplane-rest", "gitops"}, nil, false},
		"declared by nobody knows whom":       {gone, nil, nil, false},
		"named by path":                       {v1alpha1.Reference{Path: "ada"}, []string{"forgeplane-rest"}, nil, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := membership(tt.managers...)
			c := live(t, append(tt.users, m)...)
			cached := m.DeepCopy()
			cached.ManagedFields = nil
			notFound := fmt.Errorf("user 7: %w", catalog.ErrNotFound)
			err := orphan.NewCollector(c, c).Unresolved(t.Context(), cached, "userRef", tt.ref, notFound)
			g.Expect(frame.IsWaiting(err)).To(BeTrue(), "%v", err)
			err = c.Get(t.Context(), client.ObjectKeyFromObject(m), m)
			g.Expect(apierrors.IsNotFound(err)).To(Equal(tt.removed), "%v", err)
		})
	}
}
