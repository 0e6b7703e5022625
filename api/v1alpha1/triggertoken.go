package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// LabelSecret is on every Secret that Forgeplane uses for objects of tenants. Its value is the purpose of the Secret. Forgeplane does
	// not read a Secret of a tenant without this label.
	LabelSecret = "forgeplane.dev/secret"
	// SecretOfTriggerToken is the value of LabelSecret on Secrets that contain, or receive, the values of trigger tokens.
	SecretOfTriggerToken = "trigger-token"
	// SecretOfRemoteMirror is the value of LabelSecret on Secrets with the credentials of mirrors.
	SecretOfRemoteMirror = "remote-mirror"
	// SecretOfImport is the value of LabelSecret on Secrets with credentials for importURL.
	SecretOfImport = "import"

	// AnnotationHost on a Secret is the only host that its credentials are sent to: host or host:port for https, or a URL for another
	// scheme, as in http://host:8080.
	AnnotationHost = "forgeplane.dev/host"
	// AnnotationHolder on a Secret of the platform is the namespace and name of the object that it belongs to.
	AnnotationHolder = "forgeplane.dev/holder"

	// AnnotationRotate on a TriggerToken requests a new value for the token, once for each text that it is set to.
	AnnotationRotate = "forgeplane.dev/rotate"
	// AnnotationRotated on a Secret is the last text of AnnotationRotate for which its value was generated.
	AnnotationRotated = "forgeplane.dev/rotated"
	// AnnotationGenerated is on a Secret that others can write. It names the keys whose values Forgeplane has generated, each with the UID
	// of the token and the digest of the value. Only these values are deleted with the token.
	AnnotationGenerated = "forgeplane.dev/generated"
)

// TriggerTokenSpec declares a token that starts pipelines of one project.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.id) || !has(self.id) || self.id == oldSelf.id",message="id cannot change once set",fieldPath=".id"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.ownerRef) || has(self.ownerRef) && (has(self.ownerRef.name) ? has(oldSelf.ownerRef.name) && self.ownerRef.name == oldSelf.ownerRef.name : has(self.ownerRef.path) ? has(oldSelf.ownerRef.path) && self.ownerRef.path == oldSelf.ownerRef.path : has(oldSelf.ownerRef.id) && self.ownerRef.id == oldSelf.ownerRef.id)",message="ownerRef cannot change once set: make a new token",fieldPath=".ownerRef"
type TriggerTokenSpec struct {
	// id is the integer id that the REST API shows. It is unique within the kind. Forgeplane allocates it if omitted; setting it requires
	// the verb pin. It cannot change once set.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	ID int64 `json:"id,omitempty"`

	// projectRef refers to a project in the same namespace. It cannot be changed to refer to another project.
	// +required
	ProjectRef Reference `json:"projectRef"`

	// ownerRef refers to the user who owns the token. Only the owner sees its value over REST. The token is accepted while the owner is a
	// Maintainer of the project, or an administrator who has created it over REST themselves. It cannot change once set.
	// +optional
	OwnerRef *Reference `json:"ownerRef,omitempty"`

	// description describes the purpose of the token.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`

	// secretRef refers to a key of a Secret in the same namespace that contains the value of the token. The Secret must have the label
	// forgeplane.dev/secret=trigger-token. If there is nothing under the key, Forgeplane generates a value and stores it there. If
	// omitted, Forgeplane generates a value and keeps it in the namespace of the platform, where only the owner of the token sees it, over
	// REST.
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self.name).hasValue()",message="this cannot be the name of a Secret",fieldPath=".name"
	// +optional
	SecretRef *SecretKeyReference `json:"secretRef,omitempty"`
}

// TriggerTokenStatus is the observed state of a trigger token.
type TriggerTokenStatus struct {
	CommonStatus `json:",inline"`
	TargetStatus `json:",inline"`

	// id is the integer id that is in force.
	// +optional
	ID int64 `json:"id,omitempty"`

	// secretRef refers to the Secret in the namespace of the platform that contains the value. It is empty if spec.secretRef is set.
	// +optional
	SecretRef LocalSecretReference `json:"secretRef,omitempty,omitzero"`

	// digest is the SHA-256, in lower-case hexadecimal, of the value that Forgeplane accepts. The value itself is only in the Secret.
	// While the digest is empty, no value is accepted.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Digest string `json:"digest,omitempty"`

	// issuedTo is the uid of the user who created the token over REST for themselves. An administrator can own only such tokens.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	IssuedTo string `json:"issuedTo,omitempty"`

	// rotated is the last text of the annotation forgeplane.dev/rotate for which Forgeplane has replaced the value.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Rotated string `json:"rotated,omitempty"`
}

// TriggerToken is a token that starts pipelines of one project.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=trig,categories=forge
// +kubebuilder:selectablefield:JSONPath=.spec.id
// +kubebuilder:selectablefield:JSONPath=.spec.projectRef.name
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=.status.targetPath
// +kubebuilder:printcolumn:name="Description",type=string,JSONPath=.spec.description
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].status
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].reason
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=.metadata.creationTimestamp
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=.status.conditions[?(@.type=="Ready")].message
// +kubebuilder:validation:XValidation:rule="has(oldSelf.spec.id) || !has(oldSelf.status) || !has(oldSelf.status.id) || !has(self.spec.id) || self.spec.id == oldSelf.status.id",message="id cannot change once set",fieldPath=".spec.id"
type TriggerToken struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the declared state of the object.
	// +required
	Spec TriggerTokenSpec `json:"spec"`

	// status is the state of the object as Forgeplane last observed it.
	// +kubebuilder:default={observedGeneration:-1}
	// +optional
	Status TriggerTokenStatus `json:"status,omitempty"`
}

// GetCommonStatus returns the part of the status that every kind has.
func (t *TriggerToken) GetCommonStatus() *CommonStatus { return &t.Status.CommonStatus }

// NewList returns an empty list of the kind.
func (t *TriggerToken) NewList() ObjectList { return &TriggerTokenList{} }

// IDs returns the addresses of the declared id and of the id that is in force.
func (t *TriggerToken) IDs() (spec, status *int64) { return &t.Spec.ID, &t.Status.ID }

// RESTID returns the id that the REST API shows.
func (t *TriggerToken) RESTID() int64 { return cmp.Or(t.Spec.ID, t.Status.ID) }

// GetTargetStatus returns the part of the status about the project or group that the object is declared for.
func (t *TriggerToken) GetTargetStatus() *TargetStatus { return &t.Status.TargetStatus }

// TargetRefs returns the references to the project and to the group that the object is declared for. One of them is nil.
func (t *TriggerToken) TargetRefs() (project, group *Reference) { return &t.Spec.ProjectRef, nil }

// TriggerTokenList is a list of trigger tokens.
// +kubebuilder:object:root=true
type TriggerTokenList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TriggerToken `json:"items"`
}
