package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnotationRetry requests that Forgeplane tries again to remove the former copy of a repository whose StorageMove is in the state "cleanup
// failed". Each new value, of at most 64 characters, causes one attempt.
const AnnotationRetry = "forgeplane.dev/retry"

// StorageMoveState is the state of a move, in the words of the REST API.
// +kubebuilder:validation:Enum=initial;scheduled;started;replicated;finished;failed;"cleanup failed"
type StorageMoveState string

// States of a move. The last three are final.
const (
	// StorageMoveInitial is the state of a move that waits for something, such as another move of the project.
	StorageMoveInitial StorageMoveState = "initial"
	// StorageMoveScheduled is the state of a move that waits for its turn. No other move of the project can be scheduled.
	StorageMoveScheduled StorageMoveState = "scheduled"
	// StorageMoveStarted is the state of a move that is copying.
	StorageMoveStarted StorageMoveState = "started"
	// StorageMoveReplicated is the state of a move after the project has begun to use the destination. The source still has the former copy.
	StorageMoveReplicated StorageMoveState = "replicated"
	// StorageMoveFinished is the state of a move whose former copy is removed.
	StorageMoveFinished StorageMoveState = "finished"
	// StorageMoveFailed is the state of a move that has changed nothing: the project still uses the source.
	StorageMoveFailed StorageMoveState = "failed"
	// StorageMoveCleanupFailed is the state of a move whose former copy could not be removed. The project uses the destination.
	StorageMoveCleanupFailed StorageMoveState = "cleanup failed"
)

// StorageMoveSpec declares that the repositories of a project move to another shard, once.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.id) || !has(self.id) || self.id == oldSelf.id",message="id cannot change once set",fieldPath=".id"
// +kubebuilder:validation:XValidation:rule="has(self.destination) == has(oldSelf.destination) && (!has(self.destination) || self.destination == oldSelf.destination)",message="destination cannot change: make another StorageMove",fieldPath=".destination"
type StorageMoveSpec struct {
	// id is the integer id that the REST API shows. It is unique within the kind. Forgeplane allocates it if omitted; setting it requires
	// the verb pin. It cannot change once set.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	ID int64 `json:"id,omitempty"`

	// projectRef refers to a project in the same namespace. It cannot be changed to refer to another project.
	// +required
	ProjectRef Reference `json:"projectRef"`

	// destination is the name of the RepositoryStorage to which the repositories move. If omitted, Forgeplane chooses a different
	// shard from the present one by weight. It cannot change.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Destination string `json:"destination,omitempty"`

	// suspend keeps the move from beginning, as long as its state is initial. A move that was scheduled goes on: delete it to end it. Defaults to
	// false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// ttlAfterFinished is how long Forgeplane keeps an object that was created over REST after the move has finished or failed, such as 24h. A
	// former copy that could not be removed keeps the object. A declared object stays until those who declare it delete it. If omitted,
	// Forgeplane does not delete the object.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9][0-9a-z.]*$') && duration(self) >= duration('0s')",message="ttlAfterFinished must be a duration of hours, minutes and seconds, as in 24h or 1h30m"
	// +optional
	TTLAfterFinished *metav1.Duration `json:"ttlAfterFinished,omitempty"`
}

// StorageMoveStatus is the observed state of a move.
type StorageMoveStatus struct {
	CommonStatus `json:",inline"`
	TargetStatus `json:",inline"`

	// id is the integer id that is in force.
	// +optional
	ID int64 `json:"id,omitempty"`

	// state is the state of the move.
	// +optional
	State StorageMoveState `json:"state,omitempty"`

	// projectName is the metadata.name of the project.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ProjectName string `json:"projectName,omitempty"`

	// projectID is the integer id of the project.
	// +optional
	ProjectID int64 `json:"projectID,omitempty"`

	// source is the name of the RepositoryStorage that held the repositories when the move was scheduled.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Source string `json:"source,omitempty"`

	// destination is the name of the RepositoryStorage that the repositories move to.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Destination string `json:"destination,omitempty"`

	// repositoryPath is the path of the code on both shards, relative to the path of the shard.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	RepositoryPath string `json:"repositoryPath,omitempty"`

	// attempt is the number of the last attempt to copy. A move needs more than one if the process that copied was killed.
	// +optional
	Attempt int64 `json:"attempt,omitempty"`

	// phase is what Forgeplane is doing for the move, in words for people. It is empty unless the state is started.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Phase string `json:"phase,omitempty"`

	// copiedBytes is the number of bytes that were copied so far.
	// +optional
	CopiedBytes int64 `json:"copiedBytes,omitempty"`

	// totalBytes is the number of bytes to copy, as far as it is known.
	// +optional
	TotalBytes int64 `json:"totalBytes,omitempty"`

	// copiedObjects is the number of Git objects that were copied so far.
	// +optional
	CopiedObjects int64 `json:"copiedObjects,omitempty"`

	// startedAt is the time at which the first attempt began.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// finishedAt is the time at which the move reached its final state.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`

	// lastError says why the move has failed, or why the former copy could not be removed.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	LastError string `json:"lastError,omitempty"`

	// handledRetry is the last value of the annotation forgeplane.dev/retry that Forgeplane has handled.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	HandledRetry string `json:"handledRetry,omitempty"`
}

// Ended reports whether the move is in a final state.
func (s *StorageMoveStatus) Ended() bool {
	return s.State == StorageMoveFinished || s.State == StorageMoveFailed || s.State == StorageMoveCleanupFailed
}

// Running reports whether the move prevents other moves of the project from being scheduled.
func (s *StorageMoveStatus) Running() bool {
	return s.State == StorageMoveScheduled || s.State == StorageMoveStarted
}

// MayHold reports whether the move may hold its project. It takes the hold before its state says so.
func (s *StorageMoveStatus) MayHold() bool {
	return s.Running() || s.State == StorageMoveInitial || s.State == ""
}

// StorageMove moves the repositories of a project to another shard while they are in use. Once the move has ended, the object only records it.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=move,categories=forge-admin
// +kubebuilder:selectablefield:JSONPath=.spec.id
// +kubebuilder:selectablefield:JSONPath=.spec.projectRef.name
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=.status.targetPath
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=.status.source
// +kubebuilder:printcolumn:name="Destination",type=string,JSONPath=.status.destination
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=.status.state
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].status
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].reason
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=.metadata.creationTimestamp
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=.status.conditions[?(@.type=="Ready")].message
// +kubebuilder:validation:XValidation:rule="has(oldSelf.spec.id) || !has(oldSelf.status) || !has(oldSelf.status.id) || !has(self.spec.id) || self.spec.id == oldSelf.status.id",message="id cannot change once set",fieldPath=".spec.id"
type StorageMove struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the declared state of the object.
	// +required
	Spec StorageMoveSpec `json:"spec"`

	// status is the state of the object as Forgeplane last observed it.
	// +kubebuilder:default={observedGeneration:-1}
	// +optional
	Status StorageMoveStatus `json:"status,omitempty"`
}

// GetCommonStatus returns the part of the status that every kind has.
func (m *StorageMove) GetCommonStatus() *CommonStatus { return &m.Status.CommonStatus }

// NewList returns an empty list of the kind.
func (m *StorageMove) NewList() ObjectList { return &StorageMoveList{} }

// IDs returns the addresses of the declared id and of the id that is in force.
func (m *StorageMove) IDs() (spec, status *int64) { return &m.Spec.ID, &m.Status.ID }

// RESTID returns the id that the REST API shows.
func (m *StorageMove) RESTID() int64 { return cmp.Or(m.Spec.ID, m.Status.ID) }

// GetTargetStatus returns the part of the status about the project or group that the object is declared for.
func (m *StorageMove) GetTargetStatus() *TargetStatus { return &m.Status.TargetStatus }

// TargetRefs returns the references to the project and to the group that the object is declared for. One of them is nil.
func (m *StorageMove) TargetRefs() (project, group *Reference) { return &m.Spec.ProjectRef, nil }

// StorageMoveList is a list of moves.
// +kubebuilder:object:root=true
type StorageMoveList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []StorageMove `json:"items"`
}
