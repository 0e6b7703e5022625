package forge

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// RegistryCleanupBuilder builds a cleanup of the container repositories of a project.
type RegistryCleanupBuilder struct{ obj v1alpha1.RegistryCleanup }

// RegistryCleanup returns a builder for a cleanup with this object name, which deletes all tags.
func RegistryCleanup(name string) *RegistryCleanupBuilder {
	return &RegistryCleanupBuilder{v1alpha1.RegistryCleanup{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.RegistryCleanupSpec{NameRegexDelete: ".*"},
	}}
}

// Of sets the project of the cleanup, by name, and its namespace.
func (b *RegistryCleanupBuilder) Of(p *v1alpha1.Project) *RegistryCleanupBuilder {
	b.obj.Namespace, b.obj.Spec.ProjectRef = p.Namespace, named(p)
	return b
}

// In sets the repository.
func (b *RegistryCleanupBuilder) In(repository string) *RegistryCleanupBuilder {
	b.obj.Spec.Repository = repository
	return b
}

// Names sets the expressions for the names to delete and to keep; the latter can be empty.
func (b *RegistryCleanupBuilder) Names(remove, keep string) *RegistryCleanupBuilder {
	b.obj.Spec.NameRegexDelete, b.obj.Spec.NameRegexKeep = remove, keep
	return b
}

// KeepN sets how many of the newest tags stay.
func (b *RegistryCleanupBuilder) KeepN(n int64) *RegistryCleanupBuilder {
	b.obj.Spec.KeepN = n
	return b
}

// OlderThan spares younger tags.
func (b *RegistryCleanupBuilder) OlderThan(span string) *RegistryCleanupBuilder {
	b.obj.Spec.OlderThan = span
	return b
}

// At sets the schedule, and its time zone, which can be empty.
func (b *RegistryCleanupBuilder) At(schedule, zone string) *RegistryCleanupBuilder {
	b.obj.Spec.Schedule, b.obj.Spec.TimeZone = schedule, zone
	return b
}

// DryRun makes the cleanup delete nothing.
func (b *RegistryCleanupBuilder) DryRun() *RegistryCleanupBuilder {
	b.obj.Spec.DryRun = true
	return b
}

// Suspended suspends the cleanup.
func (b *RegistryCleanupBuilder) Suspended() *RegistryCleanupBuilder {
	b.obj.Spec.Suspend = true
	return b
}

// For sets how long the object is kept after its run has ended.
func (b *RegistryCleanupBuilder) For(d time.Duration) *RegistryCleanupBuilder {
	b.obj.Spec.TTLAfterFinished = &metav1.Duration{Duration: d}
	return b
}

// Build returns the cleanup.
func (b *RegistryCleanupBuilder) Build() *v1alpha1.RegistryCleanup { return b.obj.DeepCopy() }
