package forge

import (
	. "github.com/onsi/ginkgo/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// VariableBuilder builds a Variable.
type VariableBuilder struct{ obj v1alpha1.Variable }

// Variable returns a builder for a CI variable with this object name and key, in the namespace of the platform.
func Variable(name, key string) *VariableBuilder {
	return &VariableBuilder{v1alpha1.Variable{
		ObjectMeta: metav1.ObjectMeta{Namespace: PlatformNamespace, Name: name}, Spec: v1alpha1.VariableSpec{Key: key},
	}}
}

// Of sets the group or project of the variable, by name, and its namespace.
func (b *VariableBuilder) Of(target client.Object) *VariableBuilder {
	GinkgoHelper()
	b.obj.Namespace = target.GetNamespace()
	b.obj.Spec.ProjectRef, b.obj.Spec.GroupRef = references(target)
	return b
}

// Secret names the Secret with the value, and the key in it.
func (b *VariableBuilder) Secret(name, key string) *VariableBuilder {
	b.obj.Spec.SecretRef = &v1alpha1.VariableSecretReference{Name: name, Key: key}
	return b
}

// Masked makes job logs hide the value.
func (b *VariableBuilder) Masked() *VariableBuilder { b.obj.Spec.Masked = true; return b }

// Environment sets the environment scope.
func (b *VariableBuilder) Environment(scope string) *VariableBuilder {
	b.obj.Spec.EnvironmentScope = scope
	return b
}

// Build returns the variable.
func (b *VariableBuilder) Build() *v1alpha1.Variable { return b.obj.DeepCopy() }
