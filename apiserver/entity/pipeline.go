package entity

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
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

// PipelineDetails is "Pipeline (result of triggering)" of the second interface document.
type PipelineDetails struct {
	Pipeline
	BeforeSHA      string         `json:"before_sha" doc:"The former commit of the branch; zeros if the pipeline is not about a push to an existing branch."`
	Tag            bool           `json:"tag"`
	YAMLErrors     *string        `json:"yaml_errors" doc:"The mistakes in the configuration."`
	User           *UserSummary   `json:"user" doc:"Null if the user is gone."`
	StartedAt      endpoint.Time  `json:"started_at" doc:"When the first job began."`
	FinishedAt     endpoint.Time  `json:"finished_at"`
	CommittedAt    endpoint.Time  `json:"committed_at" doc:"Always null."`
	Duration       *int64         `json:"duration" doc:"Seconds during which at least one job was running; null until the pipeline ends."`
	QueuedDuration *int64         `json:"queued_duration" doc:"Seconds until the first job began; null before."`
	Coverage       *string        `json:"coverage" doc:"Always null."`
	DetailedStatus PipelineStatus `json:"detailed_status"`
}

// PipelineStatus says how user interfaces show a status.
type PipelineStatus struct {
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

// SummarizePipeline shows a pipeline of a project; webURL is the address of the installation, without a slash at its end.
func SummarizePipeline(p pipeline.Pipeline, in catalog.Scope, webURL string) Pipeline {
	shown := Pipeline{
		ID: p.ID, IID: p.IID, ProjectID: in.RESTID(), SHA: p.SHA, Ref: p.Ref, Status: p.Status, Source: p.Source, CreatedAt: endpoint.Time(p.Created),
		UpdatedAt: endpoint.Time(p.Updated), WebURL: webURL + PipelinePath(p, in),
	}
	if p.Name != "" {
		shown.Name = &p.Name
	}
	return shown
}

// PipelinePath returns the path of the page of a pipeline.
func PipelinePath(p pipeline.Pipeline, in catalog.Scope) string {
	return fmt.Sprintf("/%s/-/pipelines/%d", in.Path(), p.ID)
}

// DescribePipeline shows a pipeline of a project with what its jobs say of it, and with its user, who is nil if the user is gone.
func DescribePipeline(p pipeline.Pipeline, sum pipeline.Summary, by *UserSummary, in catalog.Scope, webURL string) PipelineDetails {
	d := PipelineDetails{
		Pipeline: SummarizePipeline(p, in, webURL), BeforeSHA: cmp.Or(p.Before, strings.Repeat("0", len(p.SHA))), Tag: p.Tag,
		User: by, StartedAt: endpoint.Time(p.Started), FinishedAt: endpoint.Time(p.Finished),
		DetailedStatus: pipelineStatus(p.Status, sum.Warnings, PipelinePath(p, in)),
	}
	if p.Errors != "" {
		d.YAMLErrors = &p.Errors
	}
	if !p.Started.IsZero() {
		d.QueuedDuration = seconds(p.Started.Sub(p.Created))
	}
	if !p.Started.IsZero() && !p.Finished.IsZero() {
		d.Duration = seconds(sum.Duration)
	}
	return d
}

func seconds(d time.Duration) *int64 {
	whole := int64(d / time.Second)
	return &whole
}

// statusLabels are the texts and labels of statuses that are not called by their names.
var statusLabels = map[pipeline.Status][2]string{
	pipeline.Success: {"passed", "passed"}, pipeline.WaitingForResource: {"waiting", "waiting for resource"},
	pipeline.Manual: {"blocked", "waiting for manual action"}, pipeline.Scheduled: {"delayed", "waiting for delayed job"},
}

func pipelineStatus(s pipeline.Status, warnings bool, path string) PipelineStatus {
	d := PipelineStatus{
		Icon: "status_" + string(s), Text: string(s), Label: string(s), Group: strings.ReplaceAll(string(s), "_", "-"), HasDetails: true, DetailsPath: path,
		Favicon: "/assets/ci_favicons/favicon_status_" + string(s) + ".png",
	}
	switch called, other := statusLabels[s]; {
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
