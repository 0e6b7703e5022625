package catalog

import (
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// Belongs reports whether an object that names a project or group is of it: it is of the same namespace, means no other one by the uid
// of its reference, and was not of another one that had the name before. What a deleted one leaves behind goes with it a moment later,
// and is not its successor's meanwhile.
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

// belonging keeps of the objects those that belong to a project or group.
func belonging[T client.Object](found []T, target client.Object) []T {
	return slices.DeleteFunc(found, func(o T) bool { return !Belongs(o, target) })
}
