package fieldmanager_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/fieldmanager"
)

func TestDeclaresID_ignoresForgeplane(t *testing.T) {
	const (
		identified = `{"f:metadata":{"f:labels":{}},"f:spec":{".":{},"f:id":{},"f:title":{}}}`
		referring  = `{"f:spec":{"f:projectRef":{"f:id":{}}}}`
	)
	manifest := func(text string) *v1alpha1.Label {
		l := annotated(label(by("forgeplane", identified), by("kubectl-client-side-apply", spec)))
		l.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = text
		return l
	}
	for name, tt := range map[string]struct {
		label *v1alpha1.Label
		want  bool
	}{
		"allocated":                        {label(by("forgeplane", identified), by("gitops", spec)), false},
		"created over REST":                {label(by("forgeplane-rest", identified)), false},
		"applied with the id":              {label(by("forgeplane", identified), by("gitops", identified)), true},
		"applied with the id of a project": {label(by("forgeplane", identified), by("gitops", referring)), false},
		"applied with the id, and owned":   {ownedBy("Project", label(by("gitops", identified), by("operator", owning))), true},
		"client-side with the id":          {manifest(`{"spec":{"id":17,"title":"bug"}}`), true},
		"client-side without the id":       {manifest(`{"spec":{"title":"bug","projectRef":{"id":17}}}`), false},
		"client-side, and no JSON":         {manifest(`{"spec":{"id":17`), false},
		"without fields":                   {label(metav1.ManagedFieldsEntry{Manager: "gitops"}), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(fieldmanager.DeclaresID(tt.label)).To(Equal(tt.want))
			keeps := fieldmanager.KeepsOwner(tt.label)
			for range 2 { // an informer strips an object more than once
				fieldmanager.Keep(tt.label, false)
				g.Expect(fieldmanager.DeclaresID(tt.label)).To(Equal(tt.want))
				g.Expect(fieldmanager.KeepsOwner(tt.label)).To(Equal(keeps))
			}

			group := &v1alpha1.Group{ObjectMeta: tt.label.ObjectMeta}
			for range 2 {
				fieldmanager.KeepID(group)
				g.Expect(fieldmanager.DeclaresID(group)).To(Equal(tt.want))
			}
		})
	}
}
