package cilint

import (
	"slices"

	"github.com/forgeplane/forgeplane/internal/ci"
	"github.com/forgeplane/forgeplane/internal/ci/config"
	"github.com/forgeplane/forgeplane/internal/ci/include"
)

// Result is the result of a check.
type Result struct {
	Valid      bool      `json:"valid"`
	Errors     []string  `json:"errors"`
	Warnings   []string  `json:"warnings"`
	MergedYAML *string   `json:"merged_yaml" doc:"The configuration with all files merged, and extends and references expanded; null if it could not be read."`
	Includes   []Include `json:"includes"`
	Jobs       *[]Job    `json:"jobs,omitempty" doc:"If requested."`
}

// Include is an included file.
type Include struct {
	Type           string       `json:"type" example:"local" doc:"local, or file for a file of another project."`
	Location       string       `json:"location" example:"ci/build.yml"`
	Blob           string       `json:"blob"`
	Raw            string       `json:"raw"`
	Extra          IncludeExtra `json:"extra"`
	ContextProject string       `json:"context_project" doc:"The project with the file that includes this one."`
	ContextSHA     string       `json:"context_sha"`
}

// IncludeExtra says which project a file is from.
type IncludeExtra struct {
	Project string `json:"project,omitempty"`
	Ref     string `json:"ref,omitempty"`
}

// Job is a job of the configuration, or of the pipeline of a dry run.
type Job struct {
	Name         string   `json:"name"`
	Stage        string   `json:"stage"`
	BeforeScript []string `json:"before_script"`
	Script       []string `json:"script"`
	AfterScript  []string `json:"after_script"`
	TagList      []string `json:"tag_list"`
	Only         *Filter  `json:"only" doc:"null with rules of the job or the workflow."`
	Except       *Filter  `json:"except"`
	Environment  *string  `json:"environment" doc:"The name of the environment."`
	When         string   `json:"when"`
	AllowFailure bool     `json:"allow_failure"`
	Needs        *[]Need  `json:"needs" doc:"null if the job waits for the earlier stages."`
}

// Filter is the value of only or except.
type Filter struct {
	Refs      []string `json:"refs,omitempty"`
	Variables []string `json:"variables,omitempty"`
	Changes   []string `json:"changes,omitempty"`
}

// Need is a job that another one waits for.
type Need struct {
	Name      string `json:"name"`
	Artifacts bool   `json:"artifacts"`
	Optional  bool   `json:"optional"`
}

func (l *lint) includes(all []include.File) []Include {
	shown := make([]Include, len(all))
	for i, f := range all {
		of := l.WebURL + "/" + f.From.Project() + "/-/"
		at := "/" + f.From.Commit() + "/" + f.Path
		shown[i] = Include{
			Type: "local", Location: f.Path, Blob: of + "blob" + at, Raw: of + "raw" + at,
			ContextProject: l.subject.Scope.Path(),
		}
		if f.By != nil {
			shown[i].ContextProject, shown[i].ContextSHA = f.By.Project(), f.By.Commit()
		}
		if f.Other {
			shown[i].Type, shown[i].Extra = "file", IncludeExtra{Project: f.From.Project(), Ref: f.Ref}
		}
	}
	return shown
}

// declaredJobs returns all jobs of a configuration, by stage.
func declaredJobs(c *config.Config) []Job {
	sorted := slices.Clone(c.Jobs)
	slices.SortStableFunc(sorted, func(a, b *config.Job) int { return slices.Index(c.Stages, a.Stage) - slices.Index(c.Stages, b.Stage) })
	all := make([]Job, len(sorted))
	for i, j := range sorted {
		all[i] = newJob(j)
		if j.Needs != nil {
			needs := make([]Need, len(j.Needs))
			for n, need := range j.Needs {
				needs[n] = Need{need.Job, need.Artifacts, need.Optional}
			}
			all[i].Needs = &needs
		}
	}
	return all
}

// plannedJobs returns the jobs of a pipeline.
func plannedJobs(p *ci.Plan) []Job {
	all := make([]Job, len(p.Jobs))
	for i, j := range p.Jobs {
		all[i] = newJob(&j.Job)
		if j.HasNeeds {
			needs := make([]Need, len(j.Needs))
			for n, need := range j.Needs {
				needs[n] = Need{Name: need.Job, Artifacts: need.Artifacts}
			}
			all[i].Needs = &needs
		}
	}
	return all
}

// newJob shows the keywords of a job.
func newJob(j *config.Job) Job {
	shown := Job{
		Name: j.Name, Stage: j.Stage, BeforeScript: list(j.BeforeScript), Script: list(j.Script), AfterScript: list(j.AfterScript),
		TagList: list(j.Tags), Only: newFilter(j.Only), Except: newFilter(j.Except), When: j.When, AllowFailure: j.AllowFailure.Always,
	}
	if shown.When == "" {
		shown.When = "on_success"
	}
	if j.Environment != nil {
		shown.Environment = &j.Environment.Name
	}
	return shown
}

func newFilter(f *config.Filter) *Filter {
	if f == nil {
		return nil
	}
	shown := &Filter{Refs: f.RefTexts, Variables: f.VariableTexts}
	if f.Changes != nil {
		shown.Changes = f.Changes.Paths
	}
	return shown
}

// list returns a list that is never nil.
func list(texts []string) []string {
	if texts == nil {
		return []string{}
	}
	return texts
}

// size returns about how many bytes a job takes in the answer.
func (j *Job) size() (size int) {
	lists := [][]string{{j.Name, j.Stage}, j.BeforeScript, j.Script, j.AfterScript, j.TagList}
	for _, f := range []*Filter{j.Only, j.Except} {
		if f != nil {
			lists = append(lists, f.Refs, f.Variables, f.Changes)
		}
	}
	if j.Needs != nil {
		for _, n := range *j.Needs {
			size += len(n.Name) + perNeed
		}
	}
	for _, texts := range lists {
		for _, text := range texts {
			size += len(text) + perText
		}
	}
	return size
}

// perText and perNeed are the sizes of a text and a need in an answer, beside the text and the name.
const perText, perNeed = 4, 50
