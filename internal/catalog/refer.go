package catalog

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// Refer returns a reference to an object by its id and UID, so that it does not mean a later object with the same id.
func Refer(o interface {
	client.Object
	RESTID() int64
},
) v1alpha1.Reference {
	return v1alpha1.Reference{ID: o.RESTID(), UID: string(o.GetUID())}
}

// ReferNamed returns a reference to an object of the same namespace by its name and UID, so that it does not mean a later object with the
// same name.
func ReferNamed(o client.Object) v1alpha1.Reference {
	return v1alpha1.Reference{Name: o.GetName(), UID: string(o.GetUID())}
}

// Names reports whether a reference names an object of the same namespace by name, and means it.
func Names(ref v1alpha1.Reference, o client.Object) bool {
	return ref.Name == o.GetName() && Means(ref, o)
}

// Means reports whether a reference means the object that currently has its name, path or id.
func Means(ref v1alpha1.Reference, o client.Object) bool {
	return ref.UID == "" || ref.UID == string(o.GetUID())
}
