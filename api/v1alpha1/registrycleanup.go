package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RegistryCleanupSpec declares which tags of the container repositories of a project are deleted, and when.
// +kubebuilder:validation:XValidation:rule="has(self.schedule) || !has(self.timeZone)",message="timeZone needs a schedule",fieldPath=".timeZone"
// +kubebuilder:validation:XValidation:rule="!has(self.schedule) || !has(self.ttlAfterFinished)",message="schedule and ttlAfterFinished exclude each other",fieldPath=".ttlAfterFinished"
type RegistryCleanupSpec struct {
	// projectRef refers to a project in the same namespace. It cannot be changed to refer to another project.
	// +required
	ProjectRef Reference `json:"projectRef"`

	// repository is the part of a repository's name that follows the path of the project, as in app or app/debug, or . for the repository with
	// the path of the project. If omitted, all repositories of the project are cleaned up.
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule=`self in ['', '.'] || self.matches(r'^[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)?$')`,message="repository must be the part of a name that follows the path of the project, as in app, or . for the repository with the path of the project"
	// +optional
	Repository string `json:"repository,omitempty"`

	// nameRegexDelete is a regular expression in RE2 syntax. Tags whose whole names it matches are deleted. The tag latest is never
	// deleted.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +required
	NameRegexDelete string `json:"nameRegexDelete"`

	// nameRegexKeep is a regular expression in RE2 syntax. Tags whose whole names it matches stay.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	NameRegexKeep string `json:"nameRegexKeep,omitempty"`

	// keepN is how many of the matching tags of each repository stay: those with the newest images. Defaults to 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	KeepN int64 `json:"keepN,omitempty"`

	// olderThan is a span of time, as in 1h, 1d, 1month or "2 weeks 3 days". Tags whose images are not older stay.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	OlderThan string `json:"olderThan,omitempty"`

	// schedule is when Forgeplane cleans up, in the five fields of cron, or @hourly, @daily, @weekly, @monthly or @yearly. If omitted, it does so
	// once, and again when the fields above or dryRun change.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Schedule string `json:"schedule,omitempty"`

	// timeZone is the time zone of the schedule by its name in the IANA database, as in Europe/Berlin. Defaults to UTC.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TimeZone string `json:"timeZone,omitempty"`

	// suspend stops the cleanup. A run that has begun goes on when suspend is false again. Defaults to false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// dryRun finds out what would be deleted, and deletes nothing. Defaults to false.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`

	// ttlAfterFinished is how long Forgeplane keeps an object that was created over REST after its run has ended, such as 24h. It cannot be
	// combined with schedule. A declared object stays until those who declare it delete it. If omitted, Forgeplane does not delete the object.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9][0-9a-z.]*$') && duration(self) >= duration('0s')",message="ttlAfterFinished must be a duration of hours, minutes and seconds, as in 24h or 1h30m"
	// +optional
	TTLAfterFinished *metav1.Duration `json:"ttlAfterFinished,omitempty"`
}

// RegistryCleanupState is the state of a run.
// +kubebuilder:validation:Enum=Waiting;Running;Finished;Incomplete;Stopped
type RegistryCleanupState string

// States of a run. The last three are final.
const (
	// RegistryCleanupWaiting is the state of a run that waits: for its turn, for the next attempt, or until a repository can be cleaned up again.
	RegistryCleanupWaiting RegistryCleanupState = "Waiting"
	// RegistryCleanupRunning is the state of a run that is working.
	RegistryCleanupRunning RegistryCleanupState = "Running"
	// RegistryCleanupFinished is the state of a run that has deleted everything that it selected.
	RegistryCleanupFinished RegistryCleanupState = "Finished"
	// RegistryCleanupIncomplete is the state of a run that could not delete some tags.
	RegistryCleanupIncomplete RegistryCleanupState = "Incomplete"
	// RegistryCleanupStopped is the state of a run that ended early, because its declaration was changed.
	RegistryCleanupStopped RegistryCleanupState = "Stopped"
)

// RegistryCleanupRun is a run of a cleanup.
type RegistryCleanupRun struct {
	// number is the number of the run, from 1.
	// +optional
	Number int64 `json:"number,omitempty"`

	// state is the state of the run.
	// +optional
	State RegistryCleanupState `json:"state,omitempty"`

	// policy is a checksum of what the spec says about the tags to delete.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Policy string `json:"policy,omitempty"`

	// dryRun says that the run only finds out what would be deleted.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`

	// startedAt is the time at which the run became due.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// finishedAt is the time at which the run reached its final state.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`

	// repositories is the number of repositories that the run has looked at.
	// +optional
	Repositories int64 `json:"repositories"`

	// selected is the number of tags to delete.
	// +optional
	Selected int64 `json:"selected"`

	// deleted is the number of tags that were deleted.
	// +optional
	Deleted int64 `json:"deleted"`

	// kept is the number of tags that stay.
	// +optional
	Kept int64 `json:"kept"`

	// failed is the number of tags that could not be deleted.
	// +optional
	Failed int64 `json:"failed"`

	// tags are the first tags that a dry run would delete, as repository:tag. The repository with the path of the project is shown as a dot.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=512
	// +listType=atomic
	// +optional
	Tags []string `json:"tags,omitempty"`
}

// Ended reports whether the run is in a final state.
func (r *RegistryCleanupRun) Ended() bool {
	return r.State == RegistryCleanupFinished || r.State == RegistryCleanupIncomplete || r.State == RegistryCleanupStopped
}

// RegistryCleanupStatus is the observed state of a cleanup.
type RegistryCleanupStatus struct {
	CommonStatus `json:",inline"`
	TargetStatus `json:",inline"`

	// lastRun is the run that began last.
	// +optional
	LastRun *RegistryCleanupRun `json:"lastRun,omitempty"`

	// nextRunAt is the time at which the schedule begins the next run.
	// +optional
	NextRunAt *metav1.Time `json:"nextRunAt,omitempty"`

	// attempts is the number of attempts of the run that have failed.
	// +optional
	Attempts int64 `json:"attempts,omitempty"`

	// nextAttemptAt is the time at which the run goes on, if it waits for a time.
	// +optional
	NextAttemptAt *metav1.Time `json:"nextAttemptAt,omitempty"`

	// lastError says why the last attempt failed. It is empty if the attempt succeeded.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	LastError string `json:"lastError,omitempty"`
}

// RegistryCleanup deletes tags of the container repositories of a project, once or on a schedule.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cleanup,categories=forge
// +kubebuilder:selectablefield:JSONPath=.spec.projectRef.name
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=.status.targetPath
// +kubebuilder:printcolumn:name="Repository",type=string,JSONPath=.spec.repository
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=.spec.schedule
// +kubebuilder:printcolumn:name="Last Run",type=date,JSONPath=.status.lastRun.startedAt
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=.status.lastRun.state
// +kubebuilder:printcolumn:name="Deleted",type=integer,JSONPath=.status.lastRun.deleted
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].status
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=.status.conditions[?(@.type=="Ready")].reason
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=.metadata.creationTimestamp
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=.status.conditions[?(@.type=="Ready")].message
type RegistryCleanup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the declared state of the object.
	// +required
	Spec RegistryCleanupSpec `json:"spec"`

	// status is the state of the object as Forgeplane last observed it.
	// +kubebuilder:default={observedGeneration:-1}
	// +optional
	Status RegistryCleanupStatus `json:"status,omitempty"`
}

// GetCommonStatus returns the part of the status that every kind has.
func (c *RegistryCleanup) GetCommonStatus() *CommonStatus { return &c.Status.CommonStatus }

// NewList returns an empty list of the kind.
func (c *RegistryCleanup) NewList() ObjectList { return &RegistryCleanupList{} }

// GetTargetStatus returns the part of the status about the project or group that the object is declared for.
func (c *RegistryCleanup) GetTargetStatus() *TargetStatus { return &c.Status.TargetStatus }

// TargetRefs returns the references to the project and to the group that the object is declared for. One of them is nil.
func (c *RegistryCleanup) TargetRefs() (project, group *Reference) { return &c.Spec.ProjectRef, nil }

// RegistryCleanupList is a list of cleanups.
// +kubebuilder:object:root=true
type RegistryCleanupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RegistryCleanup `json:"items"`
}
