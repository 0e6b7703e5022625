package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeployKeyAccess specifies what a deploy key can do.
// +kubebuilder:validation:Enum=ReadOnly;ReadWrite
type DeployKeyAccess string

// Access of deploy keys.
const (
	// DeployKeyReadOnly allows clone and fetch.
	DeployKeyReadOnly DeployKeyAccess = "ReadOnly"
	// DeployKeyReadWrite allows clone, fetch and push.
	DeployKeyReadWrite DeployKeyAccess = "ReadWrite"
)

// DeployKeySpec declares an SSH key that machines use for one project.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.id) || !has(self.id) || self.id == oldSelf.id",message="id cannot change once set",fieldPath=".id"
type DeployKeySpec struct {
	// id is the integer id that the REST API shows. It is unique within the kind. Forgeplane allocates it if omitted; setting it requires
	// the verb pin. It cannot change once set.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	ID int64 `json:"id,omitempty"`

	// projectRef refers to a project in the same namespace. It cannot be changed to refer to another project.
	// +required
	ProjectRef Reference `json:"projectRef"`

	// title describes the purpose of the key.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +required
	Title string `json:"title"`

	// publicKey is the public key, in the format of a line of authorized_keys. It cannot change.
	// +kubebuilder:validation:MinLength=16
	// +kubebuilder:validation:MaxLength=8192
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="publicKey cannot change: make a new key"
	// +kubebuilder:validation:XValidation:rule="!self.contains('PRIVATE KEY')",message="publicKey holds a private key: consider it lost, make a new pair and give its public half"
	// +required
	PublicKey string `json:"publicKey"`

	// access specifies whether the key can push. Defaults to ReadOnly.
	// +kubebuilder:default=ReadOnly
	// +optional
	Access DeployKeyAccess `json:"access,omitempty"`
}

// DeployKeyStatus is the observed state of a deploy key.
type DeployKeyStatus struct {
	CommonStatus `json:",inline"`
	TargetStatus `json:",inline"`

	// id is the integer id that is in force.
	// +optional
	ID int64 `json:"id,omitempty"`

	// fingerprintMD5 is the MD5 fingerprint of the key: pairs of hexadecimal digits, separated by colons.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	FingerprintMD5 string `json:"fingerprintMD5,omitempty"`

	// fingerprintSHA256 is the SHA-256 fingerprint of the key, in the format of ssh-keygen -l.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	FingerprintSHA256 string `json:"fingerprintSHA256,omitempty"`
}

// DeployKey is an SSH key that machines use for one project.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=dkey,categories=forge
// +kubebuilder:selectablefield:JSONPath=.spec.id
// +kubebuilder:selectablefield:JSONPath=.spec.projectRef.name
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=.status.targetPath
// +kubebuilder:printcolumn:name="Title",type=string,JSONPath=.spec.title
// +kubebuilder:printcolumn:name="Access",type=string,JSONPath=.spec.access
// +kubebuilder:printcolumn:name="Fingerprint",type=string,priority=1,JSONPath=.status.fingerprintSHA256
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].status
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].reason
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=.metadata.creationTimestamp
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=.status.conditions[?(@.type=="Ready")].message
// +kubebuilder:validation:XValidation:rule="has(oldSelf.spec.id) || !has(oldSelf.status) || !has(oldSelf.status.id) || !has(self.spec.id) || self.spec.id == oldSelf.status.id",message="id cannot change once set",fieldPath=".spec.id"
type DeployKey struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the declared state of the object.
	// +required
	Spec DeployKeySpec `json:"spec"`

	// status is the state of the object as Forgeplane last observed it.
	// +kubebuilder:default={observedGeneration:-1}
	// +optional
	Status DeployKeyStatus `json:"status,omitempty"`
}

// GetCommonStatus returns the part of the status that every kind has.
func (k *DeployKey) GetCommonStatus() *CommonStatus { return &k.Status.CommonStatus }

// NewList returns an empty list of the kind.
func (k *DeployKey) NewList() ObjectList { return &DeployKeyList{} }

// IDs returns the addresses of the declared id and of the id that is in force.
func (k *DeployKey) IDs() (spec, status *int64) { return &k.Spec.ID, &k.Status.ID }

// RESTID returns the id that the REST API shows.
func (k *DeployKey) RESTID() int64 { return cmp.Or(k.Spec.ID, k.Status.ID) }

// GetTargetStatus returns the part of the status about the project or group that the object is declared for.
func (k *DeployKey) GetTargetStatus() *TargetStatus { return &k.Status.TargetStatus }

// TargetRefs returns the references to the project and to the group that the object is declared for. One of them is nil.
func (k *DeployKey) TargetRefs() (project, group *Reference) { return &k.Spec.ProjectRef, nil }

// DeployKeyList is a list of deploy keys.
// +kubebuilder:object:root=true
type DeployKeyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DeployKey `json:"items"`
}
