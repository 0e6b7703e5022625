package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TokenScope is one thing that a token may be used for.
// +kubebuilder:validation:Enum=api;read_api;read_user;read_repository;write_repository;read_registry;write_registry;sudo
type TokenScope string

// The scopes, by the names that the interface document gives to them.
const (
	// ScopeAPI allows everything that the user may do.
	ScopeAPI TokenScope = "api"
	// ScopeReadAPI allows every reading call of the REST API.
	ScopeReadAPI TokenScope = "read_api"
	// ScopeReadUser allows reading users.
	ScopeReadUser TokenScope = "read_user"
	// ScopeReadRepository allows clone and fetch.
	ScopeReadRepository TokenScope = "read_repository"
	// ScopeWriteRepository allows clone, fetch and push.
	ScopeWriteRepository TokenScope = "write_repository"
	// ScopeReadRegistry allows pulling images.
	ScopeReadRegistry TokenScope = "read_registry"
	// ScopeWriteRegistry allows pushing images.
	ScopeWriteRegistry TokenScope = "write_registry"
	// ScopeSudo allows an administrator to act as another user.
	ScopeSudo TokenScope = "sudo"
)

// AccessTokenSpec declares a personal access token.
// +kubebuilder:validation:XValidation:rule="has(self.secretRef) != has(self.digest)",message="one of secretRef and digest must be set, and not both",fieldPath=".secretRef"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.digest) || has(self.digest) && self.digest == oldSelf.digest",message="digest cannot change once set: make a new token",fieldPath=".digest"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.id) || !has(self.id) || self.id == oldSelf.id",message="id cannot change once set",fieldPath=".id"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.revoked) || !oldSelf.revoked || has(self.revoked) && self.revoked",message="a revoked token stays revoked: make a new one",fieldPath=".revoked"
type AccessTokenSpec struct {
	// id is the integer id that the REST API shows; allocated when omitted, and fixed from then on.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	ID int64 `json:"id,omitempty"`

	// userRef names the user whom the token stands for; it cannot change.
	// +kubebuilder:validation:XValidation:rule="has(self.name) ? has(oldSelf.name) && self.name == oldSelf.name : has(self.path) ? has(oldSelf.path) && self.path == oldSelf.path : has(oldSelf.id) && self.id == oldSelf.id",message="userRef cannot change: make a new token"
	// +required
	UserRef Reference `json:"userRef"`

	// description says what the token is for.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Description string `json:"description,omitempty"`

	// scopes limit what the token may be used for.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +required
	Scopes []TokenScope `json:"scopes"`

	// expiresAt is when the token ends to be accepted; never when omitted.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`

	// revoked ends the token at once; it cannot be taken back.
	// +optional
	Revoked bool `json:"revoked,omitempty"`

	// secretRef names the Secret, in the namespace of the platform, that holds the token's value, or receives a
	// generated one when the Secret or its key is missing. Deleting the key gives the token a new value.
	// +optional
	SecretRef *SecretKeyReference `json:"secretRef,omitempty"`

	// digest is the SHA-256, in lower-case hexadecimal, of a value that only its user keeps. Tokens that are made over REST have
	// it instead of secretRef. To set it takes the verb pin, and it cannot change.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{64}$')",message="digest must be a SHA-256 in lower-case hexadecimal: 64 characters"
	// +optional
	Digest string `json:"digest,omitempty"`
}

// AccessTokenStatus is what Forgeplane observed of a token.
type AccessTokenStatus struct {
	CommonStatus `json:",inline"`

	// id that is in force.
	// +optional
	ID int64 `json:"id,omitempty"`

	// digest is the SHA-256 of the value that is accepted, in lower-case hexadecimal: that of spec.digest, or of what is in the Secret.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Digest string `json:"digest,omitempty"`
}

// AccessToken is a personal access token.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=pat,categories=forge
// +kubebuilder:selectablefield:JSONPath=.spec.id
// +kubebuilder:printcolumn:name="Description",type=string,JSONPath=.spec.description
// +kubebuilder:printcolumn:name="Scopes",type=string,JSONPath=.spec.scopes
// +kubebuilder:printcolumn:name="Expires",type=date,JSONPath=.spec.expiresAt
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].status
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=.status.conditions[?(@.type=="Ready")].reason
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=.metadata.creationTimestamp
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.id) || !has(self.spec.id) || self.spec.id == oldSelf.status.id",message="spec.id cannot change once set"
type AccessToken struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is declared.
	// +required
	Spec AccessTokenSpec `json:"spec"`

	// status is what Forgeplane observed.
	// +kubebuilder:default={observedGeneration:-1}
	// +optional
	Status AccessTokenStatus `json:"status,omitempty"`
}

// GetCommonStatus returns the part of the status that every kind has.
func (t *AccessToken) GetCommonStatus() *CommonStatus { return &t.Status.CommonStatus }

// NewList returns an empty list of the kind.
func (t *AccessToken) NewList() ObjectList { return &AccessTokenList{} }

// IDs returns where the declared id and the id in force are kept.
func (t *AccessToken) IDs() (spec, status *int64) { return &t.Spec.ID, &t.Status.ID }

// RESTID is the id that the REST API shows.
func (t *AccessToken) RESTID() int64 { return cmp.Or(t.Spec.ID, t.Status.ID) }

// AccessTokenList is a list of tokens.
// +kubebuilder:object:root=true
type AccessTokenList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AccessToken `json:"items"`
}
