package pipelines

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// Pipeline is a pipeline in lists and in jobs.
type Pipeline struct {
	ID        int64           `json:"id"`
	IID       int64           `json:"iid"`
	ProjectID int64           `json:"project_id"`
	SHA       string          `json:"sha"`
	Ref       string          `json:"ref"`
	Status    pipeline.Status `json:"status"`
	Source    string          `json:"source" example:"push" doc:"The event that created the pipeline."`
	CreatedAt endpoint.Time   `json:"created_at"`
	UpdatedAt endpoint.Time   `json:"updated_at"`
	WebURL    string          `json:"web_url"`
	Name      *string         `json:"name" doc:"The value of workflow:name; null without one."`
}

// Detailed is "Pipeline (result of triggering)" of the second interface document.
type Detailed struct {
	Pipeline
	BeforeSHA      string              `json:"before_sha" doc:"The former commit of the branch; zeros if the pipeline is not about a push to an existing branch."`
	Tag            bool                `json:"tag"`
	YAMLErrors     *string             `json:"yaml_errors" doc:"The mistakes in the configuration."`
	User           *entity.UserSummary `json:"user" doc:"Null if the user is gone."`
	StartedAt      endpoint.Time       `json:"started_at" doc:"When the first job began."`
	FinishedAt     endpoint.Time       `json:"finished_at"`
	CommittedAt    endpoint.Time       `json:"committed_at" doc:"Always null."`
	Duration       *int64              `json:"duration" doc:"Seconds during which at least one job was running; null until the pipeline ends."`
	QueuedDuration *int64              `json:"queued_duration" doc:"Seconds until the first job began; null before."`
	Coverage       *string             `json:"coverage" doc:"Always null."`
	DetailedStatus DetailedStatus      `json:"detailed_status"`
}

// DetailedStatus says how user interfaces show a status.
type DetailedStatus struct {
	Icon         string    `json:"icon" example:"status_success"`
	Text         string    `json:"text" example:"passed"`
	Label        string    `json:"label" example:"passed"`
	Group        string    `json:"group" example:"success"`
	Tooltip      string    `json:"tooltip" example:"passed"`
	HasDetails   bool      `json:"has_details" doc:"Always true."`
	DetailsPath  string    `json:"details_path"`
	Illustration *struct{} `json:"illustration" doc:"Always null."`
	Favicon      string    `json:"favicon"`
}

func (f *Family) show(in catalog.Scope, p pipeline.Pipeline) Pipeline {
	return Pipeline{
		ID: p.ID, IID: p.IID, ProjectID: in.RESTID(), SHA: p.SHA, Ref: p.Ref, Status: p.Status, Source: p.Source, CreatedAt: endpoint.Time(p.Created),
		UpdatedAt: endpoint.Time(p.Updated), WebURL: f.WebURL + path(in, p), Name: given(p.Name),
	}
}

// path returns the path of the page of a pipeline.
func path(in catalog.Scope, p pipeline.Pipeline) string {
	return fmt.Sprintf("/%s/-/pipelines/%d", in.Path(), p.ID)
}

func given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// detail shows a pipeline of the project of a request.
func (f *Family) detail(ctx context.Context, s auth.Subject, p pipeline.Pipeline) (Detailed, error) {
	users, err := item.Users(ctx, f.Catalog, f.WebURL, p.User)
	if err != nil {
		return Detailed{}, err
	}
	sum, err := f.Activity.Pipelines.Summarize(ctx, p.ID)
	if err != nil {
		return Detailed{}, err
	}
	d := Detailed{
		Pipeline: f.show(s.Scope, p), BeforeSHA: cmp.Or(p.Before, strings.Repeat("0", len(p.SHA))), Tag: p.Tag, YAMLErrors: given(p.Errors),
		User: users[p.User.UID], StartedAt: endpoint.Time(p.Started), FinishedAt: endpoint.Time(p.Finished),
		DetailedStatus: detailedStatus(p.Status, sum.Warnings, path(s.Scope, p)),
	}
	if !p.Started.IsZero() {
		d.QueuedDuration = seconds(p.Started.Sub(p.Created))
	}
	if !p.Started.IsZero() && !p.Finished.IsZero() {
		d.Duration = seconds(sum.Duration)
	}
	return d, nil
}

func seconds(d time.Duration) *int64 {
	whole := int64(d / time.Second)
	return &whole
}

// labels are the texts and labels of statuses that are not called by their names.
var labels = map[pipeline.Status][2]string{
	pipeline.Success: {"passed", "passed"}, pipeline.WaitingForResource: {"waiting", "waiting for resource"},
	pipeline.Manual: {"blocked", "waiting for manual action"}, pipeline.Scheduled: {"delayed", "waiting for delayed job"},
}

func detailedStatus(s pipeline.Status, warnings bool, path string) DetailedStatus {
	d := DetailedStatus{
		Icon: "status_" + string(s), Text: string(s), Label: string(s), Group: strings.ReplaceAll(string(s), "_", "-"), HasDetails: true, DetailsPath: path,
		Favicon: "/assets/ci_favicons/favicon_status_" + string(s) + ".png",
	}
	switch called, other := labels[s]; {
	case s == pipeline.Success && warnings:
		d.Icon, d.Text, d.Label, d.Group = "status_warning", "warning", "passed with warnings", "success-with-warnings"
	case other:
		d.Text, d.Label = called[0], called[1]
	}
	if s == pipeline.WaitingForResource {
		d.Icon = "status_pending"
	}
	d.Tooltip = d.Label
	return d
}
