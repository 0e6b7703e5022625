package fieldmanager

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeclaresID reports whether a writer other than Forgeplane declares spec.id of an object, as in a manifest that was exported from a cluster.
func DeclaresID(obj metav1.Object) bool {
	if appliesID(obj.GetAnnotations()[applied]) {
		return true
	}
	managers := obj.GetManagedFields()
	for i := range managers {
		if m := &managers[i]; declares(m) && ownsID(m.FieldsV1.GetRawString()) {
			return true
		}
	}
	return false
}

// appliesID reports whether a manifest, as in the annotation of client-side apply, contains spec.id.
func appliesID(manifest string) bool {
	var of struct {
		Spec struct {
			ID json.RawMessage `json:"id"`
		} `json:"spec"`
	}
	return manifest != "" && json.Unmarshal([]byte(manifest), &of) == nil && of.Spec.ID != nil
}

// ownsID reports whether the fields of a manager contain spec.id.
func ownsID(fields string) bool {
	var of struct {
		Spec map[string]json.RawMessage `json:"f:spec"`
	}
	return strings.Contains(fields, `"f:id"`) && json.Unmarshal([]byte(fields), &of) == nil && of.Spec["f:id"] != nil
}

// KeepID replaces the managed fields of an object that belongs to no project or group by what a cache needs of them: one entry if a
// manifest declares the id, and otherwise nothing.
func KeepID(o metav1.Object) {
	if DeclaresID(o) {
		o.SetManagedFields([]metav1.ManagedFieldsEntry{summary(o)})
		return
	}
	o.SetManagedFields(nil)
}
