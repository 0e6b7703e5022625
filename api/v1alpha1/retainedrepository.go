package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FormerProject is a deleted Project, as it was in the end.
type FormerProject struct {
	// namespace that the Project was in.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Namespace string `json:"namespace"`

	// namespaceUID is the metadata.uid of that namespace: one made anew under its name belongs to somebody else.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	NamespaceUID string `json:"namespaceUID,omitempty"`

	// name of the Project.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// uid is its metadata.uid.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	UID string `json:"uid"`

	// id that it had in the REST API.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	ID int64 `json:"id"`

	// path is the Project's own segment of its full path.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +required
	Path string `json:"path"`

	// fullPath that it held; empty if it held none in the end.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	FullPath string `json:"fullPath,omitempty"`

	// importURL that it declared.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	ImportURL string `json:"importURL,omitempty"`

	// objectFormat that it declared.
	// +optional
	ObjectFormat ObjectFormat `json:"objectFormat,omitempty"`

	// defaultBranch is the branch that HEAD named.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	DefaultBranch string `json:"defaultBranch,omitempty"`
}

// ProjectName names a Project in any namespace.
// +structType=atomic
type ProjectName struct {
	// namespace of the Project.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Namespace string `json:"namespace"`

	// name of the Project.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// RetainedRepositorySpec says whose the repository was, and who can have it.
// +kubebuilder:validation:XValidation:rule="self.project == oldSelf.project",message="project is a record and cannot change",fieldPath=".project"
// +kubebuilder:validation:XValidation:rule="self.storage == oldSelf.storage",message="storage is a record and cannot change",fieldPath=".storage"
type RetainedRepositorySpec struct {
	// project is the deleted Project that the repository was of.
	// +required
	Project FormerProject `json:"project"`

	// storage names the RepositoryStorage that the repository is on.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Storage string `json:"storage"`

	// sizeBytes is what the repository took on disk when it was last observed.
	// +optional
	SizeBytes int64 `json:"sizeBytes,omitempty"`

	// retainedAt is when the Project was deleted.
	// +optional
	RetainedAt metav1.Time `json:"retainedAt,omitempty,omitzero"`

	// adoptBy names a Project that can adopt the repository, in any namespace and whatever it declares.
	// +optional
	AdoptBy *ProjectName `json:"adoptBy,omitempty"`
}

// Adopter is the Project that takes a retained repository over.
type Adopter struct {
	// namespace of the Project.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Namespace string `json:"namespace"`

	// name of the Project.
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

// RetainedRepositoryStatus is what Forgeplane observed of a retained repository.
type RetainedRepositoryStatus struct {
	CommonStatus `json:",inline"`

	// repositoryPath is where the repository is on its shard, relative to the shard's path.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	RepositoryPath string `json:"repositoryPath,omitempty"`

	// adoptedBy is the Project that is taking the repository over; this object goes when it has it.
	// +optional
	AdoptedBy *Adopter `json:"adoptedBy,omitempty"`
}

// RetainedRepository is a repository that a deleted Project has left. Deleting this object purges the repository.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=retainedrepositories,scope=Cluster,shortName=retained,categories=forge
// +kubebuilder:selectablefield:JSONPath=.spec.project.namespace
// +kubebuilder:selectablefield:JSONPath=.spec.storage
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=.spec.project.namespace
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=.spec.project.name
// +kubebuilder:printcolumn:name="Id",type=integer,JSONPath=.spec.project.id
// +kubebuilder:printcolumn:name="Full path",type=string,JSONPath=.spec.project.fullPath
// +kubebuilder:printcolumn:name="Storage",type=string,JSONPath=.spec.storage
// +kubebuilder:printcolumn:name="Bytes",type=integer,priority=1,JSONPath=.spec.sizeBytes
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].status
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=.status.conditions[?(@.type=="Ready")].reason
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=.metadata.creationTimestamp
type RetainedRepository struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is whose the repository was.
	// +required
	Spec RetainedRepositorySpec `json:"spec"`

	// status is what Forgeplane observed.
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
