package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MembershipSpec declares that a user has a role in a group or project, and in everything below it.
// +kubebuilder:validation:ExactlyOneOf=projectRef;groupRef
// +kubebuilder:validation:XValidation:rule="has(self.projectRef) == has(oldSelf.projectRef)",message="projectRef and groupRef cannot replace each other: make a new object"
type MembershipSpec struct {
	// userRef refers to the user. It cannot change.
	// +kubebuilder:validation:XValidation:rule="has(self.name) ? has(oldSelf.name) && self.name == oldSelf.name : has(self.path) ? has(oldSelf.path) && self.path == oldSelf.path : has(oldSelf.id) && self.id == oldSelf.id",message="userRef cannot change: make a new membership"
	// +required
	UserRef Reference `json:"userRef"`

	// projectRef refers to a project in the same namespace. It cannot be changed to refer to another project.
	// +optional
	ProjectRef *Reference `json:"projectRef,omitempty"`

	// groupRef refers to a group in the same namespace. It cannot be changed to refer to another group.
	// +optional
	GroupRef *Reference `json:"groupRef,omitempty"`

	// role is the role that the user gets.
	// +required
	Role Role `json:"role"`

	// expiresAt is the time at which the membership ends. If omitted, the membership never ends.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9-]{10}T[0-9:.]{8,}(Z|[+-][0-9:]{5})$') && timestamp(self).getFullYear() > 0",message="expiresAt must be a date and a time, as in 2027-01-31T00:00:00Z"
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
}

// MembershipStatus is the observed state of a membership.
type MembershipStatus struct {
	CommonStatus `json:",inline"`
	TargetStatus `json:",inline"`

	// userID is the integer id of the user.
	// +optional
	UserID int64 `json:"userID,omitempty"`

	// username is the username of the user.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Username string `json:"username,omitempty"`

	// effectiveRole is the highest role that the user has in the group or project, from this membership, from one of a group above, or from
	// one in a group that these are shared with.
	// +optional
	EffectiveRole Role `json:"effectiveRole,omitempty"`
}

// Membership gives a user a role in a group or project, and in everything below it.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=member,categories=forge
// +kubebuilder:selectablefield:JSONPath=.spec.projectRef.name
// +kubebuilder:selectablefield:JSONPath=.spec.groupRef.name
// +kubebuilder:printcolumn:name="Of",type=string,JSONPath=.status.targetPath
// +kubebuilder:printcolumn:name="User",type=string,JSONPath=.status.username
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=.spec.role
// +kubebuilder:printcolumn:name="Effective",type=string,JSONPath=.status.effectiveRole
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=.spec.expiresAt
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].status
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].reason
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=.metadata.creationTimestamp
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=.status.conditions[?(@.type=="Ready")].message
type Membership struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the declared state of the object.
	// +required
	Spec MembershipSpec `json:"spec"`

	// status is the state of the object as Forgeplane last observed it.
	// +kubebuilder:default={observedGeneration:-1}
	// +optional
	Status MembershipStatus `json:"status,omitempty"`
}

// GetCommonStatus returns the part of the status that every kind has.
func (m *Membership) GetCommonStatus() *CommonStatus { return &m.Status.CommonStatus }

// NewList returns an empty list of the kind.
func (m *Membership) NewList() ObjectList { return &MembershipList{} }

// GetTargetStatus returns the part of the status about the project or group that the object is declared for.
func (m *Membership) GetTargetStatus() *TargetStatus { return &m.Status.TargetStatus }

// TargetRefs returns the references to the project and to the group that the object is declared for. One of them is nil.
func (m *Membership) TargetRefs() (project, group *Reference) {
	return m.Spec.ProjectRef, m.Spec.GroupRef
}

// MembershipList is a list of memberships.
// +kubebuilder:object:root=true
type MembershipList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Membership `json:"items"`
}
