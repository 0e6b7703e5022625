package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LabelSpec declares a label for the issues and merge requests of one project, or of all projects below a group.
// +kubebuilder:validation:ExactlyOneOf=projectRef;groupRef
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.id) || !has(self.id) || self.id == oldSelf.id",message="id cannot change once set",fieldPath=".id"
// +kubebuilder:validation:XValidation:rule="has(self.projectRef) == has(oldSelf.projectRef)",message="projectRef and groupRef cannot replace each other: make a new object"
// +kubebuilder:validation:XValidation:rule="!has(self.priority) || has(self.projectRef)",message="priority can be set only for a project's label: set the priority of a group's label in labelPriorities of each project",fieldPath=".priority"
type LabelSpec struct {
	// id is the integer id that the REST API shows. It is unique within the kind. Forgeplane allocates it if omitted; setting it requires
	// the verb pin. It cannot change once set.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	ID int64 `json:"id,omitempty"`

	// projectRef refers to a project in the same namespace. It cannot be changed to refer to another project.
	// +optional
	ProjectRef *Reference `json:"projectRef,omitempty"`

	// groupRef refers to a group in the same namespace. Every project below it inherits the label. It cannot be changed to refer to another group.
	// +optional
	GroupRef *Reference `json:"groupRef,omitempty"`

	// title is the text of the label. It must not contain commas, and must not begin or end with a space. It is unique in a project,
	// including the labels of its groups.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[^\x00-\x20,\x7f]([^\x00-\x1f,\x7f]*[^\x00-\x20,\x7f])?$')`,message="title must not contain commas or control characters, and must not begin or end with a space"
	// +required
	Title string `json:"title"`

	// color is the background color: #RGB, #RRGGBB or the name of a CSS color, such as orange.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule=`self.matches('^(#([0-9A-Fa-f]{3}|[0-9A-Fa-f]{6})|[A-Za-z]{3,20})$')`,message="color must be #RGB, #RRGGBB or a CSS color name"
	// +required
	Color string `json:"color"`

	// description describes the purpose of the label, in Markdown.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Description string `json:"description,omitempty"`

	// priority is the priority of a project's label in the project. 0 is the highest. A label without a priority comes after all labels
	// that have one. It must not be set for a group's label: the labelPriorities of each project set its priority.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Priority *int32 `json:"priority,omitempty"`
}

// LabelStatus is the observed state of a label.
type LabelStatus struct {
	CommonStatus `json:",inline"`
	TargetStatus `json:",inline"`

	// id is the integer id that is in force.
	// +optional
	ID int64 `json:"id,omitempty"`

	// color is the background color as #RGB or #RRGGBB.
	// +kubebuilder:validation:MaxLength=7
	// +optional
	Color string `json:"color,omitempty"`

	// textColor is a color for text that is readable on the background, as #RRGGBB.
	// +kubebuilder:validation:MaxLength=7
	// +optional
	TextColor string `json:"textColor,omitempty"`
}

// Label marks issues and merge requests, in one project or in all projects below a group.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=flabel,categories=forge
// +kubebuilder:selectablefield:JSONPath=.spec.id
// +kubebuilder:selectablefield:JSONPath=.spec.title
// +kubebuilder:selectablefield:JSONPath=.spec.projectRef.name
// +kubebuilder:selectablefield:JSONPath=.spec.groupRef.name
// +kubebuilder:printcolumn:name="Of",type=string,JSONPath=.status.targetPath
// +kubebuilder:printcolumn:name="Title",type=string,JSONPath=.spec.title
// +kubebuilder:printcolumn:name="Color",type=string,JSONPath=.status.color
// +kubebuilder:printcolumn:name="Priority",type=integer,priority=1,JSONPath=.spec.priority
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].status
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].reason
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=.metadata.creationTimestamp
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=.status.conditions[?(@.type=="Ready")].message
// +kubebuilder:validation:XValidation:rule="has(oldSelf.spec.id) || !has(oldSelf.status) || !has(oldSelf.status.id) || !has(self.spec.id) || self.spec.id == oldSelf.status.id",message="id cannot change once set",fieldPath=".spec.id"
type Label struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the declared state of the object.
	// +required
	Spec LabelSpec `json:"spec"`

	// status is the state of the object as Forgeplane last observed it.
	// +kubebuilder:default={observedGeneration:-1}
	// +optional
	Status LabelStatus `json:"status,omitempty"`
}

// GetCommonStatus returns the part of the status that every kind has.
func (l *Label) GetCommonStatus() *CommonStatus { return &l.Status.CommonStatus }

// NewList returns an empty list of the kind.
func (l *Label) NewList() ObjectList { return &LabelList{} }

// IDs returns the addresses of the declared id and of the id that is in force.
func (l *Label) IDs() (spec, status *int64) { return &l.Spec.ID, &l.Status.ID }

// RESTID returns the id that the REST API shows.
func (l *Label) RESTID() int64 { return cmp.Or(l.Spec.ID, l.Status.ID) }

// GetTargetStatus returns the part of the status about the project or group that the object is declared for.
func (l *Label) GetTargetStatus() *TargetStatus { return &l.Status.TargetStatus }

// TargetRefs returns the references to the project and to the group that the object is declared for. One of them is nil.
func (l *Label) TargetRefs() (project, group *Reference) { return l.Spec.ProjectRef, l.Spec.GroupRef }

// LabelList is a list of labels.
// +kubebuilder:object:root=true
type LabelList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Label `json:"items"`
}
