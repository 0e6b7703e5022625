package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FormerProject is the last state of a deleted Project.
type FormerProject struct {
	// namespace is the namespace that the Project was in.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Namespace string `json:"namespace"`

	// namespaceUID is the metadata.uid of that namespace. A namespace that is created again with the same name is a different one.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	NamespaceUID string `json:"namespaceUID,omitempty"`

	// name is the metadata.name of the Project.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// uid is the metadata.uid of the Project.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	UID string `json:"uid"`

	// id is the integer id that the Project had in the REST API.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	ID int64 `json:"id"`

	// path is the Project's own segment of its full path.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +required
	Path string `json:"path"`

	// fullPath is the full path that the Project held. It is empty if the Project did not hold its full path at the end.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	FullPath string `json:"fullPath,omitempty"`

	// importURL is the importURL that the Project declared.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	ImportURL string `json:"importURL,omitempty"`

	// objectFormat is the objectFormat that the Project declared.
	// +optional
	ObjectFormat ObjectFormat `json:"objectFormat,omitempty"`

	// defaultBranch is the branch that HEAD named.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	DefaultBranch string `json:"defaultBranch,omitempty"`
}

// ProjectName refers to a Project in any namespace.
// +structType=atomic
type ProjectName struct {
	// namespace is the namespace of the Project.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Namespace string `json:"namespace"`

	// name is the metadata.name of the Project.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// RetainedRepositorySpec records the Project that the repository belonged to, and declares the Project that can have it.
// +kubebuilder:validation:XValidation:rule="self.project == oldSelf.project",message="project is a record and cannot change",fieldPath=".project"
// +kubebuilder:validation:XValidation:rule="self.storage == oldSelf.storage",message="storage is a record and cannot change",fieldPath=".storage"
type RetainedRepositorySpec struct {
	// project is the deleted Project that the repository belonged to. It cannot change.
	// +required
	Project FormerProject `json:"project"`

	// storage is the name of the RepositoryStorage that holds the repository. It cannot change.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Storage string `json:"storage"`

	// sizeBytes is the size of the repository on disk, in bytes, when it was last observed.
	// +optional
	SizeBytes int64 `json:"sizeBytes,omitempty"`

	// retainedAt is the time at which the Project was deleted.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9-]{10}T[0-9:.]{8,}(Z|[+-][0-9:]{5})$') && timestamp(self).getFullYear() > 0",message="retainedAt must be a date and a time, as in 2027-01-31T00:00:00Z"
	// +optional
	RetainedAt metav1.Time `json:"retainedAt,omitempty,omitzero"`

	// adoptBy refers to a Project that can adopt the repository, in any namespace and regardless of its declaration.
	// +optional
	AdoptBy *ProjectName `json:"adoptBy,omitempty"`
}

// Adopter is the Project that adopts a retained repository.
type Adopter struct {
	// namespace is the namespace of the Project.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Namespace string `json:"namespace"`

	// name is the metadata.name of the Project.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// uid is the metadata.uid of the Project.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	UID string `json:"uid"`
}

// RetainedRepositoryStatus is the observed state of a retained repository.
type RetainedRepositoryStatus struct {
	CommonStatus `json:",inline"`

	// repositoryPath is the path of the repository, relative to the path of its shard.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	RepositoryPath string `json:"repositoryPath,omitempty"`

	// adoptedBy is the Project that is adopting the repository. Forgeplane deletes the RetainedRepository when the Project has the
	// repository.
	// +optional
	AdoptedBy *Adopter `json:"adoptedBy,omitempty"`
}

// RetainedRepository is a repository that a deleted Project has left. Deleting this object purges the repository.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=retainedrepositories,scope=Cluster,shortName=retained,categories=forge-admin
// +kubebuilder:selectablefield:JSONPath=.spec.project.namespace
// +kubebuilder:selectablefield:JSONPath=.spec.storage
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=.spec.project.namespace
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=.spec.project.name
// +kubebuilder:printcolumn:name="Id",type=integer,JSONPath=.spec.project.id
// +kubebuilder:printcolumn:name="Full path",type=string,JSONPath=.spec.project.fullPath
// +kubebuilder:printcolumn:name="Storage",type=string,JSONPath=.spec.storage
// +kubebuilder:printcolumn:name="Bytes",type=integer,priority=1,JSONPath=.spec.sizeBytes
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].status
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].reason
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=.metadata.creationTimestamp
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=.status.conditions[?(@.type=="Ready")].message
type RetainedRepository struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the record of the Project that the repository belonged to.
	// +required
	Spec RetainedRepositorySpec `json:"spec"`

	// status is the state of the object as Forgeplane last observed it.
	// +kubebuilder:default={observedGeneration:-1}
	// +optional
	Status RetainedRepositoryStatus `json:"status,omitempty"`
}

// GetCommonStatus returns the part of the status that every kind has.
func (r *RetainedRepository) GetCommonStatus() *CommonStatus { return &r.Status.CommonStatus }

// NewList returns an empty list of the kind.
func (r *RetainedRepository) NewList() ObjectList { return &RetainedRepositoryList{} }

// RetainedRepositoryList is a list of retained repositories.
// +kubebuilder:object:root=true
type RetainedRepositoryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RetainedRepository `json:"items"`
}
