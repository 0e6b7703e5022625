package fieldmanager

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// LacksOwner reports whether no project or group owns an object that was created over REST, as after a restore. Without an owner,
// the object would outlive its project or group.
func LacksOwner(o v1alpha1.Targeted) bool { return !Owned(o) && MadeHere(o) }

// KeepsOwner reports whether a declared object is still owned by a project or group, because it was created over REST before.
// Argo CD does not prune an object that has an owner. An owner that the declarer has set stays.
func KeepsOwner(o v1alpha1.Targeted) bool {
	managers := o.GetManagedFields()
	if len(managers) == 0 || !Owned(o) { // Keep leaves none if the owner is right
		return false
	}
	_, declared := Declarer(o)
	return declared && !slices.ContainsFunc(managers, ownedByOthers)
}

// IsTarget reports whether an owner is a project or group.
func IsTarget(r metav1.OwnerReference) bool {
	group, _, _ := strings.Cut(r.APIVersion, "/")
	return group == v1alpha1.GroupVersion.Group && (r.Kind == "Project" || r.Kind == "Group")
}

// Owned reports whether a project or group owns an object. Projects and groups own the objects created over REST, and no declared ones.
func Owned(o v1alpha1.Targeted) bool { return slices.ContainsFunc(o.GetOwnerReferences(), IsTarget) }

// ownedByOthers reports whether a field manager other than Forgeplane sets owners.
func ownedByOthers(m metav1.ManagedFieldsEntry) bool {
	return m.Manager != Controllers && m.Manager != REST && says(&m, owners)
}

// Keep replaces the managed fields of an object by what a cache needs of them. That is usually nothing. If the owner of the object is not
// right, or if its id is declared, it is one entry that gives the same answers in this package. With changes set, the entry is also kept
// if the last change is later than the creation.
func Keep(o v1alpha1.Targeted, changes bool) {
	if LacksOwner(o) || KeepsOwner(o) || DeclaresID(o) || changes && Changed(o).After(o.GetCreationTimestamp().Time) {
		o.SetManagedFields([]metav1.ManagedFieldsEntry{summary(o)})
		return
	}
	o.SetManagedFields(nil)
}

// The fields of an entry that stands for all of an object.
var (
	specified       = metav1.NewFieldsV1(`{` + spec + `.":{}}}`)
	specifiedOwned  = metav1.NewFieldsV1(`{"f:metadata":{` + owners + `.":{}}},` + spec + `.":{}}}`)
	identified      = metav1.NewFieldsV1(`{` + spec + `.":{},"f:id":{}}}`)
	identifiedOwned = metav1.NewFieldsV1(`{"f:metadata":{` + owners + `.":{}}},` + spec + `.":{},"f:id":{}}}`)
)

func summary(o metav1.Object) metav1.ManagedFieldsEntry {
	m := metav1.ManagedFieldsEntry{Manager: Controllers, Time: &metav1.Time{Time: Changed(o)}}
	if manager, declared := Declarer(o); declared {
		m.Manager = manager
	} else if MadeHere(o) {
		m.Manager = REST
	}
	switch owned, id := slices.ContainsFunc(o.GetManagedFields(), ownedByOthers), DeclaresID(o); {
	case owned && id:
		m.FieldsV1 = identifiedOwned
	case owned:
		m.FieldsV1 = specifiedOwned
	case id:
		m.FieldsV1 = identified
	default:
		m.FieldsV1 = specified
	}
	return m
}
