package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/artifact"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/ci"
	"github.com/forgeplane/forgeplane/internal/ci/config"
	"github.com/forgeplane/forgeplane/internal/ci/document"
	"github.com/forgeplane/forgeplane/internal/ci/expression"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// bridgeFailure is the failure reason of a job that cannot trigger a pipeline.
type bridgeFailure string

func (f bridgeFailure) Error() string { return string(f) }

// Bridge runs a task of pipeline.BridgeQueue: it creates the pipeline that a job triggers, with the rights of the user of the job, or gives the job the
// result of that pipeline, also after a retry of one of its jobs.
func (l *Launcher) Bridge(ctx context.Context, a job.Attempt, _ func(string)) error {
	id, err := strconv.ParseInt(a.Key, 10, 64)
	if err != nil {
		return fmt.Errorf("reading the id of a job: %w", err)
	}
	j, err := l.Activity.Pipelines.Bridge(ctx, id)
	switch {
	case err != nil:
	case j.Status == pipeline.Pending:
		err = l.cross(ctx, j)
	case j.Status == pipeline.Running:
		err = l.follow(ctx, j)
	case j.Spec.Trigger.Depend:
		err = l.again(ctx, j)
	}
	if errors.Is(err, pipeline.ErrNotFound) || errors.Is(err, pipeline.ErrTransition) || errors.Is(err, pipeline.ErrNotRetryable) {
		return nil // it has changed meanwhile
	}
	return err
}

// cross creates the pipeline that a job triggers.
func (l *Launcher) cross(ctx context.Context, j pipeline.Job) error {
	err := l.downstream(ctx, j)
	var failed bridgeFailure
	if errors.As(err, &failed) {
		_, err = l.Activity.Pipelines.Fail(ctx, j, pipeline.Failure{Reason: string(failed)})
		return err
	}
	if err != nil {
		return err
	}
	if j, err = l.Activity.Pipelines.Begin(ctx, j); err != nil {
		return err
	}
	return l.follow(ctx, j)
}

// follow ends a job that has triggered a pipeline. With trigger:strategy, it waits until the pipeline has ended, and has its result.
func (l *Launcher) follow(ctx context.Context, j pipeline.Job) error {
	full, err := l.Activity.Pipelines.Bridge(ctx, j.ID)
	if err != nil {
		return err
	}
	made, err := l.Activity.Pipelines.Downstream(ctx, j.ID)
	if err != nil {
		return err
	}
	p, exists := made[j.ID]
	switch {
	case exists && !full.Spec.Trigger.Depend || p.Status == pipeline.Success:
		_, err = l.Activity.Pipelines.Succeed(ctx, j)
	case !exists || p.Status.Ended():
		_, err = l.Activity.Pipelines.Fail(ctx, j, pipeline.Failure{Reason: pipeline.DownstreamFailed})
	}
	return err
}

// again makes a job that has ended follow its pipeline again, if that runs again or has another result now.
func (l *Launcher) again(ctx context.Context, j pipeline.Job) error {
	made, err := l.Activity.Pipelines.Downstream(ctx, j.ID)
	p, exists := made[j.ID]
	if err != nil || !exists || p.Status.Ended() && (p.Status == pipeline.Success) == (j.Status == pipeline.Success) {
		return err
	}
	if j, err = l.Activity.Pipelines.Resume(ctx, j); err != nil {
		return err
	}
	return l.follow(ctx, j)
}

// downstream creates the pipeline that a job triggers, unless it exists. The error is a bridgeFailure if it cannot exist.
func (l *Launcher) downstream(ctx context.Context, j pipeline.Job) error {
	parent, err := l.Activity.Pipelines.Get(ctx, j.In.UID, j.PipelineID)
	if err != nil {
		return err
	}
	in, err := l.Guard.Project(ctx, fmt.Sprint(j.In.ID))
	if err == nil && in.Project.UID != j.In.UID {
		err = catalog.ErrNotFound
	}
	var by auth.Caller
	if err == nil {
		by, err = l.Guard.Known(ctx, j.User)
	}
	if errors.Is(err, catalog.ErrNotFound) || errors.As(err, new(*endpoint.Error)) {
		return bridgeFailure(pipeline.ForbiddenDownstream)
	} else if err != nil {
		return err
	}
	e := Execution{In: in, Pipeline: parent, Job: j, By: by}
	r := Request{In: in, By: by, Ref: parent.Branch(), Tag: parent.Tag, SHA: parent.SHA, Before: parent.Before, Source: SourceParent}
	if t := j.Spec.Trigger; t.Project != "" {
		err = l.elsewhere(ctx, t, &r)
	} else if r.Configuration, err = l.child(ctx, e); err == nil {
		r.MergeRequest, err = l.mergeRequest(ctx, parent)
	}
	if err != nil {
		return err
	}
	if may, err := l.Permitted(ctx, r); err != nil {
		return err
	} else if !may {
		return bridgeFailure(pipeline.ForbiddenDownstream)
	}
	r.UpstreamJob, r.Origin = j.ID, fmt.Sprintf("bridge/%d", j.ID)
	if r.Variables, err = l.forwarded(ctx, e); err != nil {
		return err
	}
	_, err = l.from(ctx, r, l.launchOrFail)
	var mistakes *ConfigurationError
	switch {
	case errors.As(err, &mistakes), errors.Is(err, ErrNoConfiguration), errors.Is(err, ci.ErrFiltered), errors.Is(err, pipeline.ErrHierarchy), ref.Missing(err):
		return bridgeFailure(pipeline.NoDownstream)
	case errors.Is(err, pipeline.ErrExists): // an attempt before has created it
		return nil
	default:
		return err
	}
}

// elsewhere completes the request for a pipeline of another project.
func (l *Launcher) elsewhere(ctx context.Context, t *config.Trigger, r *Request) error {
	in, err := l.Guard.Project(ctx, t.Project)
	var access auth.Access
	if err == nil {
		access, err = l.Guard.Visible(ctx, r.By, in)
	}
	if errors.Is(err, catalog.ErrNotFound) {
		return bridgeFailure(pipeline.NoDownstreamProject)
	} else if err != nil {
		return err
	}
	if !access.RunsPipelines() {
		return bridgeFailure(pipeline.ForbiddenDownstream)
	}
	*r = Request{In: in, By: r.By, Ref: t.Branch, Source: SourcePipeline}
	if r.Ref == "" {
		repo, err := l.Repositories.Content(ctx, in.Project)
		if err == nil {
			var head refs.Head
			head, err = refs.ReadHead(ctx, repo)
			r.Ref = head.Branch
		}
		if ref.Missing(err) {
			return bridgeFailure(pipeline.NoDownstream)
		} else if err != nil {
			return err
		}
	}
	if r.SHA, r.Tag, err = l.Resolve(ctx, in.Project, r.Ref); ref.Missing(err) {
		return bridgeFailure(pipeline.NoDownstream)
	}
	return err
}

// forwarded returns the variables that a job hands to the pipeline that it triggers.
func (l *Launcher) forwarded(ctx context.Context, e Execution) (all []pipeline.Variable, err error) {
	t := e.Job.Spec.Trigger
	given := map[string]bool{}
	if t.ForwardPipelines {
		if all, err = l.Activity.Pipelines.VariablesOf(ctx, e.Job); err != nil {
			return nil, err
		}
		for _, v := range all {
			given[v.Key] = true
		}
	}
	if !t.ForwardVariables {
		return all, nil
	}
	lookup, err := l.lookup(ctx, e)
	if err != nil {
		return nil, err
	}
	for _, v := range e.Job.Spec.Variables {
		if given[v.Key] {
			continue
		}
		value := v.Value
		if !v.Raw {
			value = expression.Expand(value, lookup)
		}
		all = append(all, pipeline.Variable{Key: v.Key, Value: value, Type: pipeline.EnvVar})
	}
	return all, nil
}

// lookup returns the variables to which those can refer that a job hands on. A reference to a declared variable remains, because its value must not leave
// its Secret: the variable of that name in the downstream pipeline takes its place.
func (l *Launcher) lookup(ctx context.Context, e Execution) (expression.Lookup, error) {
	before, err := l.Activity.Pipelines.Providers(ctx, e.Job)
	if err != nil {
		return nil, err
	}
	if e.Outputs, err = l.Activity.Pipelines.Outputs(ctx, before...); err != nil {
		return nil, err
	}
	all, err := l.Variables(ctx, e)
	if err != nil {
		return nil, err
	}
	values := make(map[string]Variable, len(all))
	for _, v := range all {
		if v.declared {
			v.Value, v.Raw = "${"+v.Key+"}", true
		}
		values[v.Key] = v
	}
	return func(name string) (value string, raw, ok bool) {
		v, ok := values[name]
		return v.Value, v.Raw, ok
	}, nil
}

// child returns the configuration of a child pipeline: one that includes the files that the job names, or the artifact of an earlier job.
func (l *Launcher) child(ctx context.Context, e Execution) ([]byte, error) {
	files := e.Job.Spec.Trigger.Include
	if len(files) == 1 && files[0].Artifact != "" {
		return l.generated(ctx, e, files[0])
	}
	var include []map[string]string
	for _, f := range files {
		switch {
		case f.Artifact != "": // it would have to be merged with the others
			return nil, bridgeFailure(pipeline.NoDownstream)
		case f.Local != "":
			include = append(include, map[string]string{"local": f.Local})
		case f.Ref != "":
			include = append(include, map[string]string{"project": f.Project, "file": f.File, "ref": f.Ref})
		default:
			include = append(include, map[string]string{"project": f.Project, "file": f.File})
		}
	}
	content, err := yaml.Marshal(map[string]any{"include": include})
	if err != nil {
		return nil, fmt.Errorf("writing the configuration of a child pipeline: %w", err)
	}
	return content, nil
}

// generated returns a configuration that an earlier job of the pipeline has left in its archive.
func (l *Launcher) generated(ctx context.Context, e Execution, c config.Child) ([]byte, error) {
	jobs, err := l.Activity.Pipelines.Current(ctx, e.Pipeline)
	if err != nil {
		return nil, err
	}
	for _, other := range jobs {
		if other.Name != c.Job {
			continue
		}
		stored, err := l.Activity.Pipelines.Artifacts(ctx, other.ID)
		if err != nil {
			return nil, err
		}
		for _, a := range stored[other.ID] {
			if a.Type == pipeline.Archive {
				return l.unpacked(ctx, a, c.Artifact)
			}
		}
	}
	return nil, bridgeFailure(pipeline.NoDownstream)
}

// unpacked returns a file of an archive that is small enough for a configuration.
func (l *Launcher) unpacked(ctx context.Context, archive pipeline.Artifact, name string) ([]byte, error) {
	f, err := l.Artifacts.Find(ctx, archive, name)
	if errors.Is(err, artifact.ErrNoFile) || errors.As(err, new(artifact.Unreadable)) || err == nil && f.Size > document.MaxBytes {
		return nil, bridgeFailure(pipeline.NoDownstream)
	}
	if err != nil {
		return nil, err
	}
	var content bytes.Buffer
	err = f.Write(ctx, &content)
	return content.Bytes(), err
}
