package runnerjobs

import (
	"context"
	"fmt"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/launch"
	"github.com/forgeplane/forgeplane/internal/ci/config"
)

const (
	// defaultTimeout is the time that a job without timeout has.
	defaultTimeout = time.Hour
	// depth is the number of commits that a runner fetches unless the variable GIT_DEPTH says otherwise.
	depth = 20
)

// Job is a job as runners get it.
type Job struct {
	ID            int64             `json:"id"`
	Token         string            `json:"token" doc:"The job token."`
	AllowGitFetch bool              `json:"allow_git_fetch"`
	Info          JobInfo           `json:"job_info"`
	Git           GitInfo           `json:"git_info"`
	Runner        RunnerInfo        `json:"runner_info"`
	Variables     []launch.Variable `json:"variables"`
	Steps         []Step            `json:"steps"`
	Hooks         []Hook            `json:"hooks"`
	Image         *Image            `json:"image,omitempty"`
	Services      []Image           `json:"services"`
	Artifacts     []Artifact        `json:"artifacts" doc:"The files that the runner uploads when the job ends."`
	Cache         []Cache           `json:"cache"`
	Credentials   []Credential      `json:"credentials" doc:"The passwords with which the runner pulls images."`
	Dependencies  []Dependency      `json:"dependencies" doc:"The jobs whose archives the runner downloads before the job begins."`
	Features      Features          `json:"features"`
}

// Credential is a username and a password of a runner.
type Credential struct {
	Type     string `json:"type" example:"registry"`
	URL      string `json:"url" doc:"Host of the registry."`
	Username string `json:"username"`
	Password string `json:"password" doc:"The job token."`
}

// JobInfo describes a job.
type JobInfo struct {
	ID          int64   `json:"id"`
	Name        string  `json:"name"`
	Stage       string  `json:"stage"`
	ProjectID   int64   `json:"project_id"`
	ProjectName string  `json:"project_name"`
	Queued      float64 `json:"time_in_queue_seconds"`
}

// GitInfo says what a runner fetches.
type GitInfo struct {
	RepoURL   string   `json:"repo_url"`
	Ref       string   `json:"ref"`
	SHA       string   `json:"sha"`
	BeforeSHA string   `json:"before_sha"`
	RefType   string   `json:"ref_type" example:"branch"`
	Refspecs  []string `json:"refspecs"`
	Depth     int      `json:"depth"`
	Format    string   `json:"repo_object_format" example:"sha1"`
}

// RunnerInfo has the limits of an execution.
type RunnerInfo struct {
	Timeout int64 `json:"timeout" doc:"Seconds."`
}

// Step is a script.
type Step struct {
	Name         string   `json:"name" example:"script"`
	Script       []string `json:"script"`
	Timeout      int64    `json:"timeout" doc:"Seconds."`
	When         string   `json:"when" example:"on_success"`
	AllowFailure bool     `json:"allow_failure"`
}

// Hook is a script at a point of the execution.
type Hook struct {
	Name   string   `json:"name" example:"pre_get_sources_script"`
	Script []string `json:"script"`
}

// Image is the image of a job, or of a service.
type Image struct {
	Name         string            `json:"name"`
	Alias        string            `json:"alias,omitempty"`
	Entrypoint   []string          `json:"entrypoint,omitempty"`
	Command      []string          `json:"command,omitempty"`
	PullPolicies []string          `json:"pull_policy,omitempty"`
	Variables    []launch.Variable `json:"variables,omitempty"`
	Options      *ImageOptions     `json:"executor_opts,omitempty"`
}

// ImageOptions are options of an image for container engines.
type ImageOptions struct {
	Docker DockerOptions `json:"docker"`
}

// DockerOptions are options of an image for Docker.
type DockerOptions struct {
	Platform string `json:"platform,omitempty"`
	User     string `json:"user,omitempty"`
}

// Cache is a cache of a job.
type Cache struct {
	Key          string   `json:"key"`
	Untracked    bool     `json:"untracked"`
	Unprotect    bool     `json:"unprotect"`
	Policy       string   `json:"policy"`
	Paths        []string `json:"paths"`
	When         string   `json:"when"`
	FallbackKeys []string `json:"fallback_keys"`
}

// Features are the abilities of the server.
type Features struct {
	TraceSections  bool     `json:"trace_sections"`
	FailureReasons []string `json:"failure_reasons"`
}

// failureReasons are the failure reasons that runners can report.
var failureReasons = []string{
	"unknown_failure", "script_failure", "runner_system_failure", "job_execution_timeout", "image_pull_failure", "runner_unsupported", "job_canceled",
	"configuration_error",
}

// show returns a job as its runner gets it.
func (f *Family) show(ctx context.Context, e launch.Execution) (*Job, error) {
	before, err := f.dependencies(ctx, &e)
	if err != nil {
		return nil, err
	}
	variables, err := f.launcher.Variables(ctx, e)
	if err != nil {
		return nil, err
	}
	caches, err := f.caches(ctx, e)
	if err != nil {
		return nil, err
	}
	j, p, spec := e.Job, e.Pipeline, e.Job.Spec
	timeout := spec.Timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	if most := e.Runner.MaximumTimeout; most > 0 {
		timeout = min(timeout, most)
	}
	shown := &Job{
		ID: j.ID, Token: e.Token, AllowGitFetch: true, Variables: variables, Runner: RunnerInfo{int64(timeout.Seconds())},
		Info: JobInfo{ID: j.ID, Name: j.Name, Stage: j.Stage, ProjectID: e.In.RESTID(), ProjectName: e.In.Project.Spec.Path},
		Git:  f.git(e), Steps: steps(spec, timeout), Hooks: []Hook{}, Image: image(spec.Image), Services: []Image{}, Cache: caches,
		Artifacts: artifacts(spec.Artifacts), Credentials: f.credentials(e), Dependencies: before, Features: Features{true, failureReasons},
	}
	if len(spec.PreGetSources) > 0 {
		shown.Hooks = append(shown.Hooks, Hook{"pre_get_sources_script", spec.PreGetSources})
	}
	for i := range spec.Services {
		shown.Services = append(shown.Services, *image(&spec.Services[i]))
	}
	if shown.Git.BeforeSHA = p.Before; p.Before == "" {
		shown.Git.BeforeSHA = fmt.Sprintf("%0*d", len(p.SHA), 0)
	}
	return shown, nil
}

// credentials returns the credentials of the container registry, if the project of a job can have images.
func (f *Family) credentials(e launch.Execution) []Credential {
	if !f.launcher.HasImages(e) {
		return []Credential{}
	}
	return []Credential{{"registry", f.ImagesHost, launch.JobUser, e.Token}}
}

// git says what the runner of a job fetches: the commit of the pipeline, even if the branch has moved on, and the branch or tag. A merge request can
// outlive its source branch.
func (f *Family) git(e launch.Execution) GitInfo {
	p := e.Pipeline
	kind, refspecs := "branch", []string{fmt.Sprintf("+%s:refs/pipelines/%d", p.SHA, p.ID)}
	switch {
	case p.Tag:
		kind, refspecs = "tag", append(refspecs, fmt.Sprintf("+refs/tags/%s:refs/tags/%s", p.Ref, p.Ref))
	case p.MergeRequest == 0:
		refspecs = append(refspecs, fmt.Sprintf("+refs/heads/%s:refs/remotes/origin/%[1]s", p.Ref))
	}
	format := "sha1"
	if len(p.SHA) > 40 {
		format = "sha256"
	}
	return GitInfo{
		RepoURL: f.launcher.RepositoryURL(e), Ref: p.Branch(), SHA: p.SHA, RefType: kind, Depth: depth, Format: format,
		Refspecs: refspecs,
	}
}

// steps returns the scripts of a job.
func steps(spec *config.Job, timeout time.Duration) []Step {
	all := []Step{{Name: "script", Script: append(append([]string{}, spec.BeforeScript...), spec.Script...), Timeout: int64(timeout.Seconds()), When: "on_success"}}
	if len(spec.AfterScript) > 0 {
		all = append(all, Step{Name: "after_script", Script: spec.AfterScript, Timeout: int64(timeout.Seconds()), When: "always", AllowFailure: true})
	}
	return all
}

// image returns an image as runners get it, or nil.
func image(i *config.Image) *Image {
	if i == nil {
		return nil
	}
	shown := &Image{Name: i.Name, Alias: i.Alias, Entrypoint: i.Entrypoint, Command: i.Command, PullPolicies: i.PullPolicies}
	for _, v := range i.Variables {
		shown.Variables = append(shown.Variables, launch.Variable{Key: v.Key, Value: v.Value, Public: true, Raw: v.Raw})
	}
	if i.Platform != "" || i.User != "" {
		shown.Options = &ImageOptions{DockerOptions{i.Platform, i.User}}
	}
	return shown
}
