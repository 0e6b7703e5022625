package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BadgeSpec declares an image with a link, which is shown for one project or for every project below a group.
// +kubebuilder:validation:ExactlyOneOf=projectRef;groupRef
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.id) || !has(self.id) || self.id == oldSelf.id",message="id cannot change once set",fieldPath=".id"
// +kubebuilder:validation:XValidation:rule="has(self.projectRef) == has(oldSelf.projectRef)",message="projectRef and groupRef cannot replace each other: make a new object"
type BadgeSpec struct {
	// id is the integer id that the REST API shows. It is unique within the kind. Forgeplane allocates it if omitted; setting it requires
	// the verb pin. It cannot change once set.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	ID int64 `json:"id,omitempty"`

	// projectRef refers to a project in the same namespace. It cannot be changed to refer to another project.
	// +optional
	ProjectRef *Reference `json:"projectRef,omitempty"`

	// groupRef refers to a group in the same namespace. Every project below it shows the badge. It cannot be changed to refer to another group.
	// +optional
	GroupRef *Reference `json:"groupRef,omitempty"`

	// name is the display name of the badge. It need not be unique.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Name string `json:"name,omitempty"`

	// linkURL is the URL that the badge links to. It must be an http or https URL without credentials, and can contain placeholders such
	// as %{project_path}.
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^[hH][tT][tT][pP][sS]?://[^/?#:]')",message="linkURL must begin with http:// or https:// and a host"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\x00-\\\\x20\\\\x7f<>\"\\\\\\\\^`]')",message="linkURL must not contain spaces, control characters, quotes, angle brackets, carets, grave accents or backslashes: write them with a percent sign, as in %20"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^:]+://[^/?#]*@')",message="linkURL must not contain credentials: everybody who sees the project sees it"
	// +required
	LinkURL string `json:"linkURL"`

	// imageURL is the URL of the image. It must be an http or https URL without credentials, and can contain placeholders such as
	// %{default_branch}.
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^[hH][tT][tT][pP][sS]?://[^/?#:]')",message="imageURL must begin with http:// or https:// and a host"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\x00-\\\\x20\\\\x7f<>\"\\\\\\\\^`]')",message="imageURL must not contain spaces, control characters, quotes, angle brackets, carets, grave accents or backslashes: write them with a percent sign, as in %20"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^:]+://[^/?#]*@')",message="imageURL must not contain credentials: everybody who sees the project sees it"
	// +required
	ImageURL string `json:"imageURL"`
}

// BadgeStatus is the observed state of a badge.
type BadgeStatus struct {
	CommonStatus `json:",inline"`
	TargetStatus `json:",inline"`

	// id is the integer id that is in force.
	// +optional
	ID int64 `json:"id,omitempty"`

	// renderedLinkURL is linkURL with the values of its placeholders. A placeholder without a value stays as it is.
	// +kubebuilder:validation:MaxLength=8192
	// +optional
	RenderedLinkURL string `json:"renderedLinkURL,omitempty"`

	// renderedImageURL is imageURL with the values of its placeholders. A placeholder without a value stays as it is.
	// +kubebuilder:validation:MaxLength=8192
	// +optional
	RenderedImageURL string `json:"renderedImageURL,omitempty"`
}

// Badge is an image with a link that one project, or every project below a group, shows.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=bdg,categories=forge
// +kubebuilder:selectablefield:JSONPath=.spec.id
// +kubebuilder:selectablefield:JSONPath=.spec.projectRef.name
// +kubebuilder:printcolumn:name="Of",type=string,JSONPath=.status.targetPath
// +kubebuilder:printcolumn:name="Badge",type=string,JSONPath=.spec.name
// +kubebuilder:printcolumn:name="Image",type=string,priority=1,JSONPath=.status.renderedImageURL
// +kubebuilder:printcolumn:name="Link",type=string,priority=1,JSONPath=.status.renderedLinkURL
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].status
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].reason
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=.metadata.creationTimestamp
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=.status.conditions[?(@.type=="Ready")].message
// +kubebuilder:validation:XValidation:rule="has(oldSelf.spec.id) || !has(oldSelf.status) || !has(oldSelf.status.id) || !has(self.spec.id) || self.spec.id == oldSelf.status.id",message="id cannot change once set",fieldPath=".spec.id"
type Badge struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the declared state of the object.
	// +required
	Spec BadgeSpec `json:"spec"`

	// status is the state of the object as Forgeplane last observed it.
	// +kubebuilder:default={observedGeneration:-1}
	// +optional
	Status BadgeStatus `json:"status,omitempty"`
}

// GetCommonStatus returns the part of the status that every kind has.
func (b *Badge) GetCommonStatus() *CommonStatus { return &b.Status.CommonStatus }

// NewList returns an empty list of the kind.
func (b *Badge) NewList() ObjectList { return &BadgeList{} }

// IDs returns the addresses of the declared id and of the id that is in force.
func (b *Badge) IDs() (spec, status *int64) { return &b.Spec.ID, &b.Status.ID }

// RESTID returns the id that the REST API shows.
func (b *Badge) RESTID() int64 { return cmp.Or(b.Spec.ID, b.Status.ID) }

// GetTargetStatus returns the part of the status about the project or group that the object is declared for.
func (b *Badge) GetTargetStatus() *TargetStatus { return &b.Status.TargetStatus }

// TargetRefs returns the references to the project and to the group that the object is declared for. One of them is nil.
func (b *Badge) TargetRefs() (project, group *Reference) { return b.Spec.ProjectRef, b.Spec.GroupRef }

// BadgeList is a list of badges.
// +kubebuilder:object:root=true
type BadgeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Badge `json:"items"`
}
