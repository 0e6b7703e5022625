// Package housekeeping is the family of requests for the maintenance of repositories.
package housekeeping

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
)

// perMinute is the number of requests of a caller per minute for one repository.
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
			Doc("Start the maintenance of a repository."),
	}
}

type startRequest struct {
	Task string `param:"task" values:"eager,prune" default:"eager" doc:"Accepted for compatibility: unreachable objects are kept for two weeks."`
}

func (f *Family) start(_ context.Context, s auth.Project, _ *startRequest) (endpoint.None, error) {
	if !f.Maintain(types.NamespacedName{Namespace: s.Scope.Project.Namespace, Name: s.Scope.Project.Name}) {
		return endpoint.None{}, endpoint.Message(http.StatusConflict, "Maintenance is turned off on this server by --maintenance-concurrency=0.")
	}
	return endpoint.None{}, nil
}
