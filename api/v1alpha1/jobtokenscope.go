package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AllowlistEntry lets in the job tokens of one project.
type AllowlistEntry struct {
	// projectRef refers to a project: by name in the same namespace, by path or id in any namespace.
	// +required
	ProjectRef Reference `json:"projectRef"`
}

// GroupAllowlistEntry is a group whose projects' job tokens are let in.
type GroupAllowlistEntry struct {
	// groupRef refers to a group: by name in the same namespace, by path or id in any namespace.
	// +required
	GroupRef Reference `json:"groupRef"`
}

// JobTokenScopeSpec declares the projects whose job tokens can be used in a project.
type JobTokenScopeSpec struct {
	// projectRef refers to a project in the same namespace. It cannot be changed to refer to another project.
	// +required
	ProjectRef Reference `json:"projectRef"`

	// inboundEnabled specifies whether the allowlists are in force. If true, only the job tokens of the project itself, of the projects
	// in allowlist and of the projects of the groups in groupAllowlist are let in. If false, the job tokens of every project can do what
	// their users can do. Defaults to true.
	// +kubebuilder:default=true
	// +optional
	InboundEnabled *bool `json:"inboundEnabled,omitempty"`

	// allowlist lists the other projects whose job tokens are let in.
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	Allowlist []AllowlistEntry `json:"allowlist,omitempty"`

	// groupAllowlist lists the groups whose job tokens are let in: those of all projects in the group and in the groups below it.
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	GroupAllowlist []GroupAllowlistEntry `json:"groupAllowlist,omitempty"`
}

// Restricted reports whether only the job tokens of the project itself and of the projects in the allowlists are let in.
func (s *JobTokenScopeSpec) Restricted() bool { return s.InboundEnabled == nil || *s.InboundEnabled }

// ObservedAllowlistEntry is the project or group that an entry of an allowlist leads to.
type ObservedAllowlistEntry struct {
	// id is the integer id of the project or group. For one in another namespace that is not public, it is shown only if the entry declares
	// it.
	// +optional
	ID int64 `json:"id,omitempty"`

	// path is the full path of the project or group. For one in another namespace that is not public, it is shown only if the entry declares
	// it.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Path string `json:"path,omitempty"`

	// resolved is true if the entry leads to a project or group, whose job tokens are let in.
	Resolved bool `json:"resolved"`
}

// JobTokenScopeStatus is the observed state of a job token scope.
type JobTokenScopeStatus struct {
	CommonStatus `json:",inline"`
	TargetStatus `json:",inline"`

	// allowlist lists the projects that the entries of spec.allowlist lead to, in the same order.
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	Allowlist []ObservedAllowlistEntry `json:"allowlist,omitempty"`

	// groupAllowlist lists the groups that the entries of spec.groupAllowlist lead to, in the same order.
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	GroupAllowlist []ObservedAllowlistEntry `json:"groupAllowlist,omitempty"`

	// allowedProjects joins the paths of the other projects whose job tokens are let in, and those of groups with "/*" at the end, for
	// display. Where the path is not shown, the id appears.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	AllowedProjects string `json:"allowedProjects,omitempty"`

	// recordedAllowlist lists the entries of spec.allowlist that name a project by path or id alone, each with the uid of the project that
	// it led to. If a project of another namespace gets the path or id later, it is not let in.
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	RecordedAllowlist []AllowlistEntry `json:"recordedAllowlist,omitempty"`

	// recordedGroups lists the references of spec.groupAllowlist that name a group by path or id alone, each with the uid of the group that
	// it led to. If a group of another namespace gets the path or id later, it is not let in.
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	RecordedGroups []Reference `json:"recordedGroups,omitempty"`
}

// JobTokenScope specifies the projects whose job tokens can be used in a project.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=jts,categories=forge
// +kubebuilder:selectablefield:JSONPath=.spec.projectRef.name
// +kubebuilder:printcolumn:name="Of",type=string,JSONPath=.status.targetPath
// +kubebuilder:printcolumn:name="Inbound",type=boolean,JSONPath=.spec.inboundEnabled
// +kubebuilder:printcolumn:name="Allowed",type=string,priority=1,JSONPath=.status.allowedProjects
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].status
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].reason
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=.metadata.creationTimestamp
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=.status.conditions[?(@.type=="Ready")].message
type JobTokenScope struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the declared state of the object.
	// +required
	Spec JobTokenScopeSpec `json:"spec"`

	// status is the state of the object as Forgeplane last observed it.
	// +kubebuilder:default={observedGeneration:-1}
	// +optional
	Status JobTokenScopeStatus `json:"status,omitempty"`
}

// GetCommonStatus returns the part of the status that every kind has.
func (s *JobTokenScope) GetCommonStatus() *CommonStatus { return &s.Status.CommonStatus }

// NewList returns an empty list of the kind.
func (s *JobTokenScope) NewList() ObjectList { return &JobTokenScopeList{} }

// GetTargetStatus returns the part of the status about the project or group that the object is declared for.
func (s *JobTokenScope) GetTargetStatus() *TargetStatus { return &s.Status.TargetStatus }

// TargetRefs returns the references to the project and to the group that the object is declared for. One of them is nil.
func (s *JobTokenScope) TargetRefs() (project, group *Reference) { return &s.Spec.ProjectRef, nil }

// JobTokenScopeList is a list of job token scopes.
// +kubebuilder:object:root=true
type JobTokenScopeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []JobTokenScope `json:"items"`
}
