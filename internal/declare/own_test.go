package declare_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

func TestCreate_setsOwnerFromReference(t *testing.T) {
	ref := v1alpha1.Reference{Name: "acme", UID: "u"}
	owner := func(kind string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "forgeplane.dev/v1alpha1", Kind: kind, Name: "acme", UID: "u"}
	}
	for name, tt := range map[string]struct {
		spec v1alpha1.ProtectedBranchSpec
		want metav1.OwnerReference
	}{
		"project": {v1alpha1.ProtectedBranchSpec{ID: 1, ProjectRef: &ref}, owner("Project")},
		"group":   {v1alpha1.ProtectedBranchSpec{ID: 1, GroupRef: &ref}, owner("Group")},
	} {
		t.Run(name, func(t *testing.T) {
			w, c := newWriter(t, protection(), nil)
			b := protection()
			b.Name, b.UID, b.Spec = "other", "", tt.spec
			if err := w.Create(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil || !slices.Equal(b.OwnerReferences, []metav1.OwnerReference{tt.want}) {
				t.Errorf("got %+v, %v", b.OwnerReferences, err)
			}
		})
	}
}

func TestCreate_refusesIncompleteReference(t *testing.T) {
	for _, ref := range []v1alpha1.Reference{{Name: "acme"}, {Path: "acme", UID: "u"}, {ID: 1, UID: "u"}} {
		w, _ := newWriter(t, protection(), nil)
		b := protection()
		b.Name, b.UID, b.Spec = "other", "", v1alpha1.ProtectedBranchSpec{ID: 1, ProjectRef: &ref}
		if err := w.Create(t.Context(), b); err == nil {
			t.Errorf("%+v: it was made", ref)
		}
	}
}
