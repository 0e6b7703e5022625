package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Condition types of every kind. They follow kstatus: Ready is always there once an object was
// seen, Reconciling and Stalled only while they are true.
const (
	// ConditionReady is true when what the object declares is in force.
	ConditionReady = "Ready"
	// ConditionReconciling is true while Forgeplane works on the object, or waits for something that it watches.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is true when nothing will change before somebody changes this object or the one it collides with.
	ConditionStalled = "Stalled"
)

// Reasons of the conditions above.
const (
	// ReasonReady says that the declaration is in force.
	ReasonReady = "Ready"
	// ReasonProgressing says that work is under way; the message says how far it is.
	ReasonProgressing = "Progressing"
	// ReasonFailed says that the last attempt failed and is repeated with a growing delay.
	ReasonFailed = "Failed"
	// ReasonDeleting says that the object is being deleted; the message says what it waits for.
	ReasonDeleting = "Deleting"
	// ReasonReferenceNotFound says that a reference names nothing that this object may refer to.
	ReasonReferenceNotFound = "ReferenceNotFound"
	// ReasonReferenceNotReady says that the object referred to is not ready itself.
	ReasonReferenceNotReady = "ReferenceNotReady"
	// ReasonReferenceNotAllowed says that the namespace of a parent group does not admit children from this one.
	ReasonReferenceNotAllowed = "ReferenceNotAllowed"
	// ReasonReferenceCycle says that a group is, through its parents, its own parent.
	ReasonReferenceCycle = "ReferenceCycle"
	// ReasonAlreadyExists says that another object holds the identity that this one declares; the message names it.
	ReasonAlreadyExists = "AlreadyExists"
	// ReasonNamespaceNotAllowed says that the installation lets this namespace hold no root group of that path.
	ReasonNamespaceNotAllowed = "NamespaceNotAllowed"
	// ReasonInvalid says that the declaration passes the schema and is still wrong; the message says what to change.
	ReasonInvalid = "Invalid"
	// ReasonExpired says that the expiry time has passed.
	ReasonExpired = "Expired"
	// ReasonRevoked says that the token was revoked.
	ReasonRevoked = "Revoked"
	// ReasonBlocked says that the user is blocked.
	ReasonBlocked = "Blocked"
	// ReasonOwnerNotAllowed says that the user may not be the owner, for want of a role or of his own doing.
	ReasonOwnerNotAllowed = "OwnerNotAllowed"
	// ReasonRepositoryRetained says that a deleted project has left a repository that may be meant; the message says how to decide.
	ReasonRepositoryRetained = "RepositoryRetained"
	// ReasonStorageUnavailable says that the shard cannot be written to.
	ReasonStorageUnavailable = "StorageUnavailable"
	// ReasonImporting says that the repository is being imported.
	ReasonImporting = "Importing"
	// ReasonImportFailed says that the import failed; it is repeated with a growing delay.
	ReasonImportFailed = "ImportFailed"
	// ReasonTargetRefused says that the target is in a network that this installation does not let anybody reach.
	ReasonTargetRefused = "TargetRefused"
	// ReasonPushFailed says that the last push failed; it is repeated with a growing delay.
	ReasonPushFailed = "PushFailed"
	// ReasonPushIncomplete says that the target has something that it keeps, or refuses; the message names it.
	ReasonPushIncomplete = "PushIncomplete"
)

// CommonStatus is the part of the status that every kind has.
type CommonStatus struct {
	// conditions of the object: Ready, and Reconciling or Stalled while they are true.
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// claims are what the object holds to the exclusion of others, such as a full path or a username, in a form that only Forgeplane
	// reads. The holder keeps a claim for as long as the spec shows it.
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=1024
	// +optional
	Claims []string `json:"claims,omitempty"`

	// observedGeneration is the generation of the object that the status speaks of; -1 before Forgeplane has seen it.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}
