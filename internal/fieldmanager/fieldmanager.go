// Package fieldmanager finds out from the managed fields of an object, in which the API server records the writer of each field, whether a user
// declares the object or only Forgeplane writes it.
//
// Everyone who can write an object can choose the name of their field manager. The answers of this package must therefore give
// only rights that the writer of the object has anyway. They decide whether Forgeplane changes or removes the object by itself, and
// which right REST callers have to change it.
package fieldmanager

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The field managers of Forgeplane.
const (
	// REST is the field manager of what is written for callers of the REST API.
	REST = "forgeplane-rest"
	// Controllers is the field manager of what controllers write: the name of the program.
	Controllers = "forgeplane"
)

// unnamed stands for a field manager without a name, or one that the API server no longer knows.
const unnamed = "an unnamed field manager"

// applied is the annotation of client-side apply, which Argo CD and kubectl use by default. They own the fields that they change, so an
// object that has everything that they declare already is theirs by this annotation alone.
const applied = corev1.LastAppliedConfigAnnotation

// Declarer returns the field manager that declares an object: one other than Forgeplane that says something in its spec, or that applies it.
func Declarer(obj metav1.Object) (manager string, declared bool) {
	managers := obj.GetManagedFields()
	for i := range managers {
		if declares(&managers[i]) {
			return named(&managers[i]), true
		}
	}
	if _, declared = obj.GetAnnotations()[applied]; !declared {
		return "", false
	}
	for i := range managers {
		if says(&managers[i], `"f:`+applied+`"`) {
			return named(&managers[i]), true
		}
	}
	return unnamed, true
}

// MadeHere reports whether an object was created over REST, and only Forgeplane has declared something of it since.
func MadeHere(obj metav1.Object) bool {
	if _, declared := Declarer(obj); declared {
		return false
	}
	return slices.ContainsFunc(obj.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
		return m.Manager == REST && specifies(&m)
	})
}

// Changed returns the time of the last change to the spec of an object, to the second. For an object without managed fields, as in most
// caches, it returns the creation time.
func Changed(obj metav1.Object) time.Time {
	last := obj.GetCreationTimestamp().Time
	managers := obj.GetManagedFields()
	for i := range managers {
		if m := &managers[i]; m.Time != nil && specifies(m) && m.Time.After(last) {
			last = m.Time.Time
		}
	}
	return last
}

// declares reports whether a field manager other than Forgeplane says something in the spec.
func declares(m *metav1.ManagedFieldsEntry) bool {
	return m.Manager != Controllers && m.Manager != REST && specifies(m)
}

func named(m *metav1.ManagedFieldsEntry) string {
	if m.Manager == "" {
		return unnamed
	}
	return m.Manager
}

// specifies reports whether a field manager says something in the spec.
func specifies(m *metav1.ManagedFieldsEntry) bool { return says(m, spec) }

// Fields of an entry. The opening of their own fields distinguishes them from labels and annotations of the same name, which have none.
const (
	spec   = `"f:spec":{"`
	owners = `"f:ownerReferences":{"`
)

// says reports whether an entry of the object itself, not of its status, contains a field.
func says(m *metav1.ManagedFieldsEntry, field string) bool {
	return m.Subresource == "" && m.FieldsV1 != nil && strings.Contains(m.FieldsV1.GetRawString(), field)
}
