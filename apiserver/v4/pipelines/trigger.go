package pipelines

import (
	"context"
	"maps"
	"slices"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/launch"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// payloadKey is the key of the file variable with everything that a request for a pipeline has sent.
const payloadKey = "TRIGGER_PAYLOAD"

type triggerRequest struct {
	Token     string            `param:"token" example:"glptt-token" doc:"Trigger token of the project, or token of a running job, in the place of an access token. Required without a job token in the header JOB-TOKEN."`
	Variables map[string]string `param:"variables" doc:"Variables, which replace those of the configuration."`
	Payload   endpoint.Payload  `payload:"token"`
}

type triggerWithRef struct {
	triggerRequest
	Ref string `param:"ref" required:"" blank:"refuse" example:"main" doc:"Name of a branch or tag."`
}

type triggerOfRef struct {
	triggerRequest
	Ref string `param:"ref" doc:"Name of a branch or tag."`
}

func (f *Family) trigger(ctx context.Context, s auth.Project, r *triggerWithRef) (Detailed, error) {
	return f.triggered(ctx, s, r.Ref, r.triggerRequest)
}

func (f *Family) triggerRef(ctx context.Context, s auth.Project, r *triggerOfRef) (Detailed, error) {
	return f.triggered(ctx, s, r.Ref, r.triggerRequest)
}

// triggered creates a pipeline as the owner of the trigger token or the user of the job, who is the caller.
func (f *Family) triggered(ctx context.Context, s auth.Project, ref string, r triggerRequest) (Detailed, error) {
	given := make([]variable, 0, len(r.Variables))
	for _, key := range slices.Sorted(maps.Keys(r.Variables)) {
		given = append(given, variable{Key: key, Value: r.Variables[key], Type: string(pipeline.EnvVar)})
	}
	all, err := variables(given)
	if err != nil {
		return Detailed{}, err
	}
	if _, own := r.Variables[payloadKey]; !own {
		all = append(all, pipeline.Variable{Key: payloadKey, Value: string(r.Payload), Type: pipeline.File})
	}
	if s.Caller.Job != nil {
		return f.launch(ctx, s, launch.Request{Ref: ref, Source: launch.SourcePipeline, Variables: all, UpstreamJob: s.Caller.Job.ID})
	}
	return f.launch(ctx, s, launch.Request{Ref: ref, Source: launch.SourceTrigger, Variables: all})
}
