package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SecretOfBotToken is the value of LabelSecret on Secrets that contain, or receive, the values of bot tokens.
const SecretOfBotToken = "bot-token"

// BotTokenSpec declares an access token of one project, or of one group with everything below it, and the bot that it authenticates.
// +kubebuilder:validation:ExactlyOneOf=projectRef;groupRef
// +kubebuilder:validation:XValidation:rule="has(self.secretRef) != has(self.digest)",message="one of secretRef and digest must be set, and not both",fieldPath=".secretRef"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.id) || !has(self.id) || self.id == oldSelf.id",message="id cannot change once set",fieldPath=".id"
// +kubebuilder:validation:XValidation:rule="has(self.projectRef) == has(oldSelf.projectRef)",message="projectRef and groupRef cannot replace each other: make a new object"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.revoked) || !oldSelf.revoked || has(self.revoked) && self.revoked",message="a revoked token stays revoked: make a new one",fieldPath=".revoked"
type BotTokenSpec struct {
	// id is the integer id that the REST API shows. It is unique within the kind. Forgeplane allocates it if omitted; setting it requires
	// the verb pin. It cannot change once set.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	ID int64 `json:"id,omitempty"`

	// projectRef refers to a project in the same namespace. It cannot be changed to refer to another project.
	// +optional
	ProjectRef *Reference `json:"projectRef,omitempty"`

	// groupRef refers to a group in the same namespace. The bot has its role in the group and in everything below. It cannot be changed to
	// refer to another group.
	// +optional
	GroupRef *Reference `json:"groupRef,omitempty"`

	// name is the display name of the token and of its bot. It need not be unique.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +required
	Name string `json:"name"`

	// description describes the purpose of the token.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Description string `json:"description,omitempty"`

	// role is the role of the bot in the project, or in the group and everything below. Defaults to Maintainer.
	// +kubebuilder:default=Maintainer
	// +optional
	Role Role `json:"role,omitempty"`

	// scopes specifies what the token can be used for. At least one scope is required. The scope sudo is for administrators only.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=7
	// +kubebuilder:validation:XValidation:rule="!('sudo' in self)",message="scopes must not contain sudo: a bot is never an administrator"
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

	// secretRef refers to a key of a Secret in the same namespace that contains the value of the token. The Secret must have the label
	// forgeplane.dev/secret=bot-token. If there is nothing under the key, Forgeplane generates a value and stores it there. Exactly one of
	// secretRef and digest must be set.
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self.name).hasValue()",message="this cannot be the name of a Secret",fieldPath=".name"
	// +optional
	SecretRef *SecretKeyReference `json:"secretRef,omitempty"`

	// digest is the SHA-256, in lower-case hexadecimal, of a value that only a client has. Tokens that are created over REST have a digest
	// instead of a secretRef, which another digest replaces when they are rotated. Only those who have the verb pin can set it.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{64}$')",message="digest must be a SHA-256 in lower-case hexadecimal: 64 characters"
	// +optional
	Digest string `json:"digest,omitempty"`
}

// BotTokenStatus is the observed state of a bot token.
type BotTokenStatus struct {
	CommonStatus `json:",inline"`
	TargetStatus `json:",inline"`

	// id is the integer id that is in force.
	// +optional
	ID int64 `json:"id,omitempty"`

	// username is the username of the bot.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Username string `json:"username,omitempty"`

	// userID is the id of the bot as a user in the REST API.
	// +optional
	UserID int64 `json:"userID,omitempty"`

	// digest is the SHA-256, in lower-case hexadecimal, of the value that Forgeplane accepts: spec.digest, or the digest of the value in
	// the Secret. While it is empty, no value is accepted.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Digest string `json:"digest,omitempty"`

	// endedAt is the time at which Forgeplane saw that the token is revoked or has expired. It is empty while the token is accepted.
	// +optional
	EndedAt *metav1.Time `json:"endedAt,omitempty"`

	// rotated is the last text of the annotation forgeplane.dev/rotate for which Forgeplane has replaced the value.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Rotated string `json:"rotated,omitempty"`
}

// BotToken is an access token of a project or group, and the bot that it authenticates.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=bot,categories=forge
// +kubebuilder:selectablefield:JSONPath=.spec.id
// +kubebuilder:selectablefield:JSONPath=.spec.projectRef.name
// +kubebuilder:printcolumn:name="Of",type=string,JSONPath=.status.targetPath
// +kubebuilder:printcolumn:name="Bot",type=string,JSONPath=.spec.name
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=.spec.role
// +kubebuilder:printcolumn:name="Scopes",type=string,priority=1,JSONPath=.spec.scopes
// +kubebuilder:printcolumn:name="Username",type=string,priority=1,JSONPath=.status.username
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=.spec.expiresAt
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].status
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].reason
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=.metadata.creationTimestamp
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=.status.conditions[?(@.type=="Ready")].message
// +kubebuilder:validation:XValidation:rule="has(oldSelf.spec.id) || !has(oldSelf.status) || !has(oldSelf.status.id) || !has(self.spec.id) || self.spec.id == oldSelf.status.id",message="id cannot change once set",fieldPath=".spec.id"
type BotToken struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the declared state of the object.
	// +required
	Spec BotTokenSpec `json:"spec"`

	// status is the state of the object as Forgeplane last observed it.
	// +kubebuilder:default={observedGeneration:-1}
	// +optional
	Status BotTokenStatus `json:"status,omitempty"`
}

// GetCommonStatus returns the part of the status that every kind has.
func (t *BotToken) GetCommonStatus() *CommonStatus { return &t.Status.CommonStatus }

// NewList returns an empty list of the kind.
func (t *BotToken) NewList() ObjectList { return &BotTokenList{} }

// IDs returns the addresses of the declared id and of the id that is in force.
func (t *BotToken) IDs() (spec, status *int64) { return &t.Spec.ID, &t.Status.ID }

// RESTID returns the id that the REST API shows.
func (t *BotToken) RESTID() int64 { return cmp.Or(t.Spec.ID, t.Status.ID) }

// GetTargetStatus returns the part of the status about the project or group that the object is declared for.
func (t *BotToken) GetTargetStatus() *TargetStatus { return &t.Status.TargetStatus }

// TargetRefs returns the references to the project and to the group that the object is declared for. One of them is nil.
func (t *BotToken) TargetRefs() (project, group *Reference) {
	return t.Spec.ProjectRef, t.Spec.GroupRef
}

// BotTokenList is a list of bot tokens.
// +kubebuilder:object:root=true
type BotTokenList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BotToken `json:"items"`
}
