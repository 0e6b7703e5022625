package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MergeRequestSpec describes a merge request.
type MergeRequestSpec struct {
	ItemSpec `json:",inline"`

	// draft says that the merge request cannot be merged yet, because its title begins with Draft.
	Draft bool `json:"draft"`

	// reviewers are the usernames of the reviewers.
	// +listType=atomic
	// +optional
	Reviewers []string `json:"reviewers,omitempty"`

	// sourceProject is the full path of the project that has the source branch. It is empty if that project was deleted.
	// +optional
	SourceProject string `json:"sourceProject,omitempty"`

	// sourceBranch is the branch to merge.
	SourceBranch string `json:"sourceBranch"`

	// targetBranch is the branch of the project into which it is merged.
	TargetBranch string `json:"targetBranch"`
}

// MergeRequestStatus is the state of a merge request.
type MergeRequestStatus struct {
	ItemStatus `json:",inline"`

	// mergeStatus says whether the branches can be merged without conflicts: unchecked, checking, can_be_merged, cannot_be_merged or
	// cannot_be_merged_recheck.
	MergeStatus string `json:"mergeStatus"`

	// sha is the head of the source branch at the last push.
	// +optional
	SHA string `json:"sha,omitempty"`

	// mergeCommitSHA is the commit of the merge, if there is one.
	// +optional
	MergeCommitSHA string `json:"mergeCommitSHA,omitempty"`

	// mergedAt is the time of the merge.
	// +optional
	MergedAt *metav1.Time `json:"mergedAt,omitempty"`

	// mergedBy is the username of the user who merged it.
	// +optional
	MergedBy string `json:"mergedBy,omitempty"`
}

// MergeRequest is a merge request of a project. Its name consists of the name of the Project and the number, such as website-1.
// +kubebuilder:object:root=true
type MergeRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec describes the merge request.
	Spec MergeRequestSpec `json:"spec"`

	// status is the state.
	Status MergeRequestStatus `json:"status"`
}

// MergeRequestList is a list of merge requests.
// +kubebuilder:object:root=true
type MergeRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the merge requests.
	Items []MergeRequest `json:"items"`
}
