package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Kinds returns an empty object of every kind of this package. Code that applies to all kinds must use this list.
func Kinds() []Object {
	return []Object{
		&AccessToken{},
		&Badge{},
		&BotToken{},
		&DeployKey{},
		&Group{},
		&JobTokenScope{},
		&Label{},
		&Membership{},
		&Project{},
		&ProtectedBranch{},
		&RegistryCleanup{},
		&RemoteMirror{},
		&RepositoryStorage{},
		&RetainedRepository{},
		&StorageMove{},
		&TriggerToken{},
		&User{},
		&Variable{},
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
	// IDs returns the addresses of the declared id and of the id that is in force.
	IDs() (spec, status *int64)
	// RESTID returns the id that the REST API shows: the declared id, or the id in force if a replace has dropped the declared one. It is
	// 0 until the object has an id; the REST API does not show the object until then.
	RESTID() int64
}

// Pictured is an object of a kind that can have an avatar.
// +kubebuilder:object:generate=false
type Pictured interface {
	Identified
	// Avatar returns the address of the name of the avatar in the status. The name is empty without an avatar.
	Avatar() *string
}

// Observing is an object of a kind whose status shows the content of a repository, and therefore changes with every push.
// +kubebuilder:object:generate=false
type Observing interface {
	Object
	// DropObserved clears the fields of the status that show the content of the repository. Nothing that is remembered of objects of the
	// kind depends on them.
	DropObserved()
}

// Targeted is an object of a kind that is declared for a project, or for a project or a group.
// +kubebuilder:object:generate=false
type Targeted interface {
	Object
	// TargetRefs returns the references to the project and to the group that the object is declared for. One of them is nil.
	TargetRefs() (project, group *Reference)
	// GetTargetStatus returns the part of the status about the project or group.
	GetTargetStatus() *TargetStatus
}
