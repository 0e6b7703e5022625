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

	// containerRegistry specifies who can pull the images of the project, with the same values. Pushing also takes the role Developer.
	// Defaults to Enabled.
	// +kubebuilder:default=Enabled
	// +optional
	ContainerRegistry FeatureAccess `json:"containerRegistry,omitempty"`
}

// SquashOption specifies whether a merge makes one commit of all commits of the source branch.
// +kubebuilder:validation:Enum=Never;Always;DefaultOn;DefaultOff
type SquashOption string

// Squash options.
const (
	// SquashNever keeps the commits, whatever the merge request asks for.
	SquashNever SquashOption = "Never"
	// SquashAlways squashes the commits, whatever the merge request asks for.
	SquashAlways SquashOption = "Always"
	// SquashDefaultOn does what the merge request asks for. New merge requests ask for squashing by default.
	SquashDefaultOn SquashOption = "DefaultOn"
	// SquashDefaultOff does what the merge request asks for. New merge requests do not ask for squashing by default.
	SquashDefaultOff SquashOption = "DefaultOff"
)

// Default reports whether new merge requests ask for squashing if their authors say nothing.
func (o SquashOption) Default() bool { return o == SquashAlways || o == SquashDefaultOn }

// Decide reports whether a merge squashes the commits if it is asked to, or not to.
func (o SquashOption) Decide(asked bool) bool { return o == SquashAlways || asked && o != SquashNever }

// MergeRequests are the settings of the merge requests of a project.
type MergeRequests struct {
	// squash specifies whether a merge makes one commit of all commits of the source branch: Never and Always override what merge requests
	// ask for, and DefaultOn and DefaultOff are what new merge requests ask for if their authors say nothing. Defaults to DefaultOff.
	// +kubebuilder:default=DefaultOff
	// +optional
	Squash SquashOption `json:"squash,omitempty"`

	// requirePipeline specifies whether a merge request can be merged only if the pipeline of its last commit has succeeded. Defaults to false.
	// +optional
	RequirePipeline bool `json:"requirePipeline,omitempty"`

	// allowSkippedPipeline specifies whether a skipped pipeline counts as successful for merges. Defaults to false.
	// +optional
	AllowSkippedPipeline bool `json:"allowSkippedPipeline,omitempty"`

	// approvals specifies which approvals merge requests need.
	// +optional
	Approvals Approvals `json:"approvals,omitempty,omitzero"`
}

// Pipelines are the settings of the pipelines of a project.
type Pipelines struct {
	// public specifies whether all members, and everybody who can see the code, can see pipelines with logs and artifacts. Otherwise, only Reporters and
	// higher roles can. Defaults to true.
	// +kubebuilder:default=true
	// +optional
	Public *bool `json:"public,omitempty"`

	// keepLatestArtifacts specifies whether the artifacts of the latest successful pipeline of each branch and tag stay after they have expired.
	// Defaults to true.
	// +kubebuilder:default=true
	// +optional
	KeepLatestArtifacts *bool `json:"keepLatestArtifacts,omitempty"`
}

// ArePublic reports whether all members, and everybody who can see the code, can see pipelines.
func (p *Pipelines) ArePublic() bool { return p.Public == nil || *p.Public }

// KeepsLatestArtifacts reports whether the artifacts of the latest successful pipelines stay.
func (p *Pipelines) KeepsLatestArtifacts() bool {
	return p.KeepLatestArtifacts == nil || *p.KeepLatestArtifacts
}

// Approvals are the settings of the approvals of merge requests.
type Approvals struct {
	// required is the number of approvals that a merge request needs by any users. Defaults to 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	Required int32 `json:"required,omitempty"`

	// rules ask for approvals by certain users and groups. They apply to all merge requests, beside the rules of a merge request itself.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	// +optional
	Rules []ApprovalRule `json:"rules,omitempty"`

	// keepOnPush specifies whether approvals stay when the source branch changes. Otherwise they are removed. Defaults to false.
	// +optional
	KeepOnPush bool `json:"keepOnPush,omitempty"`

	// allowAuthor specifies whether authors can approve their own merge requests. Defaults to false.
	// +optional
	AllowAuthor bool `json:"allowAuthor,omitempty"`

	// refuseCommitters specifies whether approvals by the authors and committers of the commits of a merge request do not count. Defaults to
	// false.
	// +optional
	RefuseCommitters bool `json:"refuseCommitters,omitempty"`

	// refuseOverrides specifies whether merge requests must not have rules of their own. Defaults to false.
	// +optional
	RefuseOverrides bool `json:"refuseOverrides,omitempty"`
}

// ApprovalRule asks for a number of approvals of merge requests.
type ApprovalRule struct {
	// name is the name of the rule, unique in the project.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +required
	Name string `json:"name"`

	// id is the integer id that the REST API shows. If omitted, it follows from the project and the name. The REST API sets it when it renames
	// a rule, so that the rule keeps its id.
	// +kubebuilder:validation:Minimum=2251799813685248
	// +kubebuilder:validation:Maximum=4503599627370495
	// +optional
	ID int64 `json:"id,omitempty"`

	// required is the number of approvals that the rule asks for.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +required
	Required int32 `json:"required"`

	// userRefs are the users whose approvals count. Without users and groups, every approval counts.
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	UserRefs []Reference `json:"userRefs,omitempty"`

	// groupRefs are the groups whose Developers' approvals count.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	GroupRefs []Reference `json:"groupRefs,omitempty"`
}

// LabelPriority is the priority of a label in one project.
type LabelPriority struct {
	// title is the title of the label.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[^\x00-\x20,\x7f]([^\x00-\x1f,\x7f]*[^\x00-\x20,\x7f])?$')`,message="title must not contain commas or control characters, and must not begin or end with a space"
	// +required
	Title string `json:"title"`

	// priority is the priority of the label among the labels of the project. 0 is the highest.
	// +kubebuilder:validation:Minimum=0
	// +required
	Priority int32 `json:"priority"`
}

// ForkOf declares the origin of a fork, and the branches that the fork begins with.
type ForkOf struct {
	// projectRef refers to the project. Without its uid, the project must be in the same namespace, or public with a repository that
	// everybody can read. To set the uid requires the verb pin; the REST API sets it for users who can read the repository.
	// +required
	ProjectRef Reference `json:"projectRef"`

	// branches are the branches that the repository begins with; it then begins without tags. They count only until the project has a
	// repository. If omitted, the repository begins with all branches and tags.
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=244
	// +kubebuilder:validation:items:XValidation:rule="!self.startsWith('refs/')",message="a branch must not begin with refs/: write prod, not refs/heads/prod"
	// +optional
	Branches []string `json:"branches,omitempty"`
}

// ForkedFrom records the origin of a fork.
type ForkedFrom struct {
	// projectRef is the declared reference, with the uid of the project that it referred to.
	// +required
	ProjectRef Reference `json:"projectRef"`

	// id is the id of the project.
	// +required
	ID int64 `json:"id"`
}

// AdoptNone is the value of adoptRepository for a project that begins with a new repository.
const AdoptNone = "None"

// ProjectSpec declares a project.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.forkOf) || !has(self.forkOf) || self.forkOf.projectRef == oldSelf.forkOf.projectRef",message="forkOf cannot name another project: remove it first",fieldPath=".forkOf"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.id) || !has(self.id) || self.id == oldSelf.id",message="id cannot change once set",fieldPath=".id"
// +kubebuilder:validation:XValidation:rule="!has(self.importURL) || (has(oldSelf.importURL) && self.importURL == oldSelf.importURL)",message="importURL is read once, when the project is created: it can be removed, not set or changed",fieldPath=".importURL"
// +kubebuilder:validation:XValidation:rule="!has(self.importSecretRef) || has(self.importURL)",message="importSecretRef goes with importURL",fieldPath=".importSecretRef"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.storage) || !has(self.storage) || self.storage == oldSelf.storage",message="storage is chosen once: a StorageMove moves a project",fieldPath=".storage"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.objectFormat) || (has(self.objectFormat) && self.objectFormat == oldSelf.objectFormat)",message="objectFormat cannot change: make a new project",fieldPath=".objectFormat"
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
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-zA-Z0-9_]([a-zA-Z0-9_.-]*[a-zA-Z0-9_])?$')`,message="path must consist of letters, digits, underscores, hyphens and dots, and must begin and end with a letter, digit or underscore"
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

	// topics are words by which people find the project. They are case-insensitive, and keep their order.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[^\\\\x00-\\\\x20,\\\\x7f]([^\\\\x00-\\\\x1f,\\\\x7f]*[^\\\\x00-\\\\x20,\\\\x7f])?$')",message="a topic must not contain commas or control characters, or begin or end with a space"
	// +listType=atomic
	// +optional
	Topics []string `json:"topics,omitempty"`

	// groupRef refers to the group that contains the project. The group must be in the same namespace.
	// +required
	GroupRef Reference `json:"groupRef"`

	// visibility specifies who can see the project: Private is its members, Internal is every user who is signed in and not
	// external, and Public is everybody. A project is never visible to more people than the groups above it. Defaults to Private.
	// +kubebuilder:default=Private
	// +optional
	Visibility Visibility `json:"visibility,omitempty"`

	// defaultBranch is the branch that HEAD names, without refs/heads/. Defaults to main, or to the default branch of the imported
	// repository.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=244
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[^\x00-\x20\x7f~^:?*\[\\-][^\x00-\x20\x7f~^:?*\[\\]*$')`,message="defaultBranch must be the name of a branch: it must not begin with a hyphen, and must not contain spaces, control characters, backslashes or any of ~ ^ : ? * ["
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('refs/')",message="defaultBranch must not begin with refs/: write prod, not refs/heads/prod"
	// +optional
	DefaultBranch string `json:"defaultBranch,omitempty"`

	// storage is the name of the RepositoryStorage for the repository, which must admit this namespace. If omitted, Forgeplane chooses one of
	// those that do, by weight. It cannot change once set.
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

	// mergeRequests are the settings of the merge requests into the project.
	// +kubebuilder:default={squash:DefaultOff}
	// +optional
	MergeRequests MergeRequests `json:"mergeRequests,omitempty,omitzero"`

	// pipelines are the settings of the pipelines of the project.
	// +kubebuilder:default={}
	// +optional
	Pipelines Pipelines `json:"pipelines,omitempty,omitzero"`

	// importURL is the URL of a repository to import once. If omitted, the repository starts empty. The scheme must be http or https;
	// development mode also allows file. The URL must not contain credentials, a query or a fragment: use importSecretRef for credentials,
	// and write %40 for an @ in the path. It can be removed, but not set later or changed.
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(https?|file)://[^\x00-\x20\x7f]+$')`,message="importURL must begin with http:// or https://, and must not contain spaces or control characters"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^(https?://.*|file://[^/]*)[@?#]')",message="importURL must not contain credentials, a query or a fragment: put credentials into a Secret and name it in importSecretRef, and write %40 for an @ in the path"
	// +optional
	ImportURL string `json:"importURL,omitempty"`

	// importSecretRef refers to a Secret in the same namespace with the keys username and password for importURL. The Secret must have the
	// label forgeplane.dev/secret=import, and its annotation forgeplane.dev/host must name the host of importURL.
	// +optional
	ImportSecretRef *LocalSecretReference `json:"importSecretRef,omitempty"`

	// suspend stops the import or fork of the repository: a running one ends, and none begins. It has no effect on a project that has its
	// repository. Defaults to false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// forkOf declares that the project is a fork of another project. A new project begins with the branches and tags of that project, unless importURL is
	// set. If the project has a repository already, only the relation is recorded. It can be removed, but not changed.
	// +optional
	ForkOf *ForkOf `json:"forkOf,omitempty"`

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
	// answer to a refused write names who declares the object. The strictest value of the project and the groups above it is in force.
	// Defaults to that of the groups.
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

	// sharedWith lists groups whose members get a role in the project. Members of the groups above such a group count as its members,
	// and members of groups that it is shared with do not.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	SharedWith []Share `json:"sharedWith,omitempty"`
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

	// move is the StorageMove that is scheduled or copies the repositories of the project. No other one can begin meanwhile.
	// +optional
	Move *ProjectMove `json:"move,omitempty"`

	// lastMove is the attempt of a StorageMove by which the project came to its shard.
	// +optional
	LastMove *ProjectMove `json:"lastMove,omitempty"`

	// adoptedRepository is the name of the RetainedRepository that the project has taken over. The RetainedRepository is gone once the
	// project is ready.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	AdoptedRepository string `json:"adoptedRepository,omitempty"`

	// forkedFrom is the project that this project is a fork of. It stays recorded if that project is renamed, hidden or deleted.
	// +optional
	ForkedFrom *ForkedFrom `json:"forkedFrom,omitempty"`

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

	// lastActivityTime is when Forgeplane last saw a change of a branch or tag. It is empty before the first one.
	// +optional
	LastActivityTime *metav1.Time `json:"lastActivityTime,omitempty"`

	// sizeBytes is the size of the repository on disk, in bytes.
	// +optional
	SizeBytes int64 `json:"sizeBytes,omitempty"`

	// readOnly is true while pushes are refused.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`

	// protectedDefaultBranch is the branch for which Forgeplane created a ProtectedBranch when the default branch got its first commit.
	// Forgeplane does so only once, so the ProtectedBranch can be deleted for good. Until then, only maintainers can push to the default
	// branch.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	ProtectedDefaultBranch string `json:"protectedDefaultBranch,omitempty"`

	// protectedDefaultBranchVersion is the resourceVersion of the ProtectedBranch that protectedDefaultBranch is about. A server whose cache
	// is older than that still protects the branch by itself.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ProtectedDefaultBranchVersion string `json:"protectedDefaultBranchVersion,omitempty"`

	// recordedShares lists the references of spec.sharedWith that name a group by path or id alone, each with the uid of the group that it
	// led to. If a group of another namespace gets the path or id later, the project is not shared with it.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	RecordedShares []Reference `json:"recordedShares,omitempty"`

	// avatar names the avatar that was uploaded over REST. It is empty without one.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Avatar string `json:"avatar,omitempty"`
}

// ProjectMove is an attempt of a StorageMove to move the repositories of a project.
// +structType=atomic
type ProjectMove struct {
	// name is the metadata.name of the StorageMove, which is in the namespace of the project.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// uid is the metadata.uid of the StorageMove.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	UID string `json:"uid"`

	// attempt is the number of the attempt. Only the attempt with this number can change the shard of the project, so a process that was
	// replaced cannot.
	// +optional
	Attempt int64 `json:"attempt"`

	// source is the name of the RepositoryStorage that the repositories leave.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Source string `json:"source,omitempty"`

	// destination is the name of the RepositoryStorage that the repositories move to.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Destination string `json:"destination,omitempty"`
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
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].reason
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=.metadata.creationTimestamp
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=.status.conditions[?(@.type=="Ready")].message
// +kubebuilder:validation:XValidation:rule="has(oldSelf.spec.id) || !has(oldSelf.status) || !has(oldSelf.status.id) || !has(self.spec.id) || self.spec.id == oldSelf.status.id",message="id cannot change once set",fieldPath=".spec.id"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.storage) || has(oldSelf.spec.storage) || !has(oldSelf.status) || !has(oldSelf.status.storage) || self.spec.storage == oldSelf.status.storage",message="storage is chosen when the project is created: a StorageMove moves a project",fieldPath=".spec.storage"
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

// Origin returns a reference, by id and uid, to the origin of a fork. It reports false if the origin is not known, or if the project is not a
// fork.
func (p *Project) Origin() (Reference, bool) {
	if p.Spec.ForkOf == nil {
		return Reference{}, false
	}
	declared := p.Spec.ForkOf.ProjectRef
	if declared.ID != 0 && declared.UID != "" {
		return declared, true
	}
	from := p.Status.ForkedFrom
	if from == nil {
		return Reference{}, false
	}
	if recorded := from.ProjectRef; declared != recorded {
		if recorded.UID = ""; declared != recorded {
			return Reference{}, false
		}
	}
	return Reference{ID: from.ID, UID: from.ProjectRef.UID}, true
}

// Avatar returns the address of the name of the avatar.
func (p *Project) Avatar() *string { return &p.Status.Avatar }

// LastActivity returns when the project was created, or when its branches or tags last changed after that.
func (p *Project) LastActivity() metav1.Time {
	if last := p.Status.LastActivityTime; last != nil && last.After(p.CreationTimestamp.Time) {
		return *last
	}
	return p.CreationTimestamp
}

// DropObserved clears the fields of the status that show the content of the repository.
func (p *Project) DropObserved() {
	s := &p.Status
	s.DefaultBranch, s.HeadCommit, s.RefsChecksum, s.LastActivityTime, s.SizeBytes = "", "", "", nil, 0
}

// ProjectList is a list of projects.
// +kubebuilder:object:root=true
type ProjectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Project `json:"items"`
}
