package launch

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/ci"
	"github.com/forgeplane/forgeplane/internal/ci/commit"
	"github.com/forgeplane/forgeplane/internal/ci/config"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/pipeline"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/runner"
	"github.com/forgeplane/forgeplane/internal/variable"
)

// environmentURL is the only predefined variable whose value can have other variables.
const environmentURL = "CI_ENVIRONMENT_URL"

// Execution is a job that a runner is about to execute.
type Execution struct {
	In       catalog.Scope
	Pipeline pipeline.Pipeline
	// Job has its keywords.
	Job pipeline.Job
	// By is the user of the job, and Token the job token.
	By     auth.Caller
	Token  string
	Runner runner.Runner
	// Outputs are the variables of earlier jobs. A later variable takes precedence over an earlier one with the same key.
	Outputs []pipeline.Output
}

// Variable is a variable that a runner gets with a job.
type Variable struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	// Public says that the value is not a secret. The runner replaces Masked values in logs.
	Public bool `json:"public"`
	// File says that the job gets the path of a file with the value, and Raw that variables in the value are not expanded.
	File   bool `json:"file"`
	Masked bool `json:"masked"`
	Raw    bool `json:"raw"`
	// declared says that a Secret has the value.
	declared bool
}

// Variables returns the variables of a job, each key once. Variables of requests take precedence over declared ones, declared ones over the
// outputs of earlier jobs, outputs over variables of the configuration, and these over predefined ones.
func (l *Launcher) Variables(ctx context.Context, e Execution) ([]Variable, error) {
	all, err := l.predefined(ctx, e)
	if err != nil {
		return nil, err
	}
	declared, err := variable.New(l.Catalog, l.Namespace).For(ctx, l.Credentials, e.In, variable.Job{
		Protected: e.Pipeline.Protected, Environment: e.environment().Name,
	})
	if err != nil {
		return nil, err
	}
	given, err := l.Activity.Pipelines.VariablesOf(ctx, e.Job)
	if err != nil {
		return nil, err
	}
	all = append(all, l.secrets(e)...)
	for _, v := range e.Job.Spec.Variables {
		all = append(all, Variable{Key: v.Key, Value: v.Value, Public: true, Raw: v.Raw})
	}
	for _, o := range e.Outputs {
		all = append(all, Variable{Key: o.Key, Value: o.Value, Public: true, Raw: true})
	}
	for _, v := range declared {
		all = append(all, Variable{Key: v.Key, Value: v.Value, File: v.File, Masked: v.Masked, Raw: v.Raw, declared: true})
	}
	for _, v := range given {
		all = append(all, Variable{Key: v.Key, Value: v.Value, File: v.Type == pipeline.File})
	}
	last := map[string]int{}
	for i, v := range all {
		last[v.Key] = i
	}
	kept := make([]Variable, 0, len(last))
	for i, v := range all {
		if last[v.Key] == i {
			kept = append(kept, v)
		}
	}
	return kept, nil
}

// environment returns the environment of a job, or an empty one.
func (e Execution) environment() config.Environment {
	if e.Job.Spec.Environment == nil {
		return config.Environment{}
	}
	return *e.Job.Spec.Environment
}

// RepositoryURL returns the URL from which a job fetches its project. It has the job token.
func (l *Launcher) RepositoryURL(e Execution) string {
	u, err := url.Parse(l.WebURL)
	if err != nil {
		return ""
	}
	u.User = url.UserPassword(JobUser, e.Token)
	return u.JoinPath(e.In.Path() + ".git").String()
}

// JobUser is the username with which a job signs in to Git and to the container registry. The password is the job token.
const JobUser = "gitlab-ci-token"

// secrets are the predefined variables that contain the job token.
func (l *Launcher) secrets(e Execution) []Variable {
	all := []Variable{{Key: "CI_JOB_TOKEN", Value: e.Token, Masked: true, Raw: true}, {Key: "CI_REPOSITORY_URL", Value: l.RepositoryURL(e), Raw: true}}
	if l.HasImages(e) {
		all = append(all, Variable{Key: "CI_REGISTRY_PASSWORD", Value: e.Token, Masked: true, Raw: true})
	}
	return all
}

// HasImages reports whether the project of a job can have images.
func (l *Launcher) HasImages(e Execution) bool {
	return l.Images != nil && e.In.Project.Spec.Features.ContainerRegistry != v1alpha1.FeatureDisabled
}

// ofImages are the predefined variables about the container registry, apart from the password.
func (l *Launcher) ofImages(e Execution) []config.Variable {
	if !l.HasImages(e) {
		return nil
	}
	return []config.Variable{
		{Key: "CI_REGISTRY", Value: l.ImagesHost}, {Key: "CI_REGISTRY_IMAGE", Value: l.ImagesHost + "/" + registry.PathOf(e.In.Path(), "")},
		{Key: "CI_REGISTRY_USER", Value: JobUser},
	}
}

// predefined returns the predefined variables of a job, apart from secrets.
func (l *Launcher) predefined(ctx context.Context, e Execution) ([]Variable, error) {
	p := e.Pipeline
	repo, err := l.Repositories.Content(ctx, e.In.Project)
	if err != nil {
		return nil, err
	}
	head, err := repo.ReadCommit(ctx, p.SHA)
	if err != nil {
		return nil, err
	}
	def, err := refs.ReadHead(ctx, repo)
	if err != nil {
		return nil, err
	}
	of := &ci.Pipeline{Ref: p.Branch(), Tag: p.Tag, Source: p.Source, Project: e.In.Path(), Files: commit.New(repo, e.In.Path(), p.SHA, p.Before)}
	request := Request{In: e.In, By: e.By, Ref: p.Branch(), Tag: p.Tag, SHA: p.SHA, Before: p.Before, Source: p.Source}
	if request.MergeRequest, err = l.mergeRequest(ctx, p); err != nil {
		return nil, err
	}
	more, err := l.more(ctx, request, head)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(Predefined(of, e.In.RESTID(), def.Branch), more, l.ofPipeline(e), l.ofJob(e), l.ofImages(e), l.ofServer())
	shown := make([]Variable, len(all))
	for i, v := range all {
		shown[i] = Variable{Key: v.Key, Value: v.Value, Public: true, Raw: v.Key != environmentURL}
	}
	return shown, nil
}

func (l *Launcher) ofPipeline(e Execution) []config.Variable {
	p := e.Pipeline
	return []config.Variable{
		{Key: "CI_PIPELINE_ID", Value: fmt.Sprint(p.ID)}, {Key: "CI_PIPELINE_IID", Value: fmt.Sprint(p.IID)}, {Key: "CI_PIPELINE_NAME", Value: p.Name},
		{Key: "CI_PIPELINE_URL", Value: fmt.Sprintf("%s/%s/-/pipelines/%d", l.WebURL, e.In.Path(), p.ID)},
		{Key: "CI_PIPELINE_CREATED_AT", Value: p.Created.UTC().Format(time.RFC3339)}, {Key: "CI_COMMIT_REF_PROTECTED", Value: fmt.Sprint(p.Protected)},
	}
}

func (l *Launcher) ofJob(e Execution) []config.Variable {
	j, at := e.Job, e.environment()
	all := []config.Variable{
		{Key: "CI_JOB_ID", Value: fmt.Sprint(j.ID)}, {Key: "CI_JOB_NAME", Value: j.Name}, {Key: "CI_JOB_NAME_SLUG", Value: slug(j.Name)},
		{Key: "CI_JOB_STAGE", Value: j.Stage}, {Key: "CI_JOB_STATUS", Value: string(pipeline.Running)},
		{Key: "CI_JOB_URL", Value: fmt.Sprintf("%s/%s/-/jobs/%d", l.WebURL, e.In.Path(), j.ID)},
		{Key: "CI_RUNNER_ID", Value: fmt.Sprint(e.Runner.ID)}, {Key: "CI_RUNNER_DESCRIPTION", Value: e.Runner.Description},
		{Key: "CI_RUNNER_TAGS", Value: fmt.Sprintf("%q", e.Runner.Tags)},
		{Key: "CI_PROJECT_TITLE", Value: e.In.Project.Spec.Name}, {Key: "CI_PROJECT_PATH_SLUG", Value: slug(e.In.Path())},
		{Key: "CI_PROJECT_VISIBILITY", Value: strings.ToLower(string(catalog.Visibility(e.In.Project.Spec.Visibility, e.In.Groups)))}, {Key: "GITLAB_USER_NAME", Value: e.By.User.Spec.Name},
		{Key: "GITLAB_USER_EMAIL", Value: e.By.User.Spec.Email},
	}
	if j.When == "manual" {
		all = append(all, config.Variable{Key: "CI_JOB_MANUAL", Value: "true"})
	}
	if at.Name != "" {
		all = append(all, config.Variable{Key: "CI_ENVIRONMENT_NAME", Value: at.Name}, config.Variable{Key: "CI_ENVIRONMENT_SLUG", Value: slug(at.Name)},
			config.Variable{Key: "CI_ENVIRONMENT_ACTION", Value: at.Action}, config.Variable{Key: "CI_ENVIRONMENT_TIER", Value: at.Tier},
			config.Variable{Key: environmentURL, Value: at.URL})
	}
	return all
}

func (l *Launcher) ofServer() []config.Variable {
	all := []config.Variable{{Key: "CI_SERVER", Value: "yes"}, {Key: "CI_SERVER_NAME", Value: "Forgeplane"}, {Key: "CI_SERVER_VERSION", Value: l.Version}}
	u, err := url.Parse(l.WebURL)
	if err != nil {
		return all
	}
	port := u.Port()
	if port == "" && u.Scheme == "https" {
		port = "443"
	} else if port == "" {
		port = "80"
	}
	return append(all, config.Variable{Key: "CI_SERVER_HOST", Value: u.Hostname()}, config.Variable{Key: "CI_SERVER_PROTOCOL", Value: u.Scheme},
		config.Variable{Key: "CI_SERVER_PORT", Value: port})
}
