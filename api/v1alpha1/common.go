package v1alpha1

// Reference refers to one object by its name, path or id. Exactly one of these fields must be set.
// +kubebuilder:validation:ExactlyOneOf=name;path;id
// +structType=atomic
type Reference struct {
	// name is the metadata.name of an object in the same namespace, or of a cluster-scoped object, as in {name: website}.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`

	// path is the full path of a group or project, or the username of a user. It is case-insensitive.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Path string `json:"path,omitempty"`

	// id is the integer id that the REST API shows.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	ID int64 `json:"id,omitempty"`

	// uid is the metadata.uid of the object, in addition to its name, path or id. If set, the reference does not resolve to another object
	// that later gets the same name, path or id. The REST API sets it together with every id that it writes.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	UID string `json:"uid,omitempty"`
}

// LocalSecretReference refers to a Secret. In a spec, the Secret is in the namespace of the object. In a status, it is in the namespace of
// the platform.
// +structType=atomic
type LocalSecretReference struct {
	// name is the metadata.name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// SecretKeyReference refers to one key of a Secret. In a namespaced object, the Secret is in the namespace of the object. In a
// cluster-scoped object, it is in the namespace of the platform.
type SecretKeyReference struct {
	// name is the metadata.name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// key is the key in the data of the Secret. Defaults to token.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[-._a-zA-Z0-9]+$')`,message="key must consist of letters, digits, hyphens, underscores and dots"
	// +kubebuilder:default=token
	// +optional
	Key string `json:"key,omitempty"`
}

// Visibility specifies who can see a group or project.
// +kubebuilder:validation:Enum=Private;Internal;Public
type Visibility string

// Visibilities, from the narrowest to the widest.
const (
	// VisibilityPrivate shows the group or project to its members only.
	VisibilityPrivate Visibility = "Private"
	// VisibilityInternal shows the group or project to every user who is signed in and not external.
	VisibilityInternal Visibility = "Internal"
	// VisibilityPublic shows the group or project to everybody.
	VisibilityPublic Visibility = "Public"
)

// RESTWrites specifies what REST callers can change of a group or project, of its settings, and of everything below.
// +kubebuilder:validation:Enum=Allow;RefuseDeclared;Refuse
type RESTWrites string

// Values of RESTWrites, from the loosest to the strictest.
const (
	// RESTWritesAllow lets REST callers change everything.
	RESTWritesAllow RESTWrites = "Allow"
	// RESTWritesRefuseDeclared lets REST callers change everything except objects that somebody, such as a GitOps tool, declares through
	// Kubernetes.
	RESTWritesRefuseDeclared RESTWrites = "RefuseDeclared"
	// RESTWritesRefuse lets REST callers change nothing.
	RESTWritesRefuse RESTWrites = "Refuse"
)

// Role is the role of a member. Each role includes the permissions of the lower ones.
// +kubebuilder:validation:Enum=Guest;Reporter;Developer;Maintainer;Owner
type Role string

// Roles, from the lowest to the highest.
const (
	// RoleGuest can see a project, but not the code of a private project.
	RoleGuest Role = "Guest"
	// RoleReporter can read the code.
	RoleReporter Role = "Reporter"
	// RoleDeveloper can push to branches that are not protected.
	RoleDeveloper Role = "Developer"
	// RoleMaintainer can push to protected branches and change settings.
	RoleMaintainer Role = "Maintainer"
	// RoleOwner can do everything within a group or project.
	RoleOwner Role = "Owner"
)

// DeletionPolicy specifies what happens to the data of an object when the object is deleted.
// +kubebuilder:validation:Enum=Delete;Retain
type DeletionPolicy string

// Deletion policies.
const (
	// DeletionPolicyDelete removes the data with the object.
	DeletionPolicyDelete DeletionPolicy = "Delete"
	// DeletionPolicyRetain leaves the data where it is, and records the object that it belonged to.
	DeletionPolicyRetain DeletionPolicy = "Retain"
)
