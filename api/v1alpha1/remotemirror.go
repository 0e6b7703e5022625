package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnotationSync asks for a push that does not wait for a change or a retry: each new value, at most 64 characters, for one.
const AnnotationSync = "forgeplane.dev/sync"

// AnnotationCredentials says what the REST API shows of the credentials of a RemoteMirror: "username" for a user name alone.
// Without it both a user name and a password are shown, masked, where there are credentials.
const AnnotationCredentials = "forgeplane.dev/credentials"

// CredentialsUsername is the value of AnnotationCredentials for a user name without a password.
const CredentialsUsername = "username"

// MirrorUpdate is how far the pushes of a mirror are.
// +kubebuilder:validation:Enum=None;Started;Finished;Failed;ToRetry
type MirrorUpdate string

// How far the pushes of a mirror are.
const (
	// MirrorNone says that nothing was pushed yet.
	MirrorNone MirrorUpdate = "None"
	// MirrorStarted says that a push is running.
	MirrorStarted MirrorUpdate = "Started"
	// MirrorFinished says that the target has what it is to have.
	MirrorFinished MirrorUpdate = "Finished"
	// MirrorFailed says that the last push did not bring that about, and lastError why; nextAttemptAt is when it is repeated. Without
	// one the push was refused before it began.
	MirrorFailed MirrorUpdate = "Failed"
	// MirrorToRetry says that a push was interrupted, and that the next one waits for its turn.
	MirrorToRetry MirrorUpdate = "ToRetry"
)

// RemoteMirrorSpec declares a repository elsewhere that follows the one of a project.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.id) || !has(self.id) || self.id == oldSelf.id",message="id cannot change once set",fieldPath=".id"
// +kubebuilder:validation:XValidation:rule="!has(self.branchRegex) || !has(self.onlyProtectedBranches) || !self.onlyProtectedBranches",message="branchRegex and onlyProtectedBranches exclude each other",fieldPath=".branchRegex"
type RemoteMirrorSpec struct {
	// id is the integer id that the REST API shows; allocated when omitted, and fixed from then on.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	ID int64 `json:"id,omitempty"`

	// projectRef names the project, in the same namespace, whose repository is pushed; it cannot change.
	// +kubebuilder:validation:XValidation:rule="has(self.name) ? has(oldSelf.name) && self.name == oldSelf.name : has(self.path) ? has(oldSelf.path) && self.path == oldSelf.path : has(oldSelf.id) && self.id == oldSelf.id",message="projectRef cannot change"
	// +required
	ProjectRef Reference `json:"projectRef"`

	// url of the repository to push to, http or https, which exists there; it cannot change. Credentials do not belong in it:
	// see secretRef. Neither does a query or a fragment; an @ in the path is written %40.
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[^\x00-\x20\x7f]+$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('[@?#]')",message="url is not to hold credentials, a query or a fragment: put credentials into a Secret and name it in secretRef, and write %40 for an @ in the path"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="url cannot change: make a new mirror"
	// +required
	URL string `json:"url"`

	// secretRef names a Secret, in the same namespace, with the keys username and password for the target. It bears the label
	// forgeplane.dev/secret=remote-mirror, and its annotation forgeplane.dev/host names the host of the url. It is read when a push begins.
	// +optional
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`

	// enabled says whether anything is pushed.
	// +kubebuilder:default=true
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// onlyProtectedBranches leaves out the branches that are not protected, and what the target has by their names.
	// +optional
	OnlyProtectedBranches bool `json:"onlyProtectedBranches,omitempty"`

	// branchRegex leaves out the branches whose name it does not match anywhere, in RE2 syntax, and what the target has by their
	// names. Tags are pushed in any case.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +optional
	BranchRegex string `json:"branchRegex,omitempty"`

	// keepDivergentRefs leaves alone what the target has and the project has not: commits on its branches, branches, tags. Without
	// it the target is forced to be like the project.
	// +optional
	KeepDivergentRefs bool `json:"keepDivergentRefs,omitempty"`
}

// IsEnabled reports whether anything is pushed.
func (s *RemoteMirrorSpec) IsEnabled() bool { return s.Enabled == nil || *s.Enabled }

// RemoteMirrorStatus is what Forgeplane observed of a mirror.
type RemoteMirrorStatus struct {
	CommonStatus `json:",inline"`

	// id that is in force.
	// +optional
	ID int64 `json:"id,omitempty"`

	// secretRef names the Secret, in the namespace of the platform, with the credentials that the mirror was given over REST.
	// +optional
	SecretRef LocalSecretReference `json:"secretRef,omitempty,omitzero"`

	// updateStatus is how far the last push is.
	// +optional
	UpdateStatus MirrorUpdate `json:"updateStatus,omitempty"`

	// lastError is why the last push did not make the target what it is to be, or could not begin, without credentials; empty when
	// it did.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	LastError string `json:"lastError,omitempty"`

	// lastUpdateStartedAt is when the last push began.
	// +optional
	LastUpdateStartedAt *metav1.Time `json:"lastUpdateStartedAt,omitempty"`

	// lastUpdateAt is when the last push ended, well or not.
	// +optional
	LastUpdateAt *metav1.Time `json:"lastUpdateAt,omitempty"`

	// lastSuccessfulUpdateAt is when the last push ended that made the target what it is to be.
	// +optional
	LastSuccessfulUpdateAt *metav1.Time `json:"lastSuccessfulUpdateAt,omitempty"`

	// pushedChecksum is the refsChecksum of the project that the target has received, as far as it takes it.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	PushedChecksum string `json:"pushedChecksum,omitempty"`

	// pushedRules is a digest of the rules by which the target has received it.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	PushedRules string `json:"pushedRules,omitempty"`

	// triedChecksum is the refsChecksum of the project when the last push began, whether the target has received it or not.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TriedChecksum string `json:"triedChecksum,omitempty"`

	// attempts is how many pushes in a row the target did not answer.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`

	// nextAttemptAt is when a push that failed is repeated.
	// +optional
	NextAttemptAt *metav1.Time `json:"nextAttemptAt,omitempty"`

	// handledSync is the value of the annotation forgeplane.dev/sync that was heard last.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	HandledSync string `json:"handledSync,omitempty"`
}

// RemoteMirror is a repository elsewhere that follows the one of a project.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=mirror,categories=forge
// +kubebuilder:selectablefield:JSONPath=.spec.id
// +kubebuilder:selectablefield:JSONPath=.spec.projectRef.name
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=.spec.projectRef.name
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=.spec.url
// +kubebuilder:printcolumn:name="Update",type=string,JSONPath=.status.updateStatus
// +kubebuilder:printcolumn:name="Updated",type=date,JSONPath=.status.lastSuccessfulUpdateAt
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].status
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=.status.conditions[?(@.type=="Ready")].reason
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=.metadata.creationTimestamp
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.id) || !has(self.spec.id) || self.spec.id == oldSelf.status.id",message="spec.id cannot change once set"
type RemoteMirror struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is declared.
	// +required
	Spec RemoteMirrorSpec `json:"spec"`

	// status is what Forgeplane observed.
	// +kubebuilder:default={observedGeneration:-1}
	// +optional
	Status RemoteMirrorStatus `json:"status,omitempty"`
}

// GetCommonStatus returns the part of the status that every kind has.
func (m *RemoteMirror) GetCommonStatus() *CommonStatus { return &m.Status.CommonStatus }

// NewList returns an empty list of the kind.
func (m *RemoteMirror) NewList() ObjectList { return &RemoteMirrorList{} }

// IDs returns where the declared id and the id in force are kept.
func (m *RemoteMirror) IDs() (spec, status *int64) { return &m.Spec.ID, &m.Status.ID }

// RESTID is the id that the REST API shows.
func (m *RemoteMirror) RESTID() int64 { return cmp.Or(m.Spec.ID, m.Status.ID) }

// TargetRefs returns the references to the project and to the group that the object is declared for, one of which is nil.
func (m *RemoteMirror) TargetRefs() (project, group *Reference) { return &m.Spec.ProjectRef, nil }

// RemoteMirrorList is a list of mirrors.
// +kubebuilder:object:root=true
type RemoteMirrorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RemoteMirror `json:"items"`
}
