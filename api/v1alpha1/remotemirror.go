package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnotationSync requests a push that does not wait for a change or a retry. Each new value, of at most 64 characters, causes one push.
const AnnotationSync = "forgeplane.dev/sync"

// AnnotationCredentials says what the REST API shows of the credentials of a RemoteMirror: "username" shows only a masked user name, "git"
// the user name git, and "none" nothing. Without the annotation, the REST API shows both a user name and a password, masked, if there are credentials.
const AnnotationCredentials = "forgeplane.dev/credentials"

// CredentialsUsername is the value of AnnotationCredentials for a user name without a password.
const CredentialsUsername = "username"

// CredentialsGit is the value of AnnotationCredentials for the user name git, which is not masked.
const CredentialsGit = "git"

// CredentialsNone is the value of AnnotationCredentials for a Secret that has only host keys.
const CredentialsNone = "none"

// MirrorUpdate is the state of the last push of a mirror.
// +kubebuilder:validation:Enum=None;Started;Finished;Failed;ToRetry
type MirrorUpdate string

// States of the last push of a mirror.
const (
	// MirrorNone says that nothing has been pushed yet.
	MirrorNone MirrorUpdate = "None"
	// MirrorStarted says that a push is running.
	MirrorStarted MirrorUpdate = "Started"
	// MirrorFinished says that the target is up to date.
	MirrorFinished MirrorUpdate = "Finished"
	// MirrorFailed says that the last push did not bring the target up to date. lastError says why, and nextAttemptAt says when the push
	// is retried. Without nextAttemptAt, the push was refused before it started.
	MirrorFailed MirrorUpdate = "Failed"
	// MirrorToRetry says that a push was interrupted, and that the next one waits for its turn.
	MirrorToRetry MirrorUpdate = "ToRetry"
)

// RemoteMirrorSpec declares a repository elsewhere that follows the repository of a project.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.id) || !has(self.id) || self.id == oldSelf.id",message="id cannot change once set",fieldPath=".id"
// +kubebuilder:validation:XValidation:rule="!has(self.branchRegex) || !has(self.onlyProtectedBranches) || !self.onlyProtectedBranches",message="branchRegex and onlyProtectedBranches exclude each other",fieldPath=".branchRegex"
type RemoteMirrorSpec struct {
	// id is the integer id that the REST API shows. It is unique within the kind. Forgeplane allocates it if omitted; setting it requires
	// the verb pin. It cannot change once set.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	ID int64 `json:"id,omitempty"`

	// projectRef refers to the project whose repository is pushed. The project must be in the same namespace. It cannot be changed to refer to another project.
	// +required
	ProjectRef Reference `json:"projectRef"`

	// url is the http, https, ssh or git URL of the repository to push to. The repository must exist. The URL must not contain credentials, a
	// query or a fragment: use secretRef for credentials, and write %40 for an @ in the path. It cannot change.
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(https?|ssh|git)://[^\x00-\x20\x7f]+$')`,message="url must begin with http://, https://, ssh:// or git://, as in ssh://git.example.com/acme/website.git, and must not contain spaces or control characters"
	// +kubebuilder:validation:XValidation:rule="!self.matches('://.*[@?#]')",message="url must not contain credentials, a query or a fragment: put credentials into a Secret and name it in secretRef, and write %40 for an @ in the path"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="url cannot change: make a new mirror"
	// +required
	URL string `json:"url"`

	// secretRef refers to a Secret in the same namespace with credentials for the target. For http and https, it has the keys username and
	// password, or one of them. For ssh, it has the key ssh-privatekey or password, and the key known_hosts with the host keys of the target;
	// username is "git" if omitted. A git URL needs no Secret. The Secret must have the label forgeplane.dev/secret=remote-mirror, and its annotation forgeplane.dev/host must name the
	// host of the url. Forgeplane reads it when a push starts.
	// +optional
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`

	// enabled specifies whether Forgeplane pushes to the mirror. Defaults to true.
	// +kubebuilder:default=true
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// suspend stops all pushes to the mirror, as enabled: false does, but does not appear in the REST API. A running push ends. Defaults to
	// false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// onlyProtectedBranches specifies whether to leave out branches that are not protected. Branches of the target with their names are
	// neither pushed nor removed. It cannot be combined with branchRegex. Defaults to false.
	// +optional
	OnlyProtectedBranches bool `json:"onlyProtectedBranches,omitempty"`

	// branchRegex is a regular expression in RE2 syntax for the names of branches, without refs/heads/. It leaves out branches whose name it
	// does not match anywhere; branches of the target with their names are neither pushed nor removed. Tags are always pushed. It cannot be
	// combined with onlyProtectedBranches.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="!self.contains('refs/heads/')",message="branchRegex is matched against names without refs/heads/: write ^release/, not ^refs/heads/release/"
	// +optional
	BranchRegex string `json:"branchRegex,omitempty"`

	// keepDivergentRefs specifies whether to keep commits, branches and tags of the target that the project does not have. If false, a
	// push makes the target equal to the project. Defaults to false.
	// +optional
	KeepDivergentRefs bool `json:"keepDivergentRefs,omitempty"`
}

// IsEnabled reports whether Forgeplane pushes to the mirror.
func (s *RemoteMirrorSpec) IsEnabled() bool { return s.Enabled == nil || *s.Enabled }

// RemoteMirrorStatus is the observed state of a mirror.
type RemoteMirrorStatus struct {
	CommonStatus `json:",inline"`
	TargetStatus `json:",inline"`

	// id is the integer id that is in force.
	// +optional
	ID int64 `json:"id,omitempty"`

	// secretRef refers to the Secret, in the namespace of the platform, with the credentials that the mirror received over REST.
	// +optional
	SecretRef LocalSecretReference `json:"secretRef,omitempty,omitzero"`

	// updateStatus is the state of the last push.
	// +optional
	UpdateStatus MirrorUpdate `json:"updateStatus,omitempty"`

	// lastError says why the last push did not bring the target up to date, or could not start. It contains no credentials. It is empty if
	// the push succeeded.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	LastError string `json:"lastError,omitempty"`

	// lastUpdateStartedAt is the time at which the last push started.
	// +optional
	LastUpdateStartedAt *metav1.Time `json:"lastUpdateStartedAt,omitempty"`

	// lastUpdateAt is the time at which the last push ended, whether it succeeded or failed.
	// +optional
	LastUpdateAt *metav1.Time `json:"lastUpdateAt,omitempty"`

	// lastSuccessfulUpdateAt is the time at which the last successful push ended.
	// +optional
	LastSuccessfulUpdateAt *metav1.Time `json:"lastSuccessfulUpdateAt,omitempty"`

	// pushedChecksum is the refsChecksum of the project that the target has received, as far as the target accepts it.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	PushedChecksum string `json:"pushedChecksum,omitempty"`

	// pushedRules is a digest of the settings with which the target has received it.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	PushedRules string `json:"pushedRules,omitempty"`

	// triedChecksum is the refsChecksum of the project when the last push started, whether or not the target has received it.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TriedChecksum string `json:"triedChecksum,omitempty"`

	// attempts is the number of pushes in a row that the target did not answer.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`

	// nextAttemptAt is the time at which a failed push is retried.
	// +optional
	NextAttemptAt *metav1.Time `json:"nextAttemptAt,omitempty"`

	// handledSync is the last value of the annotation forgeplane.dev/sync that Forgeplane has handled.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	HandledSync string `json:"handledSync,omitempty"`
}

// RemoteMirror is a repository elsewhere that follows the repository of a project.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=mirror,categories=forge
// +kubebuilder:selectablefield:JSONPath=.spec.id
// +kubebuilder:selectablefield:JSONPath=.spec.projectRef.name
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=.status.targetPath
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=.spec.url
// +kubebuilder:printcolumn:name="Update",type=string,JSONPath=.status.updateStatus
// +kubebuilder:printcolumn:name="Updated",type=date,JSONPath=.status.lastSuccessfulUpdateAt
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].status
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].reason
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=.metadata.creationTimestamp
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=.status.conditions[?(@.type=="Ready")].message
// +kubebuilder:validation:XValidation:rule="has(oldSelf.spec.id) || !has(oldSelf.status) || !has(oldSelf.status.id) || !has(self.spec.id) || self.spec.id == oldSelf.status.id",message="id cannot change once set",fieldPath=".spec.id"
type RemoteMirror struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the declared state of the object.
	// +required
	Spec RemoteMirrorSpec `json:"spec"`

	// status is the state of the object as Forgeplane last observed it.
	// +kubebuilder:default={observedGeneration:-1}
	// +optional
	Status RemoteMirrorStatus `json:"status,omitempty"`
}

// GetCommonStatus returns the part of the status that every kind has.
func (m *RemoteMirror) GetCommonStatus() *CommonStatus { return &m.Status.CommonStatus }

// NewList returns an empty list of the kind.
func (m *RemoteMirror) NewList() ObjectList { return &RemoteMirrorList{} }

// IDs returns the addresses of the declared id and of the id that is in force.
func (m *RemoteMirror) IDs() (spec, status *int64) { return &m.Spec.ID, &m.Status.ID }

// RESTID returns the id that the REST API shows.
func (m *RemoteMirror) RESTID() int64 { return cmp.Or(m.Spec.ID, m.Status.ID) }

// GetTargetStatus returns the part of the status about the project or group that the object is declared for.
func (m *RemoteMirror) GetTargetStatus() *TargetStatus { return &m.Status.TargetStatus }

// TargetRefs returns the references to the project and to the group that the object is declared for. One of them is nil.
func (m *RemoteMirror) TargetRefs() (project, group *Reference) { return &m.Spec.ProjectRef, nil }

// RemoteMirrorList is a list of mirrors.
// +kubebuilder:object:root=true
type RemoteMirrorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RemoteMirror `json:"items"`
}
