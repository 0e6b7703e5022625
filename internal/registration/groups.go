package registration

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	activityv1alpha1 "github.com/forgeplane/forgeplane/api/activity/v1alpha1"
)

// RESTGroup and RESTVersion are the group and the version of the REST API in kube-apiserver.
const (
	RESTGroup   = "rest.forgeplane.dev"
	RESTVersion = "v4"
)

// Groups returns the API groups that the servers of Forgeplane serve: the REST API, and virtual resources.
func Groups() []schema.GroupVersion {
	return []schema.GroupVersion{{Group: RESTGroup, Version: RESTVersion}, activityv1alpha1.GroupVersion}
}
