// Package target says what settings are declared for: a project or a group.
package target

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// Refs returns the references to the project and to the group that an object is declared for, one of which is nil; neither for
// kinds that are for nothing.
func Refs(obj client.Object) (project, group *v1alpha1.Reference) {
	switch o := obj.(type) {
	case *v1alpha1.Membership:
		return o.Spec.ProjectRef, o.Spec.GroupRef
	case *v1alpha1.Label:
		return o.Spec.ProjectRef, o.Spec.GroupRef
	case *v1alpha1.Badge:
		return o.Spec.ProjectRef, o.Spec.GroupRef
	case *v1alpha1.ProtectedBranch:
		return o.Spec.ProjectRef, o.Spec.GroupRef
	case *v1alpha1.TriggerToken:
		return &o.Spec.ProjectRef, nil
	case *v1alpha1.DeployKey:
		return &o.Spec.ProjectRef, nil
	case *v1alpha1.RemoteMirror:
		return &o.Spec.ProjectRef, nil
	case *v1alpha1.JobTokenScope:
		return &o.Spec.ProjectRef, nil
	default:
		return nil, nil
	}
}
