// Package v1alpha1 contains the virtual resources of Forgeplane, in the API group activity.forgeplane.dev: what happens in projects,
// read-only and from the activity database.
//
// +kubebuilder:object:generate=true
// +kubebuilder:skip
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=dev.forgeplane.activity.v1alpha1
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "activity.forgeplane.dev", Version: "v1alpha1"}

// ProjectReference names the Project of an object.
type ProjectReference struct {
	// name is the name of a Project in the same namespace.
	Name string `json:"name"`
}

// ItemSpec has the fields that the specs of merge requests and issues share.
type ItemSpec struct {
	// projectRef refers to the project.
	ProjectRef ProjectReference `json:"projectRef"`

	// title is the title.
	Title string `json:"title"`

	// author is the username of the author. It is empty if the user was deleted, as are the other usernames.
	// +optional
	Author string `json:"author,omitempty"`

	// assignees are the usernames of the assignees.
	// +listType=atomic
	// +optional
	Assignees []string `json:"assignees,omitempty"`

	// labels are the titles of the labels.
	// +listType=atomic
	// +optional
	Labels []string `json:"labels,omitempty"`

	// milestone is the title of the milestone.
	// +optional
	Milestone string `json:"milestone,omitempty"`
}

// ItemStatus is the state of a merge request or issue.
type ItemStatus struct {
	// iid is the number in the project.
	IID int64 `json:"iid"`

	// state is opened or closed; for a merge request also merged, or locked while it is being merged.
	State string `json:"state"`

	// createdAt is the time of creation.
	CreatedAt metav1.Time `json:"createdAt"`

	// updatedAt is the time of the last change.
	UpdatedAt metav1.Time `json:"updatedAt"`

	// closedAt is the time at which it was closed, if it is closed.
	// +optional
	ClosedAt *metav1.Time `json:"closedAt,omitempty"`

	// webURL is the address in the forge.
	WebURL string `json:"webURL"`
}
