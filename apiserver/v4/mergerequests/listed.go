package mergerequests

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

// Listed is a merge request in a list. In a simple list it has no details.
type Listed struct {
	Simple
	*Details
}

// Simple is a merge request without its details.
type Simple struct {
	ID          int64              `json:"id"`
	IID         int64              `json:"iid"`
	ProjectID   int64              `json:"project_id"`
	Title       string             `json:"title"`
	Description string             `json:"description"`
	State       mergerequest.State `json:"state" doc:"opened, closed, locked or merged."`
	CreatedAt   endpoint.Time      `json:"created_at"`
	UpdatedAt   endpoint.Time      `json:"updated_at"`
	WebURL      string             `json:"web_url"`
}

// Details are a whole merge request. In JSON, the fields of Simple hide the same ones here, which are one level deeper.
type Details struct{ MergeRequest }

// inList shows merge requests in a list.
func inList(some []MergeRequest) []Listed {
	all := make([]Listed, len(some))
	for n, m := range some {
		all[n] = Listed{Simple{m.ID, m.IID, m.ProjectID, m.Title, m.Description, m.State, m.CreatedAt, m.UpdatedAt, m.WebURL}, &Details{m}}
	}
	return all
}

// showSimple shows merge requests of the given projects without their details.
func (f *Family) showSimple(in map[types.UID]catalog.Scope, some []mergerequest.MergeRequest) []Listed {
	all := make([]Listed, len(some))
	for n, m := range some {
		project := in[m.In.UID]
		all[n].Simple = Simple{
			m.ID, m.IID, project.RESTID(), m.Title, m.Description, m.State, endpoint.Time(m.Created), endpoint.Time(m.Updated),
			fmt.Sprintf("%s/%s/-/merge_requests/%d", f.WebURL, project.Path(), m.IID),
		}
	}
	return all
}
