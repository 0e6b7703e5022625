package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PipelineSpec describes a pipeline.
type PipelineSpec struct {
	// projectRef refers to the project.
	ProjectRef ProjectReference `json:"projectRef"`

	// ref is the branch or tag, or the ref of the head of a merge request.
	Ref string `json:"ref"`

	// sha is the commit.
	SHA string `json:"sha"`

	// source is the event that created the pipeline, such as push or schedule.
	Source string `json:"source"`

	// title is the value of workflow:name in the configuration.
	// +optional
	Title string `json:"title,omitempty"`

	// user is the username of the user with whose rights the pipeline runs. It is empty if the user was deleted.
	// +optional
	User string `json:"user,omitempty"`
}

// PipelineStatus is the state of a pipeline.
type PipelineStatus struct {
	// id is the number in the installation.
	ID int64 `json:"id"`

	// iid is the number in the project.
	IID int64 `json:"iid"`

	// state is created, waiting_for_resource, pending, running, success, failed, canceled, skipped, manual or scheduled.
	State string `json:"state"`

	// createdAt is the time of creation.
	CreatedAt metav1.Time `json:"createdAt"`

	// updatedAt is the time of the last change of the state.
	UpdatedAt metav1.Time `json:"updatedAt"`

	// startedAt is the time at which the first job began.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// finishedAt is the time at which the pipeline ended.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`

	// webURL is the address in the forge.
	WebURL string `json:"webURL"`
}

// Pipeline is a pipeline of a project. Its name consists of the name of the Project and the number, such as website-1.
// +kubebuilder:object:root=true
type Pipeline struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec describes the pipeline.
	Spec PipelineSpec `json:"spec"`

	// status is the state.
	Status PipelineStatus `json:"status"`
}

// PipelineList is a list of pipelines.
// +kubebuilder:object:root=true
type PipelineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the pipelines.
	Items []Pipeline `json:"items"`
}
