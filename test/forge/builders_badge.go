package forge

import (
	. "github.com/onsi/ginkgo/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// BadgeBuilder builds a Badge.
type BadgeBuilder struct{ obj v1alpha1.Badge }

// Badge returns a builder for a badge with this object name, and with URLs without placeholders.
func Badge(name string) *BadgeBuilder {
	return &BadgeBuilder{v1alpha1.Badge{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.BadgeSpec{LinkURL: "https://ci.example.com", ImageURL: "https://ci.example.com/badge.svg"},
	}}
}

// Of sets the group or project of the badge, by name, and its namespace.
func (b *BadgeBuilder) Of(target client.Object) *BadgeBuilder {
	GinkgoHelper()
	b.obj.Namespace = target.GetNamespace()
	b.obj.Spec.ProjectRef, b.obj.Spec.GroupRef = references(target)
	return b
}

// ID pins the id.
func (b *BadgeBuilder) ID(id int64) *BadgeBuilder { b.obj.Spec.ID = id; return b }

// Link sets the URL of the link.
func (b *BadgeBuilder) Link(url string) *BadgeBuilder { b.obj.Spec.LinkURL = url; return b }

// Image sets the URL of the image.
func (b *BadgeBuilder) Image(url string) *BadgeBuilder { b.obj.Spec.ImageURL = url; return b }

// Build returns the badge.
func (b *BadgeBuilder) Build() *v1alpha1.Badge { return b.obj.DeepCopy() }
