package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AnnotationLost lets a RepositoryStorage that is being deleted go although repositories are on its volume, if its value is "true" and the volume is
// not mounted.
const AnnotationLost = "forgeplane.dev/lost"

// RepositoryStorageSpec declares a shard.
type RepositoryStorageSpec struct {
	// path is the absolute path at which the volume is mounted, in every process that serves repositories. It must not contain . or .. as
	// a segment. It cannot change.
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule=`self.matches('^/.*[^/]$')`,message="path must be absolute, and must not end with a slash"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="path cannot change: declare another RepositoryStorage, and move each project to it with a StorageMove"
	// +kubebuilder:validation:XValidation:rule="!self.split('/').exists(s, s == '..' || s == '.')",message="path must not contain . or .. as a segment"
	// +required
	Path string `json:"path"`

	// weight is the share of new projects that this shard takes, in proportion to the weights of the other shards. With 0 it takes no new
	// projects. Defaults to 100.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=100
	// +optional
	Weight *int32 `json:"weight,omitempty"`

	// allowedNamespaces selects the namespaces whose projects the shard takes: by weight, by their spec.storage, and by moves. A project whose
	// repository is on the shard stays there. If omitted, the shard takes projects of every namespace.
	// +optional
	AllowedNamespaces *AllowedNamespaces `json:"allowedNamespaces,omitempty"`
}

// RepositoryStorageStatus is the observed state of a shard.
type RepositoryStorageStatus struct {
	CommonStatus `json:",inline"`

	// capacityBytes is the size of the volume, in bytes.
	// +optional
	CapacityBytes int64 `json:"capacityBytes,omitempty"`

	// availableBytes is the free space of the volume, in bytes. It is rounded down to a hundredth of the capacity, so that it changes
	// rarely.
	// +optional
	AvailableBytes int64 `json:"availableBytes,omitempty"`

	// repositories is the number of projects whose repository is on this shard.
	// +optional
	Repositories int32 `json:"repositories"`

	// retained is the number of repositories of deleted projects on this shard.
	// +optional
	Retained int32 `json:"retained,omitempty"`

	// markerUID is the UID in the file .forgeplane-storage, with which Forgeplane has marked the volume. Since then, a volume without this
	// file counts as not mounted.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	MarkerUID string `json:"markerUID,omitempty"`
}

// RepositoryStorage is a shard: a mounted volume that holds Git repositories.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=shard,categories=forge-admin
// +kubebuilder:printcolumn:name="Path",type=string,JSONPath=.spec.path
// +kubebuilder:printcolumn:name="Weight",type=integer,JSONPath=.spec.weight
// +kubebuilder:printcolumn:name="Repositories",type=integer,JSONPath=.status.repositories
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].status
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].reason
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=.metadata.creationTimestamp
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=.status.conditions[?(@.type=="Ready")].message
type RepositoryStorage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the declared state of the object.
	// +required
	Spec RepositoryStorageSpec `json:"spec"`

	// status is the state of the object as Forgeplane last observed it.
	// +kubebuilder:default={observedGeneration:-1}
	// +optional
	Status RepositoryStorageStatus `json:"status,omitempty"`
}

// GetCommonStatus returns the part of the status that every kind has.
func (s *RepositoryStorage) GetCommonStatus() *CommonStatus { return &s.Status.CommonStatus }

// NewList returns an empty list of the kind.
func (s *RepositoryStorage) NewList() ObjectList { return &RepositoryStorageList{} }

// RepositoryStorageList is a list of shards.
// +kubebuilder:object:root=true
type RepositoryStorageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RepositoryStorage `json:"items"`
}
