package catalog

import (
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// Belongs reports whether an object that refers to a project or group belongs to it: both are in the same namespace, the UID in the
// reference is the target's, and the object did not belong to an earlier object of the same name. Objects of a deleted target are
// garbage-collected a moment later, and do not belong to the target's successor in the meantime.
func Belongs(obj, target client.Object) bool {
	if obj.GetNamespace() != target.GetNamespace() {
		return false
	}
	kind := "Group"
	var project, named *v1alpha1.Reference
	if targeted, ok := obj.(v1alpha1.Targeted); ok {
		project, named = targeted.TargetRefs()
	}
	if _, ok := target.(*v1alpha1.Project); ok {
		kind, named = "Project", project
	}
	if named != nil && !Means(*named, target) {
		return false
	}
	left := false
	owners := obj.GetOwnerReferences()
	for i := range owners {
		o := &owners[i]
		if o.UID == target.GetUID() {
			return true
		}
		if o.Name == target.GetName() && o.Kind == kind {
			group, _, _ := strings.Cut(o.APIVersion, "/")
			left = left || group == v1alpha1.GroupVersion.Group
		}
	}
	return !left
}

// belonging returns the objects that belong to a project or group.
func belonging[T client.Object](found []T, target client.Object) []T {
	return slices.DeleteFunc(found, func(o T) bool { return !Belongs(o, target) })
}
