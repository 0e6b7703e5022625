package catalog

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// Refer returns a reference to an object by its id, with its UID beside it: one that is made anew under the id is not meant.
func Refer(o interface {
	client.Object
	RESTID() int64
},
) v1alpha1.Reference {
	return v1alpha1.Reference{ID: o.RESTID(), UID: string(o.GetUID())}
}

// means reports whether a reference means the object that has its name, path or id now.
func means(ref v1alpha1.Reference, o client.Object) bool {
	return ref.UID == "" || ref.UID == string(o.GetUID())
}
