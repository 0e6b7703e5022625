package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NamespacesFrom specifies which namespaces can refer to an object of another namespace or of the cluster.
// +kubebuilder:validation:Enum=Same;Selector;All
type NamespacesFrom string

// Values of NamespacesFrom.
const (
	// NamespacesFromSame admits only the namespace of the object itself, or of Forgeplane for an object of the cluster.
	NamespacesFromSame NamespacesFrom = "Same"
	// NamespacesFromSelector admits namespaces by their labels.
	NamespacesFromSelector NamespacesFrom = "Selector"
	// NamespacesFromAll admits every namespace.
	NamespacesFromAll NamespacesFrom = "All"
)

// AllowedNamespaces selects the namespaces whose objects can refer to this object: groups to a group as their parent, and projects to a
// shard.
// +kubebuilder:validation:XValidation:rule="has(self.selector) == (self.from == 'Selector')",message="selector goes with from: Selector, and only with it"
type AllowedNamespaces struct {
	// from specifies which namespaces are admitted: Same is only the namespace of the group, or that of Forgeplane for a RepositoryStorage,
	// Selector is the namespaces that match selector as well, and All is every namespace. Defaults to Same.
	// +kubebuilder:default=Same
	// +optional
	From NamespacesFrom `json:"from,omitempty"`

	// selector matches the labels of the namespaces that are admitted. It must be set if from is Selector, and must not be set otherwise.
	// +optional
	Selector *NamespaceSelector `json:"selector,omitempty"`
}

// NamespaceSelector matches namespaces that have all of the labels.
type NamespaceSelector struct {
	// matchLabels are the labels that a namespace must have, with their values. A namespace must have all of them.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k).hasValue())",message="a label must be a name such as team, or a prefix and a name such as example.com/team, as in Kubernetes: the name has at most 63 characters"
	// +required
	MatchLabels map[string]LabelValue `json:"matchLabels"`
}

// LabelValue is the value of a Kubernetes label.
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?$')",message="the value of a label must consist of letters, digits, hyphens, underscores and dots, and begin and end with a letter or digit"
type LabelValue string

// LabelPersonal marks the group that contains the personal projects of a user. Its value is the id of the user.
const LabelPersonal = "forgeplane.dev/personal"

// AnnotationPersonal accompanies LabelPersonal. Its value is the UID of the user: a user who is created again with the same id is a
// different user.
const AnnotationPersonal = "forgeplane.dev/personal-uid"

// LabelCreator is on groups and projects that were created over REST. Its value is the id of the user who created them. They count against
// the limits of this user.
const LabelCreator = "forgeplane.dev/creator"

// AnnotationOwner is on a group that was created over REST until the Membership that makes its creator the owner exists. Its value is the
// id and the UID of the User, as in 7/3f0c…. Only those who have the verb pin can set it.
const AnnotationOwner = "forgeplane.dev/owner"

// GroupSpec declares a group.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.id) || !has(self.id) || self.id == oldSelf.id",message="id cannot change once set",fieldPath=".id"
type GroupSpec struct {
	// id is the integer id that the REST API shows. It is unique within the kind. Forgeplane allocates it if omitted; setting it requires
	// the verb pin. It cannot change once set.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	ID int64 `json:"id,omitempty"`

	// path is the group's own segment of its full path. It must not end in .git or .atom.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-zA-Z0-9_]([a-zA-Z0-9_.-]*[a-zA-Z0-9_])?$')`,message="path must consist of letters, digits, underscores, hyphens and dots, and must begin and end with a letter, digit or underscore"
	// +kubebuilder:validation:XValidation:rule="!self.endsWith('.git') && !self.endsWith('.atom')",message="path must not end in .git or .atom"
	// +required
	Path string `json:"path"`

	// name is the display name of the group. Defaults to the path.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Name string `json:"name,omitempty"`

	// description describes the purpose of the group.
	// +kubebuilder:validation:MaxLength=500
	// +optional
	Description string `json:"description,omitempty"`

	// parentRef refers to the parent group. If omitted, the group is a root group. A parent in another namespace must be named by path or
	// id, and must admit this namespace in its allowedNamespaces.
	// +optional
	ParentRef *Reference `json:"parentRef,omitempty"`

	// allowedNamespaces selects the namespaces whose groups can name this group as their parent. Defaults to the namespace of the group
	// itself.
	// +optional
	AllowedNamespaces *AllowedNamespaces `json:"allowedNamespaces,omitempty"`

	// visibility specifies who can see the group: Private is its members, Internal is every user who is signed in and not
	// external, and Public is everybody. The groups and projects below are never visible to more people than the group. Defaults to Private.
	// +kubebuilder:default=Private
	// +optional
	Visibility Visibility `json:"visibility,omitempty"`

	// restWrites specifies what REST callers can change of the group, its settings, and everything below it: Allow is everything,
	// RefuseDeclared is everything except objects that somebody, such as a GitOps tool, declares through Kubernetes, and Refuse is nothing.
	// The strictest value of the group and the groups above it is in force. Defaults to that of the groups above, and for a root group to
	// the default of the installation.
	// +optional
	RESTWrites RESTWrites `json:"restWrites,omitempty"`

	// sharedWith lists groups whose members get a role in the group and in everything below it. Members of the groups above such a group
	// count as its members, and members of groups that it is shared with do not.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	SharedWith []Share `json:"sharedWith,omitempty"`
}

// GroupStatus is the observed state of a group.
type GroupStatus struct {
	CommonStatus `json:",inline"`

	// id is the integer id that is in force.
	// +optional
	ID int64 `json:"id,omitempty"`

	// parentRef is the path or id in spec.parentRef, with the uid of the group that it led to. If a group of another namespace gets the
	// path or id later, the reference does not follow it.
	// +optional
	ParentRef *Reference `json:"parentRef,omitempty"`

	// fullPath is the full path of the group: the paths of the groups above and its own path, joined by slashes. It is empty while the
	// group does not hold it.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	FullPath string `json:"fullPath,omitempty"`

	// visibility is the visibility that is in force: the narrowest one of the group and the groups above it. It is empty while the group does
	// not hold its full path.
	// +optional
	Visibility Visibility `json:"visibility,omitempty"`

	// recordedShares lists the references of spec.sharedWith that name a group by path or id alone, each with the uid of the group that it
	// led to. If a group of another namespace gets the path or id later, the group is not shared with it.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	RecordedShares []Reference `json:"recordedShares,omitempty"`

	// avatar names the avatar that was uploaded over REST. It is empty without one.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Avatar string `json:"avatar,omitempty"`
}

// Group contains projects and other groups, which inherit its members and settings.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=fgroup,categories=forge
// +kubebuilder:selectablefield:JSONPath=.spec.id
// +kubebuilder:selectablefield:JSONPath=.spec.parentRef.name
// +kubebuilder:printcolumn:name="Full path",type=string,JSONPath=.status.fullPath
// +kubebuilder:printcolumn:name="Visibility",type=string,JSONPath=.status.visibility
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].status
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].reason
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=.metadata.creationTimestamp
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=.status.conditions[?(@.type=="Ready")].message
// +kubebuilder:validation:XValidation:rule="has(oldSelf.spec.id) || !has(oldSelf.status) || !has(oldSelf.status.id) || !has(self.spec.id) || self.spec.id == oldSelf.status.id",message="id cannot change once set",fieldPath=".spec.id"
type Group struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the declared state of the object.
	// +required
	Spec GroupSpec `json:"spec"`

	// status is the state of the object as Forgeplane last observed it.
	// +kubebuilder:default={observedGeneration:-1}
	// +optional
	Status GroupStatus `json:"status,omitempty"`
}

// GetCommonStatus returns the part of the status that every kind has.
func (g *Group) GetCommonStatus() *CommonStatus { return &g.Status.CommonStatus }

// NewList returns an empty list of the kind.
func (g *Group) NewList() ObjectList { return &GroupList{} }

// IDs returns the addresses of the declared id and of the id that is in force.
func (g *Group) IDs() (spec, status *int64) { return &g.Spec.ID, &g.Status.ID }

// RESTID returns the id that the REST API shows.
func (g *Group) RESTID() int64 { return cmp.Or(g.Spec.ID, g.Status.ID) }

// Avatar returns the address of the name of the avatar.
func (g *Group) Avatar() *string { return &g.Status.Avatar }

// GroupList is a list of groups.
// +kubebuilder:object:root=true
type GroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Group `json:"items"`
}
