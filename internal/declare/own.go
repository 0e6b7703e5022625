package declare

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// own makes the target of an object its owner. A controller does so as well, but not if the target is deleted at the same moment. The
// object would then remain and belong to the next target with that name.
func own(obj client.Object) error {
	targeted, ok := obj.(v1alpha1.Targeted)
	if !ok {
		return nil
	}
	project, group := targeted.TargetRefs()
	kind, of := "Project", project
	if group != nil {
		kind, of = "Group", group
	}
	if of == nil {
		return nil
	}
	if of.Name == "" || of.UID == "" {
		return fmt.Errorf("%T %s must name its %s by name and uid", obj, obj.GetName(), kind)
	}
	obj.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: kind, Name: of.Name, UID: types.UID(of.UID),
	}})
	return nil
}
