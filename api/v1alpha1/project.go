package v1alpha1

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnotationPlannedStorage is on a project as soon as Forgeplane has chosen the shard of its repository, before anything is created there.
// Its value is the name of the shard and the UID of the project, separated by a slash. It no longer counts once status.storage is set.
const AnnotationPlannedStorage = "forgeplane.dev/planned-storage"

// ObjectFormat is the hash algorithm that names the objects of a repository.
// +kubebuilder:validation:Enum=sha1;sha256
type ObjectFormat string

// Object formats of Git.
const (
	// ObjectFormatSHA1 works with every client.
	ObjectFormatSHA1 ObjectFormat = "sha1"
	// ObjectFormatSHA256 works with clients of Git 2.29 or later.
	ObjectFormatSHA256 ObjectFormat = "sha256"
)

// FeatureAccess specifies who can use a feature of a project.
// +kubebuilder:validation:Enum=Enabled;Private;Disabled
type FeatureAccess string

// Access to a feature.
const (
	// FeatureEnabled allows everybody who can see the project.
	FeatureEnabled FeatureAccess = "Enabled"
	// FeaturePrivate allows members only.
	FeaturePrivate FeatureAccess = "Private"
	// FeatureDisabled allows nobody.
	FeatureDisabled FeatureAccess = "Disabled"
)

// Features are the parts of a project that can be restricted or switched off.
type Features struct {
	// repository specifies who can access the code, to clone, fetch and push: Enabled is everybody who can see the project, Private is
	// members, and Disabled is nobody. Defaults to Enabled.
	// +kubebuilder:default=Enabled
	// +optional
	Repository FeatureAccess `json:"repository,omitempty"`

	// containerRegistry specifies who can access the images of the project, with the same values. The REST API shows it; it has no other
	// effect in this version. Defaults to Enabled.
	// +kubebuilder:default=Enabled
	// +optional
	ContainerRegistry FeatureAccess `json:"containerRegistry,omitempty"`
}

// RESTWrites specifies what REST callers can change of a project and its settings.
// +kubebuilder:validation:Enum=Allow;RefuseDeclared;Refuse
type RESTWrites string

// Values of RESTWrites.
const (
	// RESTWritesAllow lets REST callers change everything.
	RESTWritesAllow RESTWrites = "Allow"
	// RESTWritesRefuseDeclared lets REST callers change everything except objects that somebody, such as a GitOps tool, declares through
	// Kubernetes.
	RESTWritesRefuseDeclared RESTWrites = "RefuseDeclared"
	// RESTWritesRefuse lets REST callers change nothing.
	RESTWritesRefuse RESTWrites = "Refuse"
)

// LabelPriority is the priority of a label in one project.
type LabelPriority struct {
	// title is the title of the label.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[^\x00-\x20,\x7f]([^\x00-\x1f,\x7f]*[^\x00-\x20,\x7f])?$`
	// +required
	Title string `json:"title"`

	// priority is the priority of the label among the labels of the project. 0 is the highest.
	// +kubebuilder:validation:Minimum=0
	// +required
	Priority int32 `json:"priority"`
}

// AdoptNone is the value of adoptRepository for a project that begins with a new repository.
const AdoptNone = "None"

// ProjectSpec declares a project.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.id) || !has(self.id) || self.id == oldSelf.id",message="id cannot change once set",fieldPath=".id"
// +kubebuilder:validation:XValidation:rule="!has(self.importURL) || (has(oldSelf.importURL) && self.importURL == oldSelf.importURL)",message="importURL is read once, when the project is created: it can be removed, not set or changed",fieldPath=".importURL"
// +kubebuilder:validation:XValidation:rule="!has(self.importSecretRef) || has(self.importURL)",message="importSecretRef goes with importURL",fieldPath=".importSecretRef"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.storage) || !has(self.storage) || self.storage == oldSelf.storage",message="storage is chosen once: a StorageMove moves a project",fieldPath=".storage"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.objectFormat) || (has(self.objectFormat) && self.objectFormat == oldSelf.objectFormat)",message="objectFormat cannot change",fieldPath=".objectFormat"
type ProjectSpec struct {
	// id is the integer id that the REST API shows. It is unique within the kind. Forgeplane allocates it if omitted; setting it requires
	// the verb pin. It cannot change once set.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	ID int64 `json:"id,omitempty"`

	// path is the project's own segment of its full path. It must not end in .git or .atom.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9_]([a-zA-Z0-9_.-]*[a-zA-Z0-9_])?$`
	// +kubebuilder:validation:XValidation:rule="!self.endsWith('.git') && !self.endsWith('.atom')",message="path must not end in .git or .atom"
	// +required
	Path string `json:"path"`

	// name is the display name of the project. Defaults to the path.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Name string `json:"name,omitempty"`

	// description describes the purpose of the project.
	// +kubebuilder:validation:MaxLength=2000
	// +optional
	Description string `json:"description,omitempty"`

	// groupRef refers to the group that contains the project. The group must be in the same namespace.
	// +required
	GroupRef Reference `json:"groupRef"`

	// visibility specifies who can see the project: Private is its members, Internal is every user who is signed in, and Public is
	// everybody. A project is never visible to more people than the groups above it. Defaults to Private.
	// +kubebuilder:default=Private
	// +optional
	Visibility Visibility `json:"visibility,omitempty"`

	// defaultBranch is the branch that HEAD names, without refs/heads/. Defaults to main, or to the default branch of the imported
	// repository.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=244
	// +kubebuilder:validation:Pattern=`^[^\x00-\x20\x7f~^:?*\[\\-][^\x00-\x20\x7f~^:?*\[\\]*$`
	// +optional
	DefaultBranch string `json:"defaultBranch,omitempty"`

	// storage is the name of the RepositoryStorage for the repository. If omitted, Forgeplane chooses one by weight. It cannot change once
	// set.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Storage string `json:"storage,omitempty"`

	// objectFormat is the hash algorithm of a new repository. An imported repository keeps its own. It cannot change. Defaults to sha1.
	// +kubebuilder:default=sha1
	// +optional
	ObjectFormat ObjectFormat `json:"objectFormat,omitempty"`

	// features specifies who can use parts of the project.
	// +kubebuilder:default={repository:Enabled,containerRegistry:Enabled}
	// +optional
	Features Features `json:"features,omitempty,omitzero"`

	// importURL is the URL of a repository to import once. If omitted, the repository starts empty. The scheme must be http or https;
	// development mode also allows file. The URL must not contain credentials, a query or a fragment: use importSecretRef for credentials,
	// and write %40 for an @ in the path. It can be removed, but not set later or changed.
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^(https?|file)://[^\x00-\x20\x7f]+$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^(https?://.*|file://[^/]*)[@?#]')",message="importURL must not contain credentials, a query or a fragment: put credentials into a Secret and name it in importSecretRef, and write %40 for an @ in the path"
	// +optional
	ImportURL string `json:"importURL,omitempty"`

	// importSecretRef refers to a Secret in the same namespace with the keys username and password for importURL. The Secret must have the
	// label forgeplane.dev/secret=import, and its annotation forgeplane.dev/host must name the host of importURL.
	// +optional
	ImportSecretRef *LocalSecretReference `json:"importSecretRef,omitempty"`

	// archived specifies whether the project is archived. An archived project refuses every push and stays readable. Defaults to false.
	// +optional
	Archived bool `json:"archived,omitempty"`

	// readOnly specifies whether the project refuses pushes temporarily, for example during maintenance of a shard. Defaults to false.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`

	// labelPriorities are the priorities of the labels of the project's groups in this project. The project's own labels declare their
	// priority themselves.
	// +listType=map
	// +listMapKey=title
	// +kubebuilder:validation:MaxItems=200
	// +optional
	LabelPriorities []LabelPriority `json:"labelPriorities,omitempty"`

	// restWrites specifies what REST callers can change of the project and its settings: Allow is everything, RefuseDeclared is everything
	// except objects that somebody, such as a GitOps tool, declares through Kubernetes, and Refuse is nothing. With RefuseDeclared, the
	// answer to a refused write names who declares the object. Defaults to Allow.
	// +kubebuilder:default=Allow
	// +optional
	RESTWrites RESTWrites `json:"restWrites,omitempty"`

	// adoptRepository specifies the repository of a deleted project that the project takes over: the name of a RetainedRepository, or the
	// name of the deleted Project in this namespace that has left the repository. None creates a new repository. It counts only until the
	// project has a repository. If omitted, the project takes over the repository that a project with the same declaration has left.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == 'None' || self.matches('^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$')",message="adoptRepository must be None or the name of an object"
	// +optional
	AdoptRepository string `json:"adoptRepository,omitempty"`

	// deletionPolicy specifies what happens to the repository when the project is deleted: Delete removes it, and Retain leaves it on its
	// shard with a RetainedRepository. Defaults to Retain.
	// +kubebuilder:default=Retain
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// ProjectStatus is the observed state of a project.
type ProjectStatus struct {
	CommonStatus `json:",inline"`

	// id is the integer id that is in force.
	// +optional
	ID int64 `json:"id,omitempty"`

	// fullPath is the full path of the project: the full path of its group and its own path, joined by a slash. It is empty while the
	// project does not hold it.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	FullPath string `json:"fullPath,omitempty"`

	// visibility is the visibility that is in force: the narrowest one of the project and the groups above it.
	// +optional
	Visibility Visibility `json:"visibility,omitempty"`

	// storage is the name of the RepositoryStorage that holds the repository.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Storage string `json:"storage,omitempty"`

	// adoptedRepository is the name of the RetainedRepository that the project has taken over. The RetainedRepository is gone once the
	// project is ready.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	AdoptedRepository string `json:"adoptedRepository,omitempty"`

	// repositoryPath is the path of the repository, relative to the path of its shard.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	RepositoryPath string `json:"repositoryPath,omitempty"`

	// defaultBranch is the branch that HEAD names.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	DefaultBranch string `json:"defaultBranch,omitempty"`

	// headCommit is the id of the commit that the default branch points to. It is empty while that branch does not exist.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	HeadCommit string `json:"headCommit,omitempty"`

	// refsChecksum changes whenever a branch or tag changes.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	RefsChecksum string `json:"refsChecksum,omitempty"`

	// sizeBytes is the size of the repository on disk, in bytes.
	// +optional
	SizeBytes int64 `json:"sizeBytes,omitempty"`

	// readOnly is true while pushes are refused.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`

	// protectedDefaultBranch is the branch for which Forgeplane created a ProtectedBranch when the project was created. Forgeplane does so
	// only once, so the ProtectedBranch can be deleted for good.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	ProtectedDefaultBranch string `json:"protectedDefaultBranch,omitempty"`
}

// Project is a Git repository with its settings.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=proj,categories=forge
// +kubebuilder:selectablefield:JSONPath=.spec.id
// +kubebuilder:selectablefield:JSONPath=.spec.groupRef.name
// +kubebuilder:printcolumn:name="Full path",type=string,JSONPath=.status.fullPath
// +kubebuilder:printcolumn:name="Visibility",type=string,JSONPath=.status.visibility
// +kubebuilder:printcolumn:name="Head",type=string,priority=1,JSONPath=.status.headCommit
// +kubebuilder:printcolumn:name="Storage",type=string,priority=1,JSONPath=.status.storage
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].status
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=.status.conditions[?(@.type=="Ready")].reason
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=.metadata.creationTimestamp
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.id) || !has(self.spec.id) || self.spec.id == oldSelf.status.id",message="spec.id cannot change once set"
type Project struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the declared state of the object.
	// +required
	Spec ProjectSpec `json:"spec"`

	// status is the state of the object as Forgeplane last observed it.
	// +kubebuilder:default={observedGeneration:-1}
	// +optional
	Status ProjectStatus `json:"status,omitempty"`
}

// GetCommonStatus returns the part of the status that every kind has.
func (p *Project) GetCommonStatus() *CommonStatus { return &p.Status.CommonStatus }

// NewList returns an empty list of the kind.
func (p *Project) NewList() ObjectList { return &ProjectList{} }

// IDs returns the addresses of the declared id and of the id that is in force.
func (p *Project) IDs() (spec, status *int64) { return &p.Spec.ID, &p.Status.ID }

// PlanStorage records the shard of the repository in the annotations of a project, before the repository is created there and the status
// names the shard.
func (p *Project) PlanStorage(name string) {
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, AnnotationPlannedStorage, name+"/"+string(p.UID))
}

// PlannedStorage returns the shard on which the repository may have been created although the status does not name a shard yet. It is empty
// if there is no such shard. A plan that was copied from another project does not count.
func (p *Project) PlannedStorage() string {
	name, uid, _ := strings.Cut(p.Annotations[AnnotationPlannedStorage], "/")
	if p.Status.Storage != "" || uid != string(p.UID) {
		return ""
	}
	return name
}

// RESTID returns the id that the REST API shows.
func (p *Project) RESTID() int64 { return cmp.Or(p.Spec.ID, p.Status.ID) }

// DropObserved clears the fields of the status that show the content of the repository.
func (p *Project) DropObserved() {
	s := &p.Status
	s.DefaultBranch, s.HeadCommit, s.RefsChecksum, s.SizeBytes = "", "", "", 0
}

// ProjectList is a list of projects.
// +kubebuilder:object:root=true
type ProjectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Project `json:"items"`
}
