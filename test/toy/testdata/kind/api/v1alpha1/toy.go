package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ToySpec declares something that a project or group has.
// +kubebuilder:validation:ExactlyOneOf=projectRef;groupRef
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.id) || !has(self.id) || self.id == oldSelf.id",message="id cannot change once set",fieldPath=".id"
// +kubebuilder:validation:XValidation:rule="has(self.projectRef) == has(oldSelf.projectRef)",message="projectRef and groupRef cannot replace each other: make a new object"
type ToySpec struct {
	// id is the integer id that the REST API shows; allocated when omitted, and fixed from then on.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	ID int64 `json:"id,omitempty"`

	// projectRef names a project in the same namespace.
	// +optional
	ProjectRef *Reference `json:"projectRef,omitempty"`

	// groupRef names a group in the same namespace.
	// +optional
	GroupRef *Reference `json:"groupRef,omitempty"`
}

// ToyStatus is what Forgeplane observed of a toy.
type ToyStatus struct {
	CommonStatus `json:",inline"`
	TargetStatus `json:",inline"`

	// id that is in force.
	// +optional
	ID int64 `json:"id,omitempty"`
}

// Toy is something that a project or group has.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=toy,categories=forge
// +kubebuilder:selectablefield:JSONPath=.spec.id
// +kubebuilder:selectablefield:JSONPath=.spec.projectRef.name
// +kubebuilder:printcolumn:name="Of",type=string,JSONPath=.status.targetPath
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].status
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].reason
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=.metadata.creationTimestamp
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=.status.conditions[?(@.type=="Ready")].message
// +kubebuilder:validation:XValidation:rule="has(oldSelf.spec.id) || !has(oldSelf.status) || !has(oldSelf.status.id) || !has(self.spec.id) || self.spec.id == oldSelf.status.id",message="id cannot change once set",fieldPath=".spec.id"
type Toy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is declared.
	// +required
	Spec ToySpec `json:"spec"`

	// status is what Forgeplane observed.
	// +kubebuilder:default={observedGeneration:-1}
	// +optional
	Status ToyStatus `json:"status,omitempty"`
}

// GetCommonStatus returns the part of the status that every kind has.
func (t *Toy) GetCommonStatus() *CommonStatus { return &t.Status.CommonStatus }

// NewList returns an empty list of the kind.
func (t *Toy) NewList() ObjectList { return &ToyList{} }

// IDs returns where the declared id and the id in force are kept.
func (t *Toy) IDs() (spec, status *int64) { return &t.Spec.ID, &t.Status.ID }

// RESTID is the id that the REST API shows.
func (t *Toy) RESTID() int64 { return cmp.Or(t.Spec.ID, t.Status.ID) }

// GetTargetStatus returns the part of the status about the project or group that the object is declared for.
func (t *Toy) GetTargetStatus() *TargetStatus { return &t.Status.TargetStatus }

// TargetRefs returns the references to the project and to the group that the object is declared for, one of which is nil.
func (t *Toy) TargetRefs() (project, group *Reference) { return t.Spec.ProjectRef, t.Spec.GroupRef }

// ToyList is a list of toys.
// +kubebuilder:object:root=true
type ToyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Toy `json:"items"`
}
