package v1alpha1

// Reference names one object by its name, path or id; exactly one of these is set.
// +kubebuilder:validation:ExactlyOneOf=name;path;id
// +structType=atomic
type Reference struct {
	// name is the metadata.name of an object in the same namespace, or of a cluster-scoped one.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`

	// path is the full path of a group or project, or the username of a user.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Path string `json:"path,omitempty"`

	// id is the integer id that the REST API shows.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	ID int64 `json:"id,omitempty"`

	// uid is the metadata.uid of the object that is meant, beside its name, path or id: where it is given, one that is made anew under
	// the same name, path or id is not meant. The REST API gives it beside every id that it writes.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	UID string `json:"uid,omitempty"`
}

// LocalSecretReference names a Secret: in the same namespace where it is declared, and in that of the platform in a status.
// +structType=atomic
type LocalSecretReference struct {
	// name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// SecretKeyReference names one key of a Secret. A cluster-scoped object means a Secret in the
// namespace of the platform.
// +structType=atomic
type SecretKeyReference struct {
	// name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// key in the Secret's data.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	// +kubebuilder:default=token
	// +optional
	Key string `json:"key,omitempty"`
}

// Visibility says who may see a group or project.
// +kubebuilder:validation:Enum=Private;Internal;Public
type Visibility string

// The visibilities, from the narrowest to the widest.
const (
	// VisibilityPrivate is for members only.
	VisibilityPrivate Visibility = "Private"
	// VisibilityInternal is for every user who is signed in.
	VisibilityInternal Visibility = "Internal"
	// VisibilityPublic is for everybody.
	VisibilityPublic Visibility = "Public"
)

// Role is what a member may do, by the name that the interface document gives to it.
// +kubebuilder:validation:Enum=Guest;Reporter;Developer;Maintainer;Owner
type Role string

// The roles, from the least to the most.
const (
	// RoleGuest sees a project, but not the code of a private one.
	RoleGuest Role = "Guest"
	// RoleReporter reads the code.
	RoleReporter Role = "Reporter"
	// RoleDeveloper pushes to branches that are not protected.
	RoleDeveloper Role = "Developer"
	// RoleMaintainer pushes to protected branches and changes settings.
	RoleMaintainer Role = "Maintainer"
	// RoleOwner does everything within a group or project.
	RoleOwner Role = "Owner"
)

// DeletionPolicy says what happens to the data behind an object when the object is deleted.
// +kubebuilder:validation:Enum=Delete;Retain
type DeletionPolicy string

// The deletion policies.
const (
	// DeletionPolicyDelete removes the data with the object.
	DeletionPolicyDelete DeletionPolicy = "Delete"
	// DeletionPolicyRetain leaves the data where it is, with a record of whose it was.
	DeletionPolicyRetain DeletionPolicy = "Retain"
)
