package activity

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/forgeplane/forgeplane/api/activity/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/aggregated/virtual"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/database"
)

type pipelines struct{ Options }

func (pipelines) blank() client.Object { return &v1alpha1.Pipeline{} }

func (s pipelines) show(ctx context.Context, in projects, ids ...int64) (map[int64]client.Object, error) {
	rows, err := s.Stores.Pipelines.WithIDs(ctx, ids...)
	if err != nil {
		return nil, err
	}
	users := make([]database.User, len(rows))
	for n, p := range rows {
		users[n] = p.User
	}
	var r related
	if r.users, err = item.Users(ctx, s.Catalog, s.WebURL, users...); err != nil {
		return nil, err
	}
	all := map[int64]client.Object{}
	for _, p := range rows {
		project := in[p.In.UID]
		if project == nil {
			continue // it has moved
		}
		all[p.ID] = &v1alpha1.Pipeline{Spec: v1alpha1.PipelineSpec{
			ProjectRef: v1alpha1.ProjectReference{Name: project.Name}, Ref: p.Ref, SHA: p.SHA, Source: p.Source, Title: p.Name, User: r.username(p.User),
		}, Status: v1alpha1.PipelineStatus{
			ID: p.ID, IID: p.IID, State: string(p.Status), CreatedAt: metav1.NewTime(p.Created), UpdatedAt: metav1.NewTime(p.Updated),
			StartedAt: moment(p.Started), FinishedAt: moment(p.Finished),
			WebURL: fmt.Sprintf("%s/%s/-/pipelines/%d", s.WebURL, project.Status.FullPath, p.ID),
		}}
	}
	return all, nil
}

type jobs struct{ Options }

func (jobs) blank() client.Object { return &v1alpha1.Job{} }

func (s jobs) show(ctx context.Context, in projects, ids ...int64) (map[int64]client.Object, error) {
	rows, err := s.Stores.Pipelines.JobsWithIDs(ctx, ids...)
	if err != nil {
		return nil, err
	}
	users, of := make([]database.User, len(rows)), make([]int64, len(rows))
	for n, j := range rows {
		users[n], of[n] = j.User, j.PipelineID
	}
	var r related
	if r.users, err = item.Users(ctx, s.Catalog, s.WebURL, users...); err != nil {
		return nil, err
	}
	found, err := s.Stores.Pipelines.WithIDs(ctx, of...)
	if err != nil {
		return nil, err
	}
	numbers := map[int64]int64{}
	for _, p := range found {
		numbers[p.ID] = p.IID
	}
	all := map[int64]client.Object{}
	for _, j := range rows {
		project := in[j.In.UID]
		if project == nil || j.External {
			continue // it has moved, or no runner executes it
		}
		all[j.ID] = &v1alpha1.Job{Spec: v1alpha1.JobSpec{
			ProjectRef: v1alpha1.ProjectReference{Name: project.Name}, Pipeline: nameOf(project.Name, numbers[j.PipelineID]), Title: j.Name, Stage: j.Stage,
			Tags: j.Tags, User: r.username(j.User),
		}, Status: v1alpha1.JobStatus{
			ID: j.ID, State: string(j.Status), FailureReason: j.FailureReason, AllowFailure: j.AllowFailure, Retried: j.Retried,
			CreatedAt: metav1.NewTime(j.Created), StartedAt: moment(j.Started), FinishedAt: moment(j.Finished),
			WebURL: fmt.Sprintf("%s/%s/-/jobs/%d", s.WebURL, project.Status.FullPath, j.ID),
		}}
	}
	return all, nil
}

func pipelineColumns() []virtual.Column {
	type object = *v1alpha1.Pipeline
	return []virtual.Column{
		column("State", "State of the pipeline, such as running or success.", 0, func(p object) string { return p.Status.State }),
		column("Ref", "Branch or tag.", 0, func(p object) string { return p.Spec.Ref }),
		column("Source", "Event that created the pipeline.", 0, func(p object) string { return p.Spec.Source }),
		column("Title", "Value of workflow:name.", 1, func(p object) string { return p.Spec.Title }),
		column("SHA", "Commit.", 1, func(p object) string { return p.Spec.SHA }),
		column("User", "Username of the user with whose rights it runs.", 1, func(p object) string { return p.Spec.User }),
		column("Age", "Time since the creation.", 0, age[object]),
	}
}

func jobColumns() []virtual.Column {
	type object = *v1alpha1.Job
	return []virtual.Column{
		column("Title", "Name of the job in the configuration.", 0, func(j object) string { return j.Spec.Title }),
		column("State", "State of the job, such as running or success.", 0, func(j object) string { return j.Status.State }),
		column("Stage", "Stage of the pipeline.", 0, func(j object) string { return j.Spec.Stage }),
		column("Pipeline", "Name of the Pipeline.", 0, func(j object) string { return j.Spec.Pipeline }),
		column("Reason", "Reason of a failure.", 1, func(j object) string { return j.Status.FailureReason }),
		column("User", "Username of the user with whose rights it runs.", 1, func(j object) string { return j.Spec.User }),
		column("Age", "Time since the creation.", 0, age[object]),
	}
}
