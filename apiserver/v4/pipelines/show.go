package pipelines

import (
	"context"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

type (
	// Pipeline is a pipeline in lists and in jobs.
	Pipeline = entity.Pipeline
	// Detailed is "Pipeline (result of triggering)" of the second interface document.
	Detailed = entity.PipelineDetails
)

func (f *Family) show(in catalog.Scope, p pipeline.Pipeline) Pipeline {
	return entity.SummarizePipeline(p, in, f.WebURL)
}

// detail shows a pipeline of the project of a request.
func (f *Family) detail(ctx context.Context, s auth.Subject, p pipeline.Pipeline) (Detailed, error) {
	users, err := item.Users(ctx, f.Catalog, f.WebURL, p.User)
	if err != nil {
		return Detailed{}, err
	}
	sum, err := f.Activity.Pipelines.Summarize(ctx, p.ID)
	return entity.DescribePipeline(p, sum, users[p.User.UID], s.Scope, f.WebURL), err
}
