package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LabelDefaultProtection marks the ProtectedBranch that Forgeplane creates for the default branch of a project. A ProtectedBranch of the
// same branch without this label takes over.
const LabelDefaultProtection = "forgeplane.dev/default-protection"

// AnnotationAccessLevelIDs contains the REST ids of the access levels of a ProtectedBranch. Forgeplane maintains it.
const AnnotationAccessLevelIDs = "forgeplane.dev/access-level-ids"

// AccessRole is the role that an access level requires.
// +kubebuilder:validation:Enum=NoOne;Developer;Maintainer;Admin
type AccessRole string

// Roles of access levels, with their numbers in the REST API: 0, 30, 40 and 60.
const (
	// AccessNoOne lets nobody through, not even administrators (0).
	AccessNoOne AccessRole = "NoOne"
	// AccessDeveloper lets Developers and Maintainers through (30).
	AccessDeveloper AccessRole = "Developer"
	// AccessMaintainer lets Maintainers through (40).
	AccessMaintainer AccessRole = "Maintainer"
	// AccessAdmin lets administrators of the instance through (60).
	AccessAdmin AccessRole = "Admin"
)

// AccessLevel lets somebody through: everybody with a role, one user, the members of a group, or a deploy key. Exactly one field must be
// set.
// +kubebuilder:validation:ExactlyOneOf=role;userRef;groupRef;deployKeyRef
type AccessLevel struct {
	// role lets through everybody who has at least this role in the project. Admin lets through administrators, and NoOne lets through
	// nobody.
	// +optional
	Role AccessRole `json:"role,omitempty"`

	// userRef lets one user through, if this user is at least Developer in the project.
	// +optional
	UserRef *Reference `json:"userRef,omitempty"`

	// groupRef lets through the members of a group who are at least Developers in the project. The group must be in the same namespace,
	// contain the project, or be one with which the project, or a group above it, is shared.
	// +optional
	GroupRef *Reference `json:"groupRef,omitempty"`

	// deployKeyRef lets a deploy key of the project through, if the key has write access. The key must be named by name or id.
	// +kubebuilder:validation:XValidation:rule="!has(self.path)",message="a deploy key has no path: name it by name or id"
	// +optional
	DeployKeyRef *Reference `json:"deployKeyRef,omitempty"`
}

// ProtectedBranchSpec declares who can do what with a branch, or with all branches that match a wildcard.
// +kubebuilder:validation:ExactlyOneOf=projectRef;groupRef
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.id) || !has(self.id) || self.id == oldSelf.id",message="id cannot change once set",fieldPath=".id"
// +kubebuilder:validation:XValidation:rule="has(self.projectRef) == has(oldSelf.projectRef)",message="projectRef and groupRef cannot replace each other: make a new object"
type ProtectedBranchSpec struct {
	// id is the integer id that the REST API shows. It is unique within the kind. Forgeplane allocates it if omitted; setting it requires
	// the verb pin. It cannot change once set.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	ID int64 `json:"id,omitempty"`

	// projectRef refers to a project in the same namespace. It cannot be changed to refer to another project.
	// +optional
	ProjectRef *Reference `json:"projectRef,omitempty"`

	// groupRef refers to a group in the same namespace. Every project below it inherits the protection. It cannot be changed to refer to another group.
	// +optional
	GroupRef *Reference `json:"groupRef,omitempty"`

	// branch is the name of the branch, without refs/heads/, or a wildcard such as release/*. Each * matches any characters, including
	// slashes. The branch need not exist. It cannot change.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[^\x00-\x20\x7f~^:?\[\\-][^\x00-\x20\x7f~^:?\[\\]*$')`,message="branch must be the name of a branch or a wildcard such as release/*, not a regular expression: it must not begin with a hyphen, and must not contain spaces, control characters, backslashes or any of ~ ^ : ? ["
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('refs/')",message="branch must not begin with refs/: write prod, not refs/heads/prod"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="branch cannot change: declare another ProtectedBranch"
	// +required
	Branch string `json:"branch"`

	// push lists the access levels that can push. The role NoOne must be alone. Defaults to the role Maintainer.
	// +kubebuilder:default={{role:Maintainer}}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:rule="self.size() == 1 || !self.exists(l, has(l.role) && l.role == 'NoOne')",message="push cannot have NoOne beside other access levels: leave out NoOne, or the others"
	// +listType=atomic
	// +optional
	Push []AccessLevel `json:"push,omitempty"`

	// merge lists the access levels that can merge. The role NoOne must be alone. Defaults to the role Maintainer.
	// +kubebuilder:default={{role:Maintainer}}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:rule="self.size() == 1 || !self.exists(l, has(l.role) && l.role == 'NoOne')",message="merge cannot have NoOne beside other access levels: leave out NoOne, or the others"
	// +listType=atomic
	// +optional
	Merge []AccessLevel `json:"merge,omitempty"`

	// unprotect lists the access levels that can change or remove the protection, and delete the branch, over REST. It must not contain
	// the role NoOne. Defaults to the role Maintainer.
	// +kubebuilder:default={{role:Maintainer}}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:rule="!self.exists(l, has(l.role) && l.role == 'NoOne')",message="unprotect cannot be NoOne: nobody could remove the protection"
	// +listType=atomic
	// +optional
	Unprotect []AccessLevel `json:"unprotect,omitempty"`

	// allowForcePush specifies whether users who can push can also rewrite the branch. Defaults to false.
	// +optional
	AllowForcePush bool `json:"allowForcePush,omitempty"`

	// codeOwnerApprovalRequired specifies whether to refuse a push that changes files for which the CODEOWNERS file of the branch names
	// owners. Defaults to false.
	// +optional
	CodeOwnerApprovalRequired bool `json:"codeOwnerApprovalRequired,omitempty"`
}

// ResolvedAccessLevel is an access level with its reference resolved.
type ResolvedAccessLevel struct {
	// id is the integer id of the access level in the REST API.
	// +optional
	ID int64 `json:"id,omitempty"`

	// description is the description of the access level in the REST API.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Description string `json:"description,omitempty"`

	// role is the required role.
	// +optional
	Role AccessRole `json:"role,omitempty"`

	// userID is the integer id of the user.
	// +optional
	UserID int64 `json:"userID,omitempty"`

	// groupID is the integer id of the group.
	// +optional
	GroupID int64 `json:"groupID,omitempty"`

	// deployKeyID is the integer id of the deploy key.
	// +optional
	DeployKeyID int64 `json:"deployKeyID,omitempty"`
}

// ProtectedBranchStatus is the observed state of a protection.
type ProtectedBranchStatus struct {
	CommonStatus `json:",inline"`
	TargetStatus `json:",inline"`

	// id is the integer id that is in force.
	// +optional
	ID int64 `json:"id,omitempty"`

	// push lists the access levels of spec.push, with their references resolved.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	Push []ResolvedAccessLevel `json:"push,omitempty"`

	// pushDescription joins the descriptions of the access levels that can push, for display.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	PushDescription string `json:"pushDescription,omitempty"`

	// merge lists the access levels of spec.merge, with their references resolved.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	Merge []ResolvedAccessLevel `json:"merge,omitempty"`

	// unprotect lists the access levels of spec.unprotect, with their references resolved.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	Unprotect []ResolvedAccessLevel `json:"unprotect,omitempty"`

	// matchedBranches are the branches of the project that the protection matches now, at most the first 100.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=1024
	// +listType=atomic
	// +optional
	MatchedBranches []string `json:"matchedBranches,omitempty"`

	// matchedBranchCount is the number of branches of the project that the protection matches now.
	// +optional
	MatchedBranchCount int32 `json:"matchedBranchCount"`
}

// ProtectedBranch specifies who can push to, merge into and unprotect a branch.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=protectedbranches,shortName=pb,categories=forge
// +kubebuilder:selectablefield:JSONPath=.spec.id
// +kubebuilder:selectablefield:JSONPath=.spec.branch
// +kubebuilder:selectablefield:JSONPath=.spec.projectRef.name
// +kubebuilder:printcolumn:name="Of",type=string,JSONPath=.status.targetPath
// +kubebuilder:printcolumn:name="Branch",type=string,JSONPath=.spec.branch
// +kubebuilder:printcolumn:name="Push",type=string,JSONPath=.status.pushDescription
// +kubebuilder:printcolumn:name="Matched",type=integer,priority=1,JSONPath=.status.matchedBranchCount
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].status
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].reason
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=.metadata.creationTimestamp
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=.status.conditions[?(@.type=="Ready")].message
// +kubebuilder:validation:XValidation:rule="has(oldSelf.spec.id) || !has(oldSelf.status) || !has(oldSelf.status.id) || !has(self.spec.id) || self.spec.id == oldSelf.status.id",message="id cannot change once set",fieldPath=".spec.id"
type ProtectedBranch struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the declared state of the object.
	// +required
	Spec ProtectedBranchSpec `json:"spec"`

	// status is the state of the object as Forgeplane last observed it.
	// +kubebuilder:default={observedGeneration:-1}
	// +optional
	Status ProtectedBranchStatus `json:"status,omitempty"`
}

// GetCommonStatus returns the part of the status that every kind has.
func (b *ProtectedBranch) GetCommonStatus() *CommonStatus { return &b.Status.CommonStatus }

// NewList returns an empty list of the kind.
func (b *ProtectedBranch) NewList() ObjectList { return &ProtectedBranchList{} }

// IDs returns the addresses of the declared id and of the id that is in force.
func (b *ProtectedBranch) IDs() (spec, status *int64) { return &b.Spec.ID, &b.Status.ID }

// RESTID returns the id that the REST API shows.
func (b *ProtectedBranch) RESTID() int64 { return cmp.Or(b.Spec.ID, b.Status.ID) }

// GetTargetStatus returns the part of the status about the project or group that the object is declared for.
func (b *ProtectedBranch) GetTargetStatus() *TargetStatus { return &b.Status.TargetStatus }

// TargetRefs returns the references to the project and to the group that the object is declared for. One of them is nil.
func (b *ProtectedBranch) TargetRefs() (project, group *Reference) {
	return b.Spec.ProjectRef, b.Spec.GroupRef
}

// DropObserved clears the fields of the status that show the branches of the repository.
func (b *ProtectedBranch) DropObserved() {
	b.Status.MatchedBranches, b.Status.MatchedBranchCount = nil, 0
}

// ProtectedBranchList is a list of protections.
// +kubebuilder:object:root=true
type ProtectedBranchList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProtectedBranch `json:"items"`
}
