package launch

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/forgeplane/forgeplane/internal/ci"
	"github.com/forgeplane/forgeplane/internal/ci/config"
	"github.com/forgeplane/forgeplane/internal/ci/document"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// maxSpecs is the maximum size of the keywords of all jobs of a pipeline in bytes, which the database stores for each instance of a parallel job.
const maxSpecs = 8 << 20

// rows returns the jobs of a plan. The error is a *ConfigurationError if they are too large.
func rows(plan *ci.Plan) ([]*pipeline.Job, error) {
	all, size := make([]*pipeline.Job, len(plan.Jobs)), 0
	for i, j := range plan.Jobs {
		spec := specOf(j)
		text, err := json.Marshal(spec)
		if err != nil {
			return nil, fmt.Errorf("writing the keywords of job %q: %w", j.Name, err)
		}
		if size += len(text); size > maxSpecs {
			return nil, &ConfigurationError{document.Problems{{
				File: j.File, Line: j.Line, Key: j.Of, Text: fmt.Sprintf("the jobs of the pipeline are larger than %d bytes, with all instances of parallel jobs", maxSpecs),
			}}}
		}
		all[i] = &pipeline.Job{
			Name: j.Name, Stage: j.Stage, StageIndex: slices.Index(plan.Stages, j.Stage), Bridge: j.Trigger != nil, When: j.When, StartIn: j.StartIn,
			AllowFailure: j.AllowFailure.Always, Interruptible: j.Interruptible, ResourceGroup: j.ResourceGroup,
			HasNeeds: j.HasNeeds, Needs: []pipeline.Need{}, Tags: append([]string{}, j.Tags...), Spec: spec,
		}
		if e := j.Environment; e != nil && (e.Action == "" || e.Action == "start") {
			all[i].Environment, all[i].Tier = e.Name, tierOf(*e)
		}
		for _, n := range j.Needs {
			all[i].Needs = append(all[i].Needs, pipeline.Need{Job: n.Job, Artifacts: n.Artifacts})
		}
	}
	return all, nil
}

// specOf returns the keywords of a job that matter while it runs.
func specOf(j *ci.Job) *config.Job {
	spec := j.Job
	spec.Rules, spec.Only, spec.Except, spec.Needs, spec.Parallel, spec.Matrix = nil, nil, nil, nil, 0, nil
	if spec.Dependencies = nil; j.HasDependencies {
		spec.Dependencies = append([]string{}, j.Dependencies...)
	}
	return &spec
}
