package catalog

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// Refer returns a reference to an object by its id, with its UID beside it: one that is made anew under the id is not meant.
func Refer(o interface {
	client.Object
	IDs() (spec, status *int64)
},
) v1alpha1.Reference {
	id, _ := o.IDs()
	return v1alpha1.Reference{ID: *id, UID: string(o.GetUID())}
}

// means reports whether a reference means the object that has its name, path or id now.
func means(ref v1alpha1.Reference, o client.Object) bool {
	return ref.UID == "" || ref.UID == string(o.GetUID())
}
