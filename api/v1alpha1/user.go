package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UserState specifies whether a user can use the forge.
// +kubebuilder:validation:Enum=Active;Blocked;Deactivated;Banned
type UserState string

// States of a user.
const (
	// UserActive lets the user sign in.
	UserActive UserState = "Active"
	// UserBlocked refuses the user everywhere, with every token.
	UserBlocked UserState = "Blocked"
	// UserDeactivated refuses the user like UserBlocked. It says that they no longer use the forge, and not that they must not.
	UserDeactivated UserState = "Deactivated"
	// UserBanned refuses the user like UserBlocked, for misuse.
	UserBanned UserState = "Banned"
)

// UserType specifies whether a user is a person or a program.
// +kubebuilder:validation:Enum=Person;Bot
type UserType string

// Types of a user.
const (
	// UserPerson is a human being.
	UserPerson UserType = "Person"
	// UserBot is a program.
	UserBot UserType = "Bot"
)

// UserSpec declares a user.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.id) || !has(self.id) || self.id == oldSelf.id",message="id cannot change once set",fieldPath=".id"
type UserSpec struct {
	// id is the integer id that the REST API shows. It is unique within the kind. Forgeplane allocates it if omitted; setting it requires
	// the verb pin. It cannot change once set.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	ID int64 `json:"id,omitempty"`

	// username is the unique short name of the user, used in paths, in references and to sign in. It is case-insensitive.
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-zA-Z0-9_]([a-zA-Z0-9_.-]*[a-zA-Z0-9_])?$')`,message="username must consist of letters, digits, underscores, hyphens and dots, and must begin and end with a letter, digit or underscore"
	// +required
	Username string `json:"username"`

	// name is the display name of the user. Defaults to the username.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Name string `json:"name,omitempty"`

	// email is the email address of the user. It is unique among users, and case-insensitive.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=254
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[^@\s]+@[^@\s]+$')`,message="email must be an address such as dana@example.com"
	// +optional
	Email string `json:"email,omitempty"`

	// type specifies whether the user is a person or a program. Defaults to Person.
	// +kubebuilder:default=Person
	// +optional
	Type UserType `json:"type,omitempty"`

	// admin specifies whether the user is an administrator of the whole forge. Defaults to false.
	// +optional
	Admin bool `json:"admin,omitempty"`

	// external specifies whether the user sees internal groups and projects only as a member, like private ones, and creates neither root
	// groups nor personal projects over REST. Defaults to false.
	// +optional
	External bool `json:"external,omitempty"`

	// auditor specifies whether the user can read every group and project, with everything that belongs to it. An auditor can change only
	// what their roles allow. Defaults to false.
	// +optional
	Auditor bool `json:"auditor,omitempty"`

	// state specifies whether the user can use the forge. A user who is Blocked, Deactivated or Banned is refused everywhere, with every
	// token. Defaults to Active.
	// +kubebuilder:default=Active
	// +optional
	State UserState `json:"state,omitempty"`

	// projectsLimit is the number of projects that the user can create over REST in the namespace of the platform. Defaults to the limit
	// for all users.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	ProjectsLimit *int32 `json:"projectsLimit,omitempty"`

	// kubernetes is the Kubernetes identity that acts as this user.
	// +optional
	Kubernetes *KubernetesIdentity `json:"kubernetes,omitempty"`
}

// KubernetesIdentity is the name under which kube-apiserver knows a caller.
type KubernetesIdentity struct {
	// username is the name that kube-apiserver authenticates, for example system:serviceaccount:ci:builder.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +required
	Username string `json:"username"`
}

// UserStatus is the observed state of a user.
type UserStatus struct {
	CommonStatus `json:",inline"`

	// id is the integer id that is in force.
	// +optional
	ID int64 `json:"id,omitempty"`

	// avatar names the avatar that was uploaded over REST. It is empty without one.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Avatar string `json:"avatar,omitempty"`
}

// User is a person or program that uses the forge.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=fuser,categories=forge-admin
// +kubebuilder:selectablefield:JSONPath=.spec.username
// +kubebuilder:selectablefield:JSONPath=.spec.id
// +kubebuilder:printcolumn:name="Username",type=string,JSONPath=.spec.username
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=.spec.state
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].status
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].reason
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=.metadata.creationTimestamp
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=.status.conditions[?(@.type=="Ready")].message
// +kubebuilder:validation:XValidation:rule="has(oldSelf.spec.id) || !has(oldSelf.status) || !has(oldSelf.status.id) || !has(self.spec.id) || self.spec.id == oldSelf.status.id",message="id cannot change once set",fieldPath=".spec.id"
type User struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the declared state of the object.
	// +required
	Spec UserSpec `json:"spec"`

	// status is the state of the object as Forgeplane last observed it.
	// +kubebuilder:default={observedGeneration:-1}
	// +optional
	Status UserStatus `json:"status,omitempty"`
}

// Active reports whether the user can use the forge.
func (u *User) Active() bool { return u.InState() == UserActive }

// InState returns the state of the user, which is active by default.
func (u *User) InState() UserState { return cmp.Or(u.Spec.State, UserActive) }

// GetCommonStatus returns the part of the status that every kind has.
func (u *User) GetCommonStatus() *CommonStatus { return &u.Status.CommonStatus }

// NewList returns an empty list of the kind.
func (u *User) NewList() ObjectList { return &UserList{} }

// IDs returns the addresses of the declared id and of the id that is in force.
func (u *User) IDs() (spec, status *int64) { return &u.Spec.ID, &u.Status.ID }

// RESTID returns the id that the REST API shows.
func (u *User) RESTID() int64 { return cmp.Or(u.Spec.ID, u.Status.ID) }

// Avatar returns the address of the name of the avatar.
func (u *User) Avatar() *string { return &u.Status.Avatar }

// UserList is a list of users.
// +kubebuilder:object:root=true
type UserList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []User `json:"items"`
}
