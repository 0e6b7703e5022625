package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TokenScope is something that a token can be used for.
// +kubebuilder:validation:Enum=api;read_api;read_user;read_repository;write_repository;read_registry;write_registry;sudo
type TokenScope string

// Scopes, with their names in the REST API.
const (
	// ScopeAPI allows everything that the user can do.
	ScopeAPI TokenScope = "api"
	// ScopeReadAPI allows every read request of the REST API.
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
	// id is the integer id that the REST API shows. It is unique within the kind. Forgeplane allocates it if omitted; setting it requires
	// the verb pin. It cannot change once set.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	ID int64 `json:"id,omitempty"`

	// userRef refers to the user that the token authenticates. It cannot change.
	// +kubebuilder:validation:XValidation:rule="has(self.name) ? has(oldSelf.name) && self.name == oldSelf.name : has(self.path) ? has(oldSelf.path) && self.path == oldSelf.path : has(oldSelf.id) && self.id == oldSelf.id",message="userRef cannot change: make a new token"
	// +required
	UserRef Reference `json:"userRef"`

	// description describes the purpose of the token.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Description string `json:"description,omitempty"`

	// scopes specifies what the token can be used for. At least one scope is required.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +required
	Scopes []TokenScope `json:"scopes"`

	// expiresAt is the time at which the token expires. If omitted, the token never expires.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9-]{10}T[0-9:.]{8,}(Z|[+-][0-9:]{5})$') && timestamp(self).getFullYear() > 0",message="expiresAt must be a date and a time, as in 2027-01-31T00:00:00Z"
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`

	// revoked ends the token, within a second. It cannot be undone. Defaults to false.
	// +optional
	Revoked bool `json:"revoked,omitempty"`

	// secretRef refers to the key of the Secret, in the namespace of the platform, that contains the value of the token. If the Secret or
	// its key is missing, Forgeplane generates a value and stores it there. Deleting the key gives the token a new value. Exactly one of
	// secretRef and digest must be set.
	// +optional
	SecretRef *SecretKeyReference `json:"secretRef,omitempty"`

	// digest is the SHA-256, in lower-case hexadecimal, of a value that only the user has. Tokens that are created over REST have a digest
	// instead of a secretRef. Only those who have the verb pin can set it. It cannot change once set.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{64}$')",message="digest must be a SHA-256 in lower-case hexadecimal: 64 characters"
	// +optional
	Digest string `json:"digest,omitempty"`
}

// AccessTokenStatus is the observed state of a personal access token.
type AccessTokenStatus struct {
	CommonStatus `json:",inline"`

	// id is the integer id that is in force.
	// +optional
	ID int64 `json:"id,omitempty"`

	// username is the username of the user that the token authenticates.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Username string `json:"username,omitempty"`

	// digest is the SHA-256, in lower-case hexadecimal, of the value that Forgeplane accepts: spec.digest, or the digest of the value in
	// the Secret.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Digest string `json:"digest,omitempty"`

	// endedAt is the time at which Forgeplane saw that the token is revoked or has expired. It is empty while the token is accepted.
	// +optional
	EndedAt *metav1.Time `json:"endedAt,omitempty"`
}

// AccessToken is a personal access token.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=pat,categories=forge-admin
// +kubebuilder:selectablefield:JSONPath=.spec.id
// +kubebuilder:printcolumn:name="User",type=string,JSONPath=.status.username
// +kubebuilder:printcolumn:name="Description",type=string,JSONPath=.spec.description
// +kubebuilder:printcolumn:name="Scopes",type=string,JSONPath=.spec.scopes
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=.spec.expiresAt
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].status
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].reason
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=.metadata.creationTimestamp
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=.status.conditions[?(@.type=="Ready")].message
// +kubebuilder:validation:XValidation:rule="has(oldSelf.spec.id) || !has(oldSelf.status) || !has(oldSelf.status.id) || !has(self.spec.id) || self.spec.id == oldSelf.status.id",message="id cannot change once set",fieldPath=".spec.id"
type AccessToken struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the declared state of the object.
	// +required
	Spec AccessTokenSpec `json:"spec"`

	// status is the state of the object as Forgeplane last observed it.
	// +kubebuilder:default={observedGeneration:-1}
	// +optional
	Status AccessTokenStatus `json:"status,omitempty"`
}

// GetCommonStatus returns the part of the status that every kind has.
func (t *AccessToken) GetCommonStatus() *CommonStatus { return &t.Status.CommonStatus }

// NewList returns an empty list of the kind.
func (t *AccessToken) NewList() ObjectList { return &AccessTokenList{} }

// IDs returns the addresses of the declared id and of the id that is in force.
func (t *AccessToken) IDs() (spec, status *int64) { return &t.Spec.ID, &t.Status.ID }

// RESTID returns the id that the REST API shows.
func (t *AccessToken) RESTID() int64 { return cmp.Or(t.Spec.ID, t.Status.ID) }

// AccessTokenList is a list of personal access tokens.
// +kubebuilder:object:root=true
type AccessTokenList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AccessToken `json:"items"`
}
