package forge

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// RemoteMirrorBuilder builds a RemoteMirror.
type RemoteMirrorBuilder struct{ obj v1alpha1.RemoteMirror }

// RemoteMirror returns a builder for a mirror with a URL.
func RemoteMirror(name, url string) *RemoteMirrorBuilder {
	return &RemoteMirrorBuilder{v1alpha1.RemoteMirror{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.RemoteMirrorSpec{URL: url},
	}}
}

// Of sets the project of the mirror, by name, and its namespace.
func (b *RemoteMirrorBuilder) Of(p *v1alpha1.Project) *RemoteMirrorBuilder {
	b.obj.Namespace, b.obj.Spec.ProjectRef = p.Namespace, named(p)
	return b
}

// ID pins the id.
func (b *RemoteMirrorBuilder) ID(id int64) *RemoteMirrorBuilder { b.obj.Spec.ID = id; return b }

// Secret names the Secret with the credentials.
func (b *RemoteMirrorBuilder) Secret(name string) *RemoteMirrorBuilder {
	b.obj.Spec.SecretRef = &v1alpha1.LocalSecretReference{Name: name}
	return b
}

// Disabled disables the mirror.
func (b *RemoteMirrorBuilder) Disabled() *RemoteMirrorBuilder {
	b.obj.Spec.Enabled = ptr.To(false)
	return b
}

// Keeping makes the mirror keep refs that have diverged.
func (b *RemoteMirrorBuilder) Keeping() *RemoteMirrorBuilder {
	b.obj.Spec.KeepDivergentRefs = true
	return b
}

// OnlyProtected makes the mirror push only protected branches.
func (b *RemoteMirrorBuilder) OnlyProtected() *RemoteMirrorBuilder {
	b.obj.Spec.OnlyProtectedBranches = true
	return b
}

// Matching makes the mirror push only matching branches.
func (b *RemoteMirrorBuilder) Matching(regex string) *RemoteMirrorBuilder {
	b.obj.Spec.BranchRegex = regex
	return b
}

// Build returns the mirror.
func (b *RemoteMirrorBuilder) Build() *v1alpha1.RemoteMirror { return b.obj.DeepCopy() }
