package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Kinds returns an empty object of every kind of this package. It is the one list of them: what is done for all kinds goes by it.
func Kinds() []Object {
	return []Object{
		&AccessToken{},
		&Badge{},
		&DeployKey{},
		&Group{},
		&JobTokenScope{},
		&Label{},
		&Membership{},
		&Project{},
		&ProtectedBranch{},
		&RemoteMirror{},
		&RepositoryStorage{},
		&RetainedRepository{},
		&TriggerToken{},
		&User{},
	}
}

// Object is an object of a kind of this package.
// +kubebuilder:object:generate=false
type Object interface {
	metav1.Object
	runtime.Object
	// GetCommonStatus returns the part of the status that every kind has.
	GetCommonStatus() *CommonStatus
	// NewList returns an empty list of the kind.
	NewList() ObjectList
}

// ObjectList is a list of the objects of one kind.
// +kubebuilder:object:generate=false
type ObjectList interface {
	metav1.ListInterface
	runtime.Object
}

// Identified is an object of a kind that has an integer id in the REST API.
// +kubebuilder:object:generate=false
type Identified interface {
	Object
	// IDs returns where the declared id and the id in force are kept.
	IDs() (spec, status *int64)
	// RESTID is the id that the REST API shows: the declared one, and the one in force while a replace has dropped that. It is 0 as long
	// as the object has none, and the REST API does not know it.
	RESTID() int64
}

// Observing is an object of a kind whose status shows what is in a repository, and so changes with every push.
// +kubebuilder:object:generate=false
type Observing interface {
	Object
	// DropObserved clears what the status shows of the repository. What is remembered of objects of the kind is not made of that.
	DropObserved()
}

// Targeted is an object of a kind that is declared for a project, or for a project or a group.
// +kubebuilder:object:generate=false
type Targeted interface {
	Object
	// TargetRefs returns the references to the project and to the group that the object is declared for, one of which is nil.
	TargetRefs() (project, group *Reference)
}
