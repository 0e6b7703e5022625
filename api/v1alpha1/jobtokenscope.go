package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AllowlistEntry lets in the job tokens of one project.
type AllowlistEntry struct {
	// projectRef names a project: by name one of the same namespace, by path or id one of any.
	// +required
	ProjectRef Reference `json:"projectRef"`
}

// JobTokenScopeSpec declares which projects' job tokens may be used in a project.
type JobTokenScopeSpec struct {
	// projectRef names a project in the same namespace; it cannot change.
	// +kubebuilder:validation:XValidation:rule="has(self.name) ? has(oldSelf.name) && self.name == oldSelf.name : has(self.path) ? has(oldSelf.path) && self.path == oldSelf.path : has(oldSelf.id) && self.id == oldSelf.id",message="projectRef cannot change"
	// +required
	ProjectRef Reference `json:"projectRef"`

	// inboundEnabled keeps out the job tokens of all projects but the project itself and those in allowlist. While it is
	// false, the job tokens of every project may do what their users may do.
	// +kubebuilder:default=true
	// +optional
	InboundEnabled *bool `json:"inboundEnabled,omitempty"`

	// allowlist has the other projects whose job tokens are let in.
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	Allowlist []AllowlistEntry `json:"allowlist,omitempty"`
}

// Restricted reports whether only the job tokens of the project itself and those of the allowlist are let in.
func (s *JobTokenScopeSpec) Restricted() bool { return s.InboundEnabled == nil || *s.InboundEnabled }

// ObservedAllowlistEntry is what an entry of an allowlist leads to.
type ObservedAllowlistEntry struct {
	// id of the project. Of a project in another namespace that is not public it is shown where it was declared.
	// +optional
	ID int64 `json:"id,omitempty"`

	// path is the full path of the project, shown likewise.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Path string `json:"path,omitempty"`

	// resolved is true when the entry leads to a project, whose job tokens are let in.
	Resolved bool `json:"resolved"`
}

// JobTokenScopeStatus is what Forgeplane observed of a job token scope.
type JobTokenScopeStatus struct {
	CommonStatus `json:",inline"`

	// targetPath is the full path of the project.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	TargetPath string `json:"targetPath,omitempty"`

	// allowlist is what the entries of the declared one lead to, in the same order.
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	Allowlist []ObservedAllowlistEntry `json:"allowlist,omitempty"`

	// recordedAllowlist has the entries of the declared one that name a project by path or id alone, each with the uid of the project
	// that it led to: another project that gets the path or id later, in another namespace, is not let in.
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	RecordedAllowlist []AllowlistEntry `json:"recordedAllowlist,omitempty"`
}

// JobTokenScope says which projects' job tokens may be used in a project.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=jts,categories=forge
// +kubebuilder:selectablefield:JSONPath=.spec.projectRef.name
// +kubebuilder:printcolumn:name="Of",type=string,JSONPath=.status.targetPath
// +kubebuilder:printcolumn:name="Inbound",type=boolean,JSONPath=.spec.inboundEnabled
// +kubebuilder:printcolumn:name="Allowed",type=string,priority=1,JSONPath=.status.allowlist[*].path
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].status
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=.status.conditions[?(@.type=="Ready")].reason
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=.metadata.creationTimestamp
type JobTokenScope struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is declared.
	// +required
	Spec JobTokenScopeSpec `json:"spec"`

	// status is what Forgeplane observed.
	// +kubebuilder:default={observedGeneration:-1}
	// +optional
	Status JobTokenScopeStatus `json:"status,omitempty"`
}

// GetCommonStatus returns the part of the status that every kind has.
func (s *JobTokenScope) GetCommonStatus() *CommonStatus { return &s.Status.CommonStatus }

// NewList returns an empty list of the kind.
func (s *JobTokenScope) NewList() ObjectList { return &JobTokenScopeList{} }

// TargetRefs returns the references to the project and to the group that the object is declared for, one of which is nil.
func (s *JobTokenScope) TargetRefs() (project, group *Reference) { return &s.Spec.ProjectRef, nil }

// JobTokenScopeList is a list of job token scopes.
// +kubebuilder:object:root=true
type JobTokenScopeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []JobTokenScope `json:"items"`
}
