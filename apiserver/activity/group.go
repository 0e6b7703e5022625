// Package activity serves merge requests, issues, pipelines and jobs as virtual resources: the group activity.forgeplane.dev. RBAC alone decides who can read them.
package activity

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/forgeplane/forgeplane/api/activity/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/aggregated/virtual"
	"github.com/forgeplane/forgeplane/internal/activity"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/issue"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// Options of the group.
type Options struct {
	Catalog *catalog.Catalog
	Stores  activity.Stores
	// WebURL is the address of the installation, without a slash at its end.
	WebURL string
	// Outdated reports whether what was looked up in the catalog may have been older than what other servers have written, and returns when it
	// no longer is.
	Outdated func(context.Context) (bool, error)
}

// Group returns the group.
func Group(o Options) virtual.Group {
	return virtual.Group{
		GroupVersion: v1alpha1.GroupVersion,
		Resources: map[string]virtual.Resource{
			"mergerequests": {
				Singular: "mergerequest", ShortNames: []string{"mr"},
				New: func() client.Object { return &v1alpha1.MergeRequest{} }, NewList: func() client.ObjectList { return &v1alpha1.MergeRequestList{} },
				Columns: mergeRequestColumns(), Fields: selectable,
				Source: source{o, mergerequest.Kind, mergeRequests{o}},
			},
			"pipelines": {
				Singular: "pipeline",
				New:      func() client.Object { return &v1alpha1.Pipeline{} }, NewList: func() client.ObjectList { return &v1alpha1.PipelineList{} },
				Columns: pipelineColumns(), Fields: selectable,
				Source: source{o, pipeline.Kind, pipelines{o}},
			},
			// The short name distinguishes them from the jobs of Kubernetes.
			"jobs": {
				Singular: "job", ShortNames: []string{"cijob"},
				New: func() client.Object { return &v1alpha1.Job{} }, NewList: func() client.ObjectList { return &v1alpha1.JobList{} },
				Columns: jobColumns(), Fields: selectable,
				Source: source{o, pipeline.JobKind, jobs{o}},
			},
			"issues": {
				Singular: "issue",
				New:      func() client.Object { return &v1alpha1.Issue{} }, NewList: func() client.ObjectList { return &v1alpha1.IssueList{} },
				Columns: issueColumns(), Fields: selectable,
				Source: source{o, issue.Kind, issues{o}},
			},
		},
		Definitions: GetOpenAPIDefinitions,
	}
}

// The fields by which clients can select objects, beside their names and namespaces.
const (
	fieldProject = "spec.projectRef.name"
	fieldState   = "status.state"
)

// selectable returns the values of these fields.
func selectable(obj client.Object) fields.Set {
	p := partsOf(obj)
	return fields.Set{fieldProject: p.project.Name, fieldState: *p.state}
}

// parts are the fields that all kinds have.
type parts struct {
	project *v1alpha1.ProjectReference
	// number is the number in the project, or the id of a job.
	number  *int64
	state   *string
	created *metav1.Time
}

func partsOf(obj client.Object) parts {
	switch o := obj.(type) {
	case *v1alpha1.MergeRequest:
		return parts{&o.Spec.ProjectRef, &o.Status.IID, &o.Status.State, &o.Status.CreatedAt}
	case *v1alpha1.Pipeline:
		return parts{&o.Spec.ProjectRef, &o.Status.IID, &o.Status.State, &o.Status.CreatedAt}
	case *v1alpha1.Job:
		return parts{&o.Spec.ProjectRef, &o.Status.ID, &o.Status.State, &o.Status.CreatedAt}
	}
	i := obj.(*v1alpha1.Issue)
	return parts{&i.Spec.ProjectRef, &i.Status.IID, &i.Status.State, &i.Status.CreatedAt}
}

// column returns a column of text. Columns with a priority appear only in wide tables.
func column[T client.Object](name, description string, priority int32, cell func(T) string) virtual.Column {
	return virtual.Column{
		TableColumnDefinition: metav1.TableColumnDefinition{Name: name, Type: "string", Priority: priority, Description: description},
		Cell:                  func(obj client.Object) any { return cell(obj.(T)) },
	}
}

func mergeRequestColumns() []virtual.Column {
	type object = *v1alpha1.MergeRequest
	return []virtual.Column{
		column("Title", "Title of the merge request.", 0, func(m object) string { return m.Spec.Title }),
		column("State", "Opened, closed, locked or merged.", 0, func(m object) string { return m.Status.State }),
		column("Source", "Branch to merge.", 0, func(m object) string { return m.Spec.SourceBranch }),
		column("Target", "Branch into which it is merged.", 0, func(m object) string { return m.Spec.TargetBranch }),
		column("Author", "Username of the author.", 1, func(m object) string { return m.Spec.Author }),
		column("Mergeable", "Whether the branches can be merged without conflicts.", 1, func(m object) string { return m.Status.MergeStatus }),
		column("Age", "Time since the creation.", 0, age[object]),
	}
}

func issueColumns() []virtual.Column {
	type object = *v1alpha1.Issue
	return []virtual.Column{
		column("Title", "Title of the issue.", 0, func(i object) string { return i.Spec.Title }),
		column("State", "Opened or closed.", 0, func(i object) string { return i.Status.State }),
		column("Author", "Username of the author.", 1, func(i object) string { return i.Spec.Author }),
		column("Milestone", "Title of the milestone.", 1, func(i object) string { return i.Spec.Milestone }),
		column("Age", "Time since the creation.", 0, age[object]),
	}
}

func age[T client.Object](obj T) string {
	created := obj.GetCreationTimestamp()
	if created.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(created.Time))
}
