package entity

import (
	"fmt"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/milestone"
)

// Milestone is "Milestone" of the core interface document.
type Milestone struct {
	ID          int64         `json:"id"`
	IID         int64         `json:"iid"`
	ProjectID   int64         `json:"project_id,omitempty" doc:"Only for a milestone of a project."`
	GroupID     int64         `json:"group_id,omitempty" doc:"Only for a milestone of a group."`
	Title       string        `json:"title"`
	Description string        `json:"description"`
	State       string        `json:"state" doc:"active or closed."`
	CreatedAt   endpoint.Time `json:"created_at"`
	UpdatedAt   endpoint.Time `json:"updated_at"`
	DueDate     endpoint.Date `json:"due_date"`
	StartDate   endpoint.Date `json:"start_date"`
	Expired     bool          `json:"expired" doc:"Whether the due date is past."`
	WebURL      string        `json:"web_url"`
}

// ShowMilestone shows a milestone; webURL is the address of its project or group.
func ShowMilestone(m milestone.Milestone, webURL string, now time.Time) Milestone {
	shown := Milestone{
		ID: m.ID, IID: m.IID, Title: m.Title, Description: m.Description, State: string(m.State),
		CreatedAt: endpoint.Time(m.Created), UpdatedAt: endpoint.Time(m.Updated), DueDate: Day(m.Due), StartDate: Day(m.Start),
		Expired: m.Due != "" && m.Due < now.UTC().Format(time.DateOnly), WebURL: fmt.Sprintf("%s/-/milestones/%d", webURL, m.IID),
	}
	if m.In.Kind == database.KindGroup {
		shown.GroupID = m.In.ID
	} else {
		shown.ProjectID = m.In.ID
	}
	return shown
}
