package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// LabelSecret is on every Secret that Forgeplane uses for objects of tenants; its value says what for. Without it a Secret of a
	// tenant is not even read.
	LabelSecret = "forgeplane.dev/secret"
	// SecretOfTriggerToken is the value of LabelSecret on Secrets that hold, or receive, the values of trigger tokens.
	SecretOfTriggerToken = "trigger-token"
	// SecretOfRemoteMirror is the value of LabelSecret on Secrets with the credentials of mirrors.
	SecretOfRemoteMirror = "remote-mirror"
	// SecretOfImport is the value of LabelSecret on Secrets with credentials for importURL.
	SecretOfImport = "import"

	// AnnotationHost on a Secret is the only host that its credentials are sent to: host or host:port, over https, or a URL of another
	// scheme, as in http://host:8080.
	AnnotationHost = "forgeplane.dev/host"
	// AnnotationHolder on a Secret of the platform is the namespace and name of the object that it belongs to.
	AnnotationHolder = "forgeplane.dev/holder"

	// AnnotationRotate on a TriggerToken asks for another value, once for each text that it is set to.
	AnnotationRotate = "forgeplane.dev/rotate"
	// AnnotationRotated on a Secret is the last text of AnnotationRotate that its value was made for.
	AnnotationRotated = "forgeplane.dev/rotated"
	// AnnotationGenerated on a Secret that somebody else may write names the keys whose values Forgeplane has generated, each with the
	// UID of the token that it is for and the digest of the value. These go with the token, and no others.
	AnnotationGenerated = "forgeplane.dev/generated"
)

// TriggerTokenSpec declares a token that starts pipelines of one project.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.id) || !has(self.id) || self.id == oldSelf.id",message="id cannot change once set",fieldPath=".id"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.ownerRef) || has(self.ownerRef) && (has(self.ownerRef.name) ? has(oldSelf.ownerRef.name) && self.ownerRef.name == oldSelf.ownerRef.name : has(self.ownerRef.path) ? has(oldSelf.ownerRef.path) && self.ownerRef.path == oldSelf.ownerRef.path : has(oldSelf.ownerRef.id) && self.ownerRef.id == oldSelf.ownerRef.id)",message="ownerRef cannot change once set: make a new token",fieldPath=".ownerRef"
type TriggerTokenSpec struct {
	// id is the integer id that the REST API shows; allocated when omitted, and fixed from then on.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	ID int64 `json:"id,omitempty"`

	// projectRef names a project in the same namespace; it cannot change.
	// +kubebuilder:validation:XValidation:rule="has(self.name) ? has(oldSelf.name) && self.name == oldSelf.name : has(self.path) ? has(oldSelf.path) && self.path == oldSelf.path : has(oldSelf.id) && self.id == oldSelf.id",message="projectRef cannot change"
	// +required
	ProjectRef Reference `json:"projectRef"`

	// ownerRef names the user whose token it is, who alone is shown its value over REST; it cannot change once set.
	// The token is accepted while he is a Maintainer of the project, or an administrator who has made it over REST himself.
	// +optional
	OwnerRef *Reference `json:"ownerRef,omitempty"`

	// description says what the token is for.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`

	// secretRef names a Secret, in the same namespace and with the label forgeplane.dev/secret=trigger-token, that holds the token's
	// value, or that receives a generated one while there is nothing under the key. When omitted, a value is generated and kept in the
	// namespace of the platform, where only the owner of the token sees it, over REST.
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self.name).hasValue()",message="this cannot be the name of a Secret",fieldPath=".name"
	// +optional
	SecretRef *SecretKeyReference `json:"secretRef,omitempty"`
}

// TriggerTokenStatus is what Forgeplane observed of a trigger token.
type TriggerTokenStatus struct {
	CommonStatus `json:",inline"`

	// id that is in force.
	// +optional
	ID int64 `json:"id,omitempty"`

	// secretRef names the Secret that holds the value, in the namespace of the platform; empty where spec.secretRef names one.
	// +optional
	SecretRef LocalSecretReference `json:"secretRef,omitempty,omitzero"`

	// digest is the SHA-256 of the value that is accepted, in lower-case hexadecimal; the value itself is only in the
	// Secret. None is accepted while it is empty.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Digest string `json:"digest,omitempty"`

	// issuedTo is the uid of the user who made the token over REST himself. An administrator owns no other tokens.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	IssuedTo string `json:"issuedTo,omitempty"`

	// rotated is the last text of the annotation forgeplane.dev/rotate for which the value was replaced.
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
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=.spec.projectRef.name
// +kubebuilder:printcolumn:name="Description",type=string,JSONPath=.spec.description
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].status
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=.status.conditions[?(@.type=="Ready")].reason
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=.metadata.creationTimestamp
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.id) || !has(self.spec.id) || self.spec.id == oldSelf.status.id",message="spec.id cannot change once set"
type TriggerToken struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is declared.
	// +required
	Spec TriggerTokenSpec `json:"spec"`

	// status is what Forgeplane observed.
	// +kubebuilder:default={observedGeneration:-1}
	// +optional
	Status TriggerTokenStatus `json:"status,omitempty"`
}

// GetCommonStatus returns the part of the status that every kind has.
func (t *TriggerToken) GetCommonStatus() *CommonStatus { return &t.Status.CommonStatus }

// NewList returns an empty list of the kind.
func (t *TriggerToken) NewList() ObjectList { return &TriggerTokenList{} }

// IDs returns where the declared id and the id in force are kept.
func (t *TriggerToken) IDs() (spec, status *int64) { return &t.Spec.ID, &t.Status.ID }

// RESTID is the id that the REST API shows.
func (t *TriggerToken) RESTID() int64 { return cmp.Or(t.Spec.ID, t.Status.ID) }

// TargetRefs returns the references to the project and to the group that the object is declared for, one of which is nil.
func (t *TriggerToken) TargetRefs() (project, group *Reference) { return &t.Spec.ProjectRef, nil }

// SecretRef is where the value is kept in the token's own namespace: where it is declared, or where earlier versions of Forgeplane
// kept one that they had generated.
func (t *TriggerToken) SecretRef() SecretKeyReference {
	if t.Spec.SecretRef != nil {
		return *t.Spec.SecretRef
	}
	return SecretKeyReference{Name: t.Name + "-trigger-token", Key: "token"}
}

// TriggerTokenList is a list of trigger tokens.
// +kubebuilder:object:root=true
type TriggerTokenList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TriggerToken `json:"items"`
}
