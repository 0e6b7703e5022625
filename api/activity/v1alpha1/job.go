package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// JobSpec describes a job.
type JobSpec struct {
	// projectRef refers to the project.
	ProjectRef ProjectReference `json:"projectRef"`

	// pipeline is the name of the Pipeline that has the job.
	Pipeline string `json:"pipeline"`

	// title is the name of the job in the configuration.
	Title string `json:"title"`

	// stage is the stage of the pipeline to which the job belongs.
	Stage string `json:"stage"`

	// tags are the tags that a runner must have.
	// +listType=atomic
	// +optional
	Tags []string `json:"tags,omitempty"`

	// user is the username of the user with whose rights the job runs. It is empty if the user was deleted.
	// +optional
	User string `json:"user,omitempty"`
}

// JobStatus is the state of a job.
type JobStatus struct {
	// id is the number in the installation.
	ID int64 `json:"id"`

	// state is created, waiting_for_resource, pending, running, success, failed, canceled, skipped, manual or scheduled.
	State string `json:"state"`

	// failureReason is the reason of a failure, such as script_failure.
	// +optional
	FailureReason string `json:"failureReason,omitempty"`

	// allowFailure says that the pipeline can succeed although the job fails.
	AllowFailure bool `json:"allowFailure"`

	// retried says that another job has taken the place of the job.
	Retried bool `json:"retried"`

	// createdAt is the time of creation.
	CreatedAt metav1.Time `json:"createdAt"`

	// startedAt is the time at which the job began.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// finishedAt is the time at which the job ended.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`

	// webURL is the address in the forge.
	WebURL string `json:"webURL"`
}

// Job is a job of a pipeline. Its name consists of the name of the Project and the id, such as website-17.
// +kubebuilder:object:root=true
type Job struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec describes the job.
	Spec JobSpec `json:"spec"`

	// status is the state.
	Status JobStatus `json:"status"`
}

// JobList is a list of jobs.
// +kubebuilder:object:root=true
type JobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the jobs.
	Items []Job `json:"items"`
}
