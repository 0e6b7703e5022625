package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Condition types of every kind. They follow kstatus: Ready is present once Forgeplane has seen the object. Reconciling and Stalled are
// present only while they are true.
const (
	// ConditionReady is true if the declaration is in force. It is also true, with a reason other than ReasonReady, if the declaration itself
	// says that the object has no effect now. kstatus waits for an object that is not ready for as long as it lives.
	ConditionReady = "Ready"
	// ConditionReconciling is true while Forgeplane works on the object, or waits for something that it watches.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is true if nothing changes until somebody changes this object, or the object that it collides with.
	ConditionStalled = "Stalled"
)

// Reasons of the conditions above.
const (
	// ReasonReady says that the declaration is in force.
	ReasonReady = "Ready"
	// ReasonProgressing says that work is under way. The message shows the progress.
	ReasonProgressing = "Progressing"
	// ReasonFailed says that the last attempt failed. Forgeplane retries it with a growing delay.
	ReasonFailed = "Failed"
	// ReasonDeleting says that the object is being deleted. The message says what the deletion waits for.
	ReasonDeleting = "Deleting"
	// ReasonReferenceNotFound says that a reference does not resolve: the object does not exist, or this object cannot refer to it.
	ReasonReferenceNotFound = "ReferenceNotFound"
	// ReasonReferenceNotReady says that the object that a reference leads to is not ready itself.
	ReasonReferenceNotReady = "ReferenceNotReady"
	// ReasonReferenceNotAllowed says that a public parent group does not admit groups of this namespace, or that a shard does not admit its
	// projects.
	ReasonReferenceNotAllowed = "ReferenceNotAllowed"
	// ReasonReferenceCycle says that a group is its own parent, directly or through other groups.
	ReasonReferenceCycle = "ReferenceCycle"
	// ReasonAlreadyExists says that another object holds something that this object declares and that can exist only once. The message
	// names the holder.
	ReasonAlreadyExists = "AlreadyExists"
	// ReasonNamespaceNotAllowed says that the installation does not allow a root group with this path in this namespace.
	ReasonNamespaceNotAllowed = "NamespaceNotAllowed"
	// ReasonInvalid says that the declaration is wrong although it matches the schema. The message says what to change.
	ReasonInvalid = "Invalid"
	// ReasonSuspended says that spec.suspend stops what Forgeplane would do for the object. Ready is true.
	ReasonSuspended = "Suspended"
	// ReasonExpired says that the expiry time has passed. Ready is true.
	ReasonExpired = "Expired"
	// ReasonRevoked says that the token was revoked. Ready is true.
	ReasonRevoked = "Revoked"
	// ReasonBlocked says that the user is not active: blocked, deactivated or banned.
	ReasonBlocked = "Blocked"
	// ReasonOwnerNotAllowed says that the user cannot be the owner: they do not have the role, or have not created the object themselves.
	ReasonOwnerNotAllowed = "OwnerNotAllowed"
	// ReasonRepositoryRetained says that a deleted project has left a repository that this project could take over. The message says how
	// to decide.
	ReasonRepositoryRetained = "RepositoryRetained"
	// ReasonStorageUnavailable says that the shard cannot be written to.
	ReasonStorageUnavailable = "StorageUnavailable"
	// ReasonImporting says that the repository is being imported.
	ReasonImporting = "Importing"
	// ReasonImportFailed says that the import failed. Forgeplane retries it with a growing delay.
	ReasonImportFailed = "ImportFailed"
	// ReasonTargetRefused says that the target is in a network that this installation does not allow.
	ReasonTargetRefused = "TargetRefused"
	// ReasonPushFailed says that the last push failed. Forgeplane retries it with a growing delay.
	ReasonPushFailed = "PushFailed"
	// ReasonPushIncomplete says that the target keeps or refuses some refs. The message names them.
	ReasonPushIncomplete = "PushIncomplete"
	// ReasonMoveFailed says that the move has failed. The project still uses the source.
	ReasonMoveFailed = "MoveFailed"
	// ReasonCleanupFailed says that the former copy of a repository could not be removed from the source of a move.
	ReasonCleanupFailed = "CleanupFailed"
	// ReasonRegistryUnavailable says that images cannot be read or changed at the moment, or that the installation has no container registry.
	ReasonRegistryUnavailable = "RegistryUnavailable"
	// ReasonCleanupIncomplete says that some tags could not be deleted.
	ReasonCleanupIncomplete = "CleanupIncomplete"
)

// CommonStatus is the part of the status that every kind has.
type CommonStatus struct {
	// conditions are the conditions of the object: Ready, and Reconciling and Stalled while they are true.
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// claims are the things that the object holds and that can exist only once, such as a full path or a username, in a form that only
	// Forgeplane reads. The holder keeps a claim for as long as its spec shows it.
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=1024
	// +optional
	Claims []string `json:"claims,omitempty"`

	// observedGeneration is the metadata.generation that the status describes. It is -1 until Forgeplane has seen the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// TargetStatus is the part of the status of every kind that is declared for a project or group.
type TargetStatus struct {
	// targetPath is the full path of the project or group that the object belongs to.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	TargetPath string `json:"targetPath,omitempty"`

	// targetRef is spec.projectRef or spec.groupRef when it last resolved, with the uid of the project or group. The object belongs to it
	// from then on: if the spec refers to it in another way later, and that leads to another project or group, the object stays where it is.
	// +optional
	TargetRef *Reference `json:"targetRef,omitempty"`
}
