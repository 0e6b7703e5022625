package pipelines

import (
	"context"
	"slices"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

type listRequest struct {
	endpoint.Paging
	Scope         string                       `param:"scope" values:"running,pending,finished,branches,tags" doc:"Only pipelines that are running, pending or finished, or the newest of each branch or tag."`
	Status        string                       `param:"status" values:"created,waiting_for_resource,preparing,pending,running,success,failed,canceled,skipped,manual,scheduled" doc:"Only pipelines with this status."`
	Source        string                       `param:"source" example:"push" doc:"Only pipelines with this source. Child pipelines are listed only with parent_pipeline."`
	Ref           string                       `param:"ref" doc:"Only pipelines of the branch or tag with this name."`
	SHA           string                       `param:"sha" doc:"Only pipelines of this commit."`
	YAMLErrors    endpoint.Optional[bool]      `param:"yaml_errors" doc:"Only pipelines with mistakes in their configurations, or only others."`
	Name          string                       `param:"name" doc:"Only pipelines with this name."`
	Username      endpoint.Optional[string]    `param:"username" doc:"Only pipelines of the user with this username."`
	CreatedAfter  endpoint.Optional[time.Time] `param:"created_after" doc:"Only pipelines that were created at this time or later."`
	CreatedBefore endpoint.Optional[time.Time] `param:"created_before" doc:"Only pipelines that were created at this time or earlier."`
	UpdatedAfter  endpoint.Optional[time.Time] `param:"updated_after" doc:"Only pipelines that last changed at this time or later."`
	UpdatedBefore endpoint.Optional[time.Time] `param:"updated_before" doc:"Only pipelines that last changed at this time or earlier."`
	OrderBy       string                       `param:"order_by" values:"id,status,ref,updated_at,user_id" default:"id" doc:"Field that orders the list."`
	Sort          string                       `param:"sort" values:"asc,desc" default:"desc" doc:"Whether the order goes up or down."`
}

func (f *Family) list(ctx context.Context, s auth.Project, r *listRequest) (endpoint.List[Pipeline], error) {
	q := pipeline.Query{Project: s.Scope.Project.UID, Order: pipeline.Order(r.OrderBy), Ascending: r.Sort == "asc", Conditions: r.conditions(s)}
	by, err := item.By(ctx, f.Catalog, endpoint.Optional[int64]{}, r.Username, pipeline.By)
	if err != nil {
		return endpoint.List[Pipeline]{}, err
	}
	q.Conditions = append(q.Conditions, by...)
	return f.listed(ctx, s.Subject, r.Paging, q)
}

// listed returns a page of pipelines.
func (f *Family) listed(ctx context.Context, s auth.Subject, p endpoint.Paging, q pipeline.Query) (endpoint.List[Pipeline], error) {
	return endpoint.Counted(ctx, p, endpoint.Source[pipeline.Pipeline]{
		Rows: func(ctx context.Context, skip, most int) ([]pipeline.Pipeline, error) {
			return f.Activity.Pipelines.List(ctx, q, skip, most)
		},
		Count: func(ctx context.Context, most int) (n int, err error) {
			if q.Version, err = f.Activity.Revisions.Version(ctx, pipeline.Kind, q.Project); err != nil {
				return 0, err
			}
			return f.Activity.Pipelines.Count(ctx, q, most)
		},
	}, func(p pipeline.Pipeline) Pipeline { return f.show(s.Scope, p) })
}

// scopes are the statuses of pipelines by the values of scope.
var scopes = map[string][]pipeline.Status{
	"running": {pipeline.Running}, "pending": {pipeline.Pending}, "finished": {pipeline.Success, pipeline.Failed, pipeline.Canceled},
}

// conditions translates the filters, apart from the user.
func (r *listRequest) conditions(s auth.Project) (all []database.Condition) {
	switch some := scopes[r.Scope]; {
	case len(some) > 0:
		all = append(all, pipeline.In(some...))
	case r.Scope != "":
		all = append(all, pipeline.Newest(s.Scope.Project.UID, r.Scope == "tags"))
	}
	for _, f := range []struct {
		text string
		is   func(string) pipeline.Condition
	}{{r.Source, pipeline.From}, {r.Ref, pipeline.Of}, {r.SHA, pipeline.At}, {r.Name, pipeline.Named}} {
		if f.text != "" {
			all = append(all, f.is(f.text))
		}
	}
	if r.Source == "" {
		all = append(all, pipeline.Independent())
	}
	if r.Status != "" {
		all = append(all, pipeline.In(pipeline.Status(r.Status)))
	}
	if r.YAMLErrors.Set && !r.YAMLErrors.Null {
		all = append(all, item.Is(pipeline.Invalid(), r.YAMLErrors.Value))
	}
	return slices.Concat(all, item.When(r.CreatedAfter, pipeline.CreatedAt.Since), item.When(r.CreatedBefore, pipeline.CreatedAt.Until),
		item.When(r.UpdatedAfter, pipeline.UpdatedAt.Since), item.When(r.UpdatedBefore, pipeline.UpdatedAt.Until))
}
