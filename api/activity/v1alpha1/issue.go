package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// IssueSpec describes an issue.
type IssueSpec struct {
	ItemSpec `json:",inline"`

	// type is issue, incident, test_case or task.
	Type string `json:"type"`

	// confidential says that the forge hides the issue from some users. Kubernetes shows it to all who can read issues.
	Confidential bool `json:"confidential"`

	// dueDate is the day on which the issue is due, such as 2026-12-31.
	// +optional
	DueDate string `json:"dueDate,omitempty"`

	// weight is the weight of the issue.
	// +optional
	Weight *int64 `json:"weight,omitempty"`
}

// Issue is an issue of a project. Its name consists of the name of the Project and the number, such as website-1.
// +kubebuilder:object:root=true
type Issue struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec describes the issue.
	Spec IssueSpec `json:"spec"`

	// status is the state.
	Status ItemStatus `json:"status"`
}

// IssueList is a list of issues.
// +kubebuilder:object:root=true
type IssueList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the issues.
	Items []Issue `json:"items"`
}
