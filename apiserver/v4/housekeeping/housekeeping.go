// Package housekeeping is the family that lets clients ask for the maintenance of a repository.
package housekeeping

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
)

// perMinute is how often one caller can ask for the maintenance of one repository.
const perMinute = 5

// Family serves requests for maintenance.
type Family struct {
	family.Kit
}

// New returns the family.
func New(k family.Kit) *Family { return &Family{k} }

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	return endpoint.Table{
		endpoint.Post("/projects/{id}/housekeeping", f.start).Needs(auth.AdminProject).Limited(perMinute, "housekeeping").
			Doc("Start the maintenance of the repository, as after a push."),
	}
}

type startRequest struct {
	Task string `param:"task" values:"eager,prune" default:"eager" doc:"Accepted for compatibility: objects that are not reachable any more stay for two weeks."`
}

func (f *Family) start(_ context.Context, s auth.Project, _ *startRequest) (endpoint.None, error) {
	if !f.Maintain(types.NamespacedName{Namespace: s.Scope.Project.Namespace, Name: s.Scope.Project.Name}) {
		return endpoint.None{}, endpoint.Message(http.StatusConflict, "Maintenance is turned off on this server by --maintenance-concurrency=0.")
	}
	return endpoint.None{}, nil
}
