package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NamespacesFrom says which namespaces may hang their groups below a group.
// +kubebuilder:validation:Enum=Same;Selector;All
type NamespacesFrom string

// The choices of allowedNamespaces.
const (
	// NamespacesFromSame admits the group's own namespace only.
	NamespacesFromSame NamespacesFrom = "Same"
	// NamespacesFromSelector admits namespaces by their labels.
	NamespacesFromSelector NamespacesFrom = "Selector"
	// NamespacesFromAll admits every namespace.
	NamespacesFromAll NamespacesFrom = "All"
)

// AllowedNamespaces selects the namespaces whose groups may name this one as their parent.
// +kubebuilder:validation:XValidation:rule="has(self.selector) == (self.from == 'Selector')",message="selector goes with from: Selector, and only with it"
type AllowedNamespaces struct {
	// from says which namespaces are admitted.
	// +kubebuilder:default=Same
	// +optional
	From NamespacesFrom `json:"from,omitempty"`

	// selector matches the labels of the namespaces that are admitted.
	// +optional
	Selector *NamespaceSelector `json:"selector,omitempty"`
}

// NamespaceSelector matches namespaces that carry all of the labels.
type NamespaceSelector struct {
	// matchLabels are the labels that a namespace is to carry, with their values.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	// +required
	MatchLabels map[string]LabelValue `json:"matchLabels"`
}

// LabelValue is the value of a Kubernetes label.
// +kubebuilder:validation:MaxLength=63
type LabelValue string

// LabelPersonal marks the group that holds the personal projects of a user; its value is the user's id.
const LabelPersonal = "forgeplane.dev/personal"

// AnnotationPersonal is beside LabelPersonal; its value is the UID of the user. One who is made anew under the id is somebody else.
const AnnotationPersonal = "forgeplane.dev/personal-uid"

// LabelCreator is on groups and projects that were made over REST; its value is the id of the user who made them, against whose
// limits they count.
const LabelCreator = "forgeplane.dev/creator"

// AnnotationOwner is on a group that was made over REST until the Membership that makes its creator the owner is there; its value is the
// id and the UID of the User, as in 7/3f0c…. To set it takes the verb pin.
const AnnotationOwner = "forgeplane.dev/owner"

// GroupSpec declares a group.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.id) || !has(self.id) || self.id == oldSelf.id",message="id cannot change once set",fieldPath=".id"
type GroupSpec struct {
	// id is the integer id that the REST API shows; allocated when omitted, and fixed from then on.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	ID int64 `json:"id,omitempty"`

	// path is the group's own segment of its full path.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9_]([a-zA-Z0-9_.-]*[a-zA-Z0-9_])?$`
	// +kubebuilder:validation:XValidation:rule="!self.endsWith('.git') && !self.endsWith('.atom')",message="path is not to end in .git or .atom"
	// +required
	Path string `json:"path"`

	// name is what people call the group; the path when omitted.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Name string `json:"name,omitempty"`

	// description says what the group is for.
	// +kubebuilder:validation:MaxLength=500
	// +optional
	Description string `json:"description,omitempty"`

	// parentRef names the group above; none makes it a root group. A parent in another namespace is named by path
	// or id, and admits this namespace in its allowedNamespaces.
	// +optional
	ParentRef *Reference `json:"parentRef,omitempty"`

	// allowedNamespaces says whose groups may name this one as their parent; its own namespace's when omitted.
	// +optional
	AllowedNamespaces *AllowedNamespaces `json:"allowedNamespaces,omitempty"`

	// visibility says who may see the group. What is below a group is never seen by more people than the group.
	// +kubebuilder:default=Private
	// +optional
	Visibility Visibility `json:"visibility,omitempty"`
}

// GroupStatus is what Forgeplane observed of a group.
type GroupStatus struct {
	CommonStatus `json:",inline"`

	// id that is in force.
	// +optional
	ID int64 `json:"id,omitempty"`

	// parentRef is the path or id in spec.parentRef, with the uid of the group that it led to. Another one that gets the path or id later is
	// not followed into another namespace.
	// +optional
	ParentRef *Reference `json:"parentRef,omitempty"`

	// fullPath is the paths of the groups above and the group's own, joined by slashes; empty while another object holds it.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	FullPath string `json:"fullPath,omitempty"`
}

// Group holds projects and other groups, and what they inherit.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=fgroup,categories=forge
// +kubebuilder:selectablefield:JSONPath=.spec.id
// +kubebuilder:selectablefield:JSONPath=.spec.parentRef.name
// +kubebuilder:printcolumn:name="Full path",type=string,JSONPath=.status.fullPath
// +kubebuilder:printcolumn:name="Visibility",type=string,JSONPath=.spec.visibility
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].status
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=.status.conditions[?(@.type=="Ready")].reason
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=.metadata.creationTimestamp
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.id) || !has(self.spec.id) || self.spec.id == oldSelf.status.id",message="spec.id cannot change once set"
type Group struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is declared.
	// +required
	Spec GroupSpec `json:"spec"`

	// status is what Forgeplane observed.
	// +kubebuilder:default={observedGeneration:-1}
	// +optional
	Status GroupStatus `json:"status,omitempty"`
}

// GetCommonStatus returns the part of the status that every kind has.
func (g *Group) GetCommonStatus() *CommonStatus { return &g.Status.CommonStatus }

// NewList returns an empty list of the kind.
func (g *Group) NewList() ObjectList { return &GroupList{} }

// IDs returns where the declared id and the id in force are kept.
func (g *Group) IDs() (spec, status *int64) { return &g.Spec.ID, &g.Status.ID }

// RESTID is the id that the REST API shows.
func (g *Group) RESTID() int64 { return cmp.Or(g.Spec.ID, g.Status.ID) }

// GroupList is a list of groups.
// +kubebuilder:object:root=true
type GroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Group `json:"items"`
}
