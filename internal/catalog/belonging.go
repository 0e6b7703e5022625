package catalog

import (
	"cmp"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// Belongs reports whether an object that refers to a project or group belongs to it: both are in the same namespace, the UID in the
// reference, or in the former one, is the target's, and the object did not belong to an earlier object of the same name. Objects of a deleted target are
// garbage-collected a moment later, and do not belong to the target's successor in the meantime.
func Belongs(obj, target client.Object) bool {
	if obj.GetNamespace() != target.GetNamespace() {
		return false
	}
	kind := "Group"
	if _, ok := target.(*v1alpha1.Project); ok {
		kind = "Project"
	}
	if targeted, ok := obj.(v1alpha1.Targeted); ok {
		named, other := targeted.TargetRefs()
		if kind == "Group" {
			named, other = other, named
		}
		// A group and a project of one namespace can have the same name.
		if named == nil && other != nil {
			return false
		}
		if was := formerRef(targeted); was != nil {
			named = was
		}
		if named != nil && !Means(*named, target) {
			return false
		}
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

// formerRef returns the reference by which an object was last seen to belong to its target, with the UID of the target, if the spec refers
// to it in another way now. The change can lead to another target, which the object does not belong to, so the former reference counts until
// a controller has seen that both lead to the same target. It returns nil if the reference has not changed, or no controller has seen it. A
// reference whose UID was removed has not changed: it means the object that now has the name, path or id.
func formerRef(o v1alpha1.Targeted) *v1alpha1.Reference {
	was, now := o.GetTargetStatus().TargetRef, targetRef(o)
	if was == nil || now == nil {
		return nil
	}
	if was.Name == now.Name && was.ID == now.ID && strings.EqualFold(was.Path, now.Path) && (now.UID == "" || now.UID == was.UID) {
		return nil
	}
	return was
}

// targetRef returns the reference to the project or group that an object is declared for.
func targetRef(o v1alpha1.Targeted) *v1alpha1.Reference {
	project, group := o.TargetRefs()
	return cmp.Or(project, group)
}

// TargetKeys returns the keys of the reference to the project or group that an object is declared for, including the former reference as
// long as it counts.
func TargetKeys(o client.Object) []string {
	targeted := o.(v1alpha1.Targeted)
	return append(RefKeys(o, targetRef(targeted)), RefKeys(o, formerRef(targeted))...)
}

// belonging returns the objects that belong to a project or group.
func belonging[T client.Object](found []T, target client.Object) []T {
	return slices.DeleteFunc(found, func(o T) bool { return !Belongs(o, target) })
}
