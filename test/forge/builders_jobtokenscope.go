package forge

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// JobTokenScopeBuilder builds a JobTokenScope.
type JobTokenScopeBuilder struct{ obj v1alpha1.JobTokenScope }

// JobTokenScope returns a builder for a job token scope with this object name, which lets in no other project.
func JobTokenScope(name string) *JobTokenScopeBuilder {
	return &JobTokenScopeBuilder{v1alpha1.JobTokenScope{ObjectMeta: metav1.ObjectMeta{Name: name}}}
}

// Of sets the project of the scope, by name, and its namespace.
func (b *JobTokenScopeBuilder) Of(p *v1alpha1.Project) *JobTokenScopeBuilder {
	b.obj.Namespace, b.obj.Spec.ProjectRef = p.Namespace, named(p)
	return b
}

// Open lets in the job tokens of every project.
func (b *JobTokenScopeBuilder) Open() *JobTokenScopeBuilder {
	b.obj.Spec.InboundEnabled = ptr.To(false)
	return b
}

// Allowing adds projects whose job tokens are let in.
func (b *JobTokenScopeBuilder) Allowing(projects ...v1alpha1.Reference) *JobTokenScopeBuilder {
	for _, p := range projects {
		b.obj.Spec.Allowlist = append(b.obj.Spec.Allowlist, v1alpha1.AllowlistEntry{ProjectRef: p})
	}
	return b
}

// AllowingGroups adds groups whose projects' job tokens are let in.
func (b *JobTokenScopeBuilder) AllowingGroups(groups ...v1alpha1.Reference) *JobTokenScopeBuilder {
	for _, g := range groups {
		b.obj.Spec.GroupAllowlist = append(b.obj.Spec.GroupAllowlist, v1alpha1.GroupAllowlistEntry{GroupRef: g})
	}
	return b
}

// Build returns the job token scope.
func (b *JobTokenScopeBuilder) Build() *v1alpha1.JobTokenScope { return b.obj.DeepCopy() }
