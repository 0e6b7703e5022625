package v1alpha1

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnotationPlannedStorage is on a project from when Forgeplane chooses the shard of its repository, before anything is made there. Its
// value is the name of the shard and the UID of the project, separated by a slash. It does not count any more when status.storage is set.
const AnnotationPlannedStorage = "forgeplane.dev/planned-storage"

// ObjectFormat is the hash that a repository names its objects by.
// +kubebuilder:validation:Enum=sha1;sha256
type ObjectFormat string

// The object formats of Git.
const (
	// ObjectFormatSHA1 is what every client understands.
	ObjectFormatSHA1 ObjectFormat = "sha1"
	// ObjectFormatSHA256 needs clients of Git 2.29 or later.
	ObjectFormatSHA256 ObjectFormat = "sha256"
)

// FeatureAccess says for whom a feature of a project is there.
// +kubebuilder:validation:Enum=Enabled;Private;Disabled
type FeatureAccess string

// The access levels of a feature.
const (
	// FeatureEnabled is for everybody who sees the project.
	FeatureEnabled FeatureAccess = "Enabled"
	// FeaturePrivate is for members only.
	FeaturePrivate FeatureAccess = "Private"
	// FeatureDisabled is for nobody.
	FeatureDisabled FeatureAccess = "Disabled"
)

// Features are the parts of a project that can be narrowed or switched off.
type Features struct {
	// repository is the code: clone, fetch and push.
	// +kubebuilder:default=Enabled
	// +optional
	Repository FeatureAccess `json:"repository,omitempty"`

	// containerRegistry is the images of the project.
	// +kubebuilder:default=Enabled
	// +optional
	ContainerRegistry FeatureAccess `json:"containerRegistry,omitempty"`
}

// RESTWrites says what REST callers may do with what is declared for a project.
// +kubebuilder:validation:Enum=Allow;RefuseDeclared;Refuse
type RESTWrites string

// The choices of restWrites.
const (
	// RESTWritesAllow lets them change everything.
	RESTWritesAllow RESTWrites = "Allow"
	// RESTWritesRefuseDeclared keeps them from changing what somebody declares through Kubernetes, such as a GitOps tool.
	RESTWritesRefuseDeclared RESTWrites = "RefuseDeclared"
	// RESTWritesRefuse keeps them from changing anything.
	RESTWritesRefuse RESTWrites = "Refuse"
)

// LabelPriority is the priority that a label has in one project.
type LabelPriority struct {
	// title of the label.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[^\x00-\x20,\x7f]([^\x00-\x1f,\x7f]*[^\x00-\x20,\x7f])?$`
	// +required
	Title string `json:"title"`

	// priority among the labels of the project: 0 is the highest.
	// +kubebuilder:validation:Minimum=0
	// +required
	Priority int32 `json:"priority"`
}

// AdoptNone is the value of adoptRepository with which a project begins with a repository of its own.
const AdoptNone = "None"

// ProjectSpec declares a project.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.id) || !has(self.id) || self.id == oldSelf.id",message="id cannot change once set",fieldPath=".id"
// +kubebuilder:validation:XValidation:rule="!has(self.importURL) || (has(oldSelf.importURL) && self.importURL == oldSelf.importURL)",message="importURL is read once, when the project is created: it can be removed, not set or changed",fieldPath=".importURL"
// +kubebuilder:validation:XValidation:rule="!has(self.importSecretRef) || has(self.importURL)",message="importSecretRef goes with importURL",fieldPath=".importSecretRef"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.storage) || !has(self.storage) || self.storage == oldSelf.storage",message="storage is chosen once: a StorageMove moves a project",fieldPath=".storage"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.objectFormat) || (has(self.objectFormat) && self.objectFormat == oldSelf.objectFormat)",message="objectFormat cannot change",fieldPath=".objectFormat"
type ProjectSpec struct {
	// id is the integer id that the REST API shows; allocated when omitted, and fixed from then on.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	ID int64 `json:"id,omitempty"`

	// path is the project's own segment of its full path.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9_]([a-zA-Z0-9_.-]*[a-zA-Z0-9_])?$`
	// +kubebuilder:validation:XValidation:rule="!self.endsWith('.git') && !self.endsWith('.atom')",message="path is not to end in .git or .atom"
	// +required
	Path string `json:"path"`

	// name is what people call the project; the path when omitted.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Name string `json:"name,omitempty"`

	// description says what the project is for.
	// +kubebuilder:validation:MaxLength=2000
	// +optional
	Description string `json:"description,omitempty"`

	// groupRef names the group that holds the project, in the project's own namespace.
	// +required
	GroupRef Reference `json:"groupRef"`

	// visibility says who may see the project; never more people than see the group.
	// +kubebuilder:default=Private
	// +optional
	Visibility Visibility `json:"visibility,omitempty"`

	// defaultBranch is the branch that HEAD names: main when omitted, or what an imported repository says.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=244
	// +kubebuilder:validation:Pattern=`^[^\x00-\x20\x7f~^:?*\[\\-][^\x00-\x20\x7f~^:?*\[\\]*$`
	// +optional
	DefaultBranch string `json:"defaultBranch,omitempty"`

	// storage names the RepositoryStorage to create the repository on; one is chosen by weight when omitted.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Storage string `json:"storage,omitempty"`

	// objectFormat is the hash of a newly created repository.
	// +kubebuilder:default=sha1
	// +optional
	ObjectFormat ObjectFormat `json:"objectFormat,omitempty"`

	// features narrow who may use parts of the project.
	// +kubebuilder:default={repository:Enabled,containerRegistry:Enabled}
	// +optional
	Features Features `json:"features,omitempty,omitzero"`

	// importURL is the repository to fetch once, instead of starting empty: http or https, and file in development mode.
	// Credentials do not belong in it: see importSecretRef. Neither does a query or a fragment; an @ in the path is written %40.
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^(https?|file)://[^\x00-\x20\x7f]+$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^(https?://.*|file://[^/]*)[@?#]')",message="importURL is not to hold credentials, a query or a fragment: put credentials into a Secret and name it in importSecretRef, and write %40 for an @ in the path"
	// +optional
	ImportURL string `json:"importURL,omitempty"`

	// importSecretRef names a Secret with the keys username and password for importURL. It bears the label
	// forgeplane.dev/secret=import, and its annotation forgeplane.dev/host names the host of importURL.
	// +optional
	ImportSecretRef *LocalSecretReference `json:"importSecretRef,omitempty"`

	// archived refuses every push and keeps the project readable.
	// +optional
	Archived bool `json:"archived,omitempty"`

	// readOnly refuses pushes for a while, for example during maintenance of a shard.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`

	// labelPriorities are the priorities that labels of the project's groups have in this project. A label of the project's own has
	// its priority in itself.
	// +listType=map
	// +listMapKey=title
	// +kubebuilder:validation:MaxItems=200
	// +optional
	LabelPriorities []LabelPriority `json:"labelPriorities,omitempty"`

	// restWrites says what REST callers may change of the project and its settings. With RefuseDeclared a write to an object
	// that somebody declares through Kubernetes, such as a GitOps tool, is refused and names who does.
	// +kubebuilder:default=Allow
	// +optional
	RESTWrites RESTWrites `json:"restWrites,omitempty"`

	// adoptRepository says what to do about repositories that deleted projects have left, before the project has one of its own: it
	// names the RetainedRepository to take over, or the deleted project of this namespace that has left it; None begins with a
	// new one. When omitted, a project takes over what a project of the same declaration has left.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == 'None' || self.matches('^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$')",message="adoptRepository is None, or the name of an object"
	// +optional
	AdoptRepository string `json:"adoptRepository,omitempty"`

	// deletionPolicy says whether the repository goes with the project, or is retained.
	// +kubebuilder:default=Retain
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// ProjectStatus is what Forgeplane observed of a project.
type ProjectStatus struct {
	CommonStatus `json:",inline"`

	// id that is in force.
	// +optional
	ID int64 `json:"id,omitempty"`

	// fullPath is the group's full path and the project's own, joined by a slash; empty while another object holds it.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	FullPath string `json:"fullPath,omitempty"`

	// visibility that is in force: the narrowest of the project's own and its groups'.
	// +optional
	Visibility Visibility `json:"visibility,omitempty"`

	// storage names the RepositoryStorage that the repository is on.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Storage string `json:"storage,omitempty"`

	// adoptedRepository names the RetainedRepository that the repository was before; it is gone once the project is ready.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	AdoptedRepository string `json:"adoptedRepository,omitempty"`

	// repositoryPath is where the repository is on its shard, relative to the shard's path.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	RepositoryPath string `json:"repositoryPath,omitempty"`

	// defaultBranch is the branch that HEAD names.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	DefaultBranch string `json:"defaultBranch,omitempty"`

	// headCommit is the commit that the default branch points to; empty while that branch does not exist.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	HeadCommit string `json:"headCommit,omitempty"`

	// refsChecksum changes whenever a branch or tag does.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	RefsChecksum string `json:"refsChecksum,omitempty"`

	// sizeBytes is what the repository takes on disk.
	// +optional
	SizeBytes int64 `json:"sizeBytes,omitempty"`

	// readOnly is true while pushes are refused.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`

	// protectedDefaultBranch is the branch for which a ProtectedBranch was made when the project was; it is made
	// once, so that deleting it lasts.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	ProtectedDefaultBranch string `json:"protectedDefaultBranch,omitempty"`
}

// Project is a Git repository and what belongs to it.
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

	// spec is what is declared.
	// +required
	Spec ProjectSpec `json:"spec"`

	// status is what Forgeplane observed.
	// +kubebuilder:default={observedGeneration:-1}
	// +optional
	Status ProjectStatus `json:"status,omitempty"`
}

// GetCommonStatus returns the part of the status that every kind has.
func (p *Project) GetCommonStatus() *CommonStatus { return &p.Status.CommonStatus }

// NewList returns an empty list of the kind.
func (p *Project) NewList() ObjectList { return &ProjectList{} }

// IDs returns where the declared id and the id in force are kept.
func (p *Project) IDs() (spec, status *int64) { return &p.Spec.ID, &p.Status.ID }

// PlanStorage writes down in the annotations of a project on which shard its repository is about to be made, until its status says that.
func (p *Project) PlanStorage(name string) {
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, AnnotationPlannedStorage, name+"/"+string(p.UID))
}

// PlannedStorage returns the shard on which the repository may have been made although the status names none. It is empty where there is
// no such shard. A plan that was copied from another project does not count.
func (p *Project) PlannedStorage() string {
	name, uid, _ := strings.Cut(p.Annotations[AnnotationPlannedStorage], "/")
	if p.Status.Storage != "" || uid != string(p.UID) {
		return ""
	}
	return name
}

// RESTID is the id that the REST API shows.
func (p *Project) RESTID() int64 { return cmp.Or(p.Spec.ID, p.Status.ID) }

// DropObserved clears what the status shows of the content of the repository.
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
