package ci

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/forgeplane/forgeplane/internal/ci/condition"
	"github.com/forgeplane/forgeplane/internal/ci/config"
	"github.com/forgeplane/forgeplane/internal/ci/document"
)

const (
	// maxPlanned is the maximum number of jobs of a pipeline, with all instances of parallel jobs. maxConsidered is the maximum number before
	// the rules choose, and maxVariables that of the variables of these jobs.
	maxPlanned, maxConsidered, maxVariables = 2000, 10_000, 500_000
	// maxNeeded is the maximum number of jobs that a job needs, with all instances.
	maxNeeded = 250
	// maxName and maxPath are the maximum sizes of keywords with their variables expanded, in bytes.
	maxName, maxPath = 255, 1024
)

// Plan has the jobs and the variables of a pipeline.
type Plan struct {
	Name       string
	AutoCancel config.AutoCancel
	// Variables are the variables of the pipeline that the configuration declares.
	Variables []config.Variable
	// Stages are the stages that have jobs, in order.
	Stages []string
	// Jobs are the jobs by stage, and in the order of the configuration.
	Jobs []*Job
}

// Job is a job of a pipeline. Its keywords have the values that the rules chose: When is never empty, and Rules, Only, Except, Parallel and
// Matrix are decided.
type Job struct {
	config.Job
	// Of is the name of the job in the configuration, from which that of an instance of a parallel job differs. Index and Total count from 1;
	// Total is 0 if the job is not parallel.
	Of           string
	Index, Total int
	// Needs are the jobs that the job waits for, if HasNeeds. Otherwise it waits for the earlier stages.
	Needs    []Need
	HasNeeds bool
	// Dependencies are the jobs whose artifacts the job gets, if HasDependencies. Otherwise, the job gets the artifacts of its needs, or of all jobs of earlier stages.
	Dependencies    []string
	HasDependencies bool
}

// Need is a job of the pipeline that another one waits for.
type Need struct {
	Job       string
	Artifacts bool
}

// ErrFiltered says that the rules leave no pipeline.
var ErrFiltered = errors.New("Pipeline will not run for the selected trigger. The rules configuration prevented any jobs from being added to the pipeline.") //nolint:revive // clients know the text

// Plan returns the jobs of the pipeline. The error is ErrFiltered, document.Problems, or a failure to read files.
func (p *Pipeline) Plan(ctx context.Context, c *config.Config) (*Plan, error) {
	s := &selector{Pipeline: p, config: c, conditions: p.conditions(), matched: map[config.Ref]bool{}, needed: map[*config.Need][]Need{}}
	plan, err := s.plan(ctx)
	if condition.Mistake(err) { // in the rules of the workflow
		at := c.WorkflowPlace
		return nil, document.Problems{{File: at.File, Line: at.Line, Key: "workflow", Text: err.Error()}}
	}
	return plan, err
}

// selector selects the jobs of one pipeline.
type selector struct {
	*Pipeline
	config     *config.Config
	conditions *condition.Context
	// globals are the variables of the pipeline that the configuration declares.
	globals []config.Variable
	// matched remembers which refs of only and except match, and needed the instances that a need names.
	matched  map[config.Ref]bool
	needed   map[*config.Need][]Need
	problems document.Problems
}

func (s *selector) plan(ctx context.Context) (*Plan, error) {
	plan := &Plan{AutoCancel: s.config.AutoCancel}
	s.globals = s.config.Variables
	if err := s.workflow(ctx, plan); err != nil {
		return nil, err
	}
	plan.Variables = s.globals
	if plan.Name = newScope(s.Predefined, s.globals, s.Variables).expand(s.config.Name); len(plan.Name) > maxName {
		s.problems.Add(s.config.WorkflowPlace.File, s.config.WorkflowPlace.Line, "workflow:name", "is longer than %d bytes with its variables", maxName)
	}
	var err error
	if plan.Jobs, err = s.jobs(ctx); err != nil {
		return nil, err
	}
	s.order(plan.Jobs)
	for _, j := range plan.Jobs {
		if s.expand(j); ctx.Err() != nil {
			return nil, fmt.Errorf("expanding the variables of a pipeline: %w", ctx.Err())
		}
	}
	if len(s.problems) > 0 {
		return nil, s.problems
	}
	for _, j := range plan.Jobs {
		if !slices.Contains(plan.Stages, j.Stage) {
			plan.Stages = append(plan.Stages, j.Stage)
		}
	}
	if !slices.ContainsFunc(plan.Stages, func(name string) bool { return name != config.First && name != config.Last }) {
		return nil, ErrFiltered
	}
	return plan, nil
}

// workflow decides whether there is a pipeline.
func (s *selector) workflow(ctx context.Context, plan *Plan) error {
	if s.config.Workflow == nil {
		return nil
	}
	rule, holds, err := s.conditions.First(ctx, s.config.Workflow, newScope(s.Predefined, s.globals, s.Variables).lookup)
	if err != nil {
		return err
	}
	if !holds || rule.When == "never" {
		return ErrFiltered
	}
	s.globals = merge(s.globals, rule.Variables)
	if rule.AutoCancel.OnNewCommit != "" {
		plan.AutoCancel.OnNewCommit = rule.AutoCancel.OnNewCommit
	}
	if rule.AutoCancel.OnJobFailure != "" {
		plan.AutoCancel.OnJobFailure = rule.AutoCancel.OnJobFailure
	}
	return nil
}

// jobs returns the jobs and instances that are in the pipeline. Each instance has its own variables, so rules can choose some of them only.
func (s *selector) jobs(ctx context.Context) (chosen []*Job, err error) {
	considered, variables := 0, 0
	for _, of := range s.config.Jobs {
		instances := s.instances(of)
		for _, job := range instances {
			ok, err := s.choose(ctx, job)
			if condition.Mistake(err) {
				s.problems.Add(of.File, of.Line, of.Name, "%v", err)
				return nil, s.problems
			} else if err != nil {
				return nil, err
			}
			if variables += len(job.Variables); ok {
				chosen = append(chosen, job)
			}
		}
		switch considered += len(instances); {
		case considered > maxConsidered:
			return nil, s.tooMany(of, "the configuration has more than %d jobs, with all instances", maxConsidered)
		case variables > maxVariables:
			return nil, s.tooMany(of, "the jobs have more than %d variables, with all instances", maxVariables)
		case len(chosen) > maxPlanned:
			return nil, s.tooMany(of, "the pipeline has more than %d jobs", maxPlanned)
		case ctx.Err() != nil:
			return nil, fmt.Errorf("choosing the jobs of a pipeline: %w", ctx.Err())
		}
	}
	return chosen, nil
}

func (s *selector) tooMany(of *config.Job, text string, most int) error {
	s.problems.Add(of.File, of.Line, of.Name, text, most)
	return s.problems
}

// order sorts jobs by stage, and resolves what they need.
func (s *selector) order(jobs []*Job) {
	slices.SortStableFunc(jobs, func(a, b *Job) int {
		return slices.Index(s.config.Stages, a.Stage) - slices.Index(s.config.Stages, b.Stage)
	})
	of, named := map[string][]*Job{}, make(map[string]*Job, len(jobs))
	for _, j := range jobs {
		if named[j.Name] != nil {
			s.problems.Add(j.File, j.Line, j.Of, "there is another job with the name %q", j.Name)
		}
		of[j.Of] = append(of[j.Of], j)
		named[j.Name] = j
	}
	for _, j := range jobs {
		s.resolve(j, of)
	}
	// The needs of rules can make a circle that the configuration does not have.
	needs := func(j *Job) []*Job {
		needed := make([]*Job, len(j.Needs))
		for i, need := range j.Needs {
			needed[i] = named[need.Job]
		}
		return needed
	}
	config.Circles(jobs, needs, func(j *Job, _ int) {
		s.problems.Add(j.File, j.Line, document.Join(j.Of, "needs"), "the jobs need each other in a circle")
	})
}

// resolve replaces the needs and dependencies of a job by instances in the pipeline.
func (s *selector) resolve(j *Job, of map[string][]*Job) {
	j.HasNeeds, j.HasDependencies = j.Job.Needs != nil, j.Job.Dependencies != nil
	for i := range j.Job.Needs {
		j.Needs = append(j.Needs, s.need(j, &j.Job.Needs[i], of)...)
		if len(j.Needs) > maxNeeded {
			s.problems.Add(j.File, j.Line, document.Join(j.Of, "needs"), "the job needs more than %d instances of jobs", maxNeeded)
			break
		}
	}
	for _, name := range j.Job.Dependencies {
		for _, i := range of[name] {
			j.Dependencies = append(j.Dependencies, i.Name)
		}
	}
}

// need returns the instances that a need names. All instances of a job share its needs.
func (s *selector) need(j *Job, need *config.Need, of map[string][]*Job) []Need {
	if known, ok := s.needed[need]; ok {
		return known
	}
	instances := of[need.Job]
	var found []Need
	for _, i := range instances {
		selects := func(variables []config.Variable) bool { return sameVariables(variables, i.Matrix[i.Index-1]) }
		if need.Matrix == nil || slices.ContainsFunc(need.Matrix, selects) {
			found = append(found, Need{i.Name, need.Artifacts})
		}
	}
	switch key := document.Join(j.Of, "needs"); {
	case len(instances) == 0 && !need.Optional:
		s.problems.Add(need.File, need.Line, key, "the job needs %q, which is not in this pipeline; it could be optional", need.Job)
	case len(instances) > 0 && len(found) == 0:
		s.problems.Add(need.File, need.Line, key, "no instance of the job %q has these variables", need.Job)
	}
	s.needed[need] = found
	return found
}

// sameVariables reports whether two lists have the same variables, in any order.
func sameVariables(a, b []config.Variable) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(v config.Variable) bool {
		return !slices.ContainsFunc(b, func(w config.Variable) bool { return v.Key == w.Key && v.Value == w.Value })
	})
}

// instances returns a job, or the instances of a parallel one, with the variables that rules can use.
func (s *selector) instances(of *config.Job) []*Job {
	job := &Job{Job: *of, Of: of.Name}
	inherited := slices.DeleteFunc(slices.Clone(s.globals), func(v config.Variable) bool { return !of.InheritVariables.Includes(v.Key) })
	job.Variables = merge(inherited, of.Variables)
	total := max(of.Parallel, len(of.Matrix))
	if total == 0 {
		return []*Job{job}
	}
	all := make([]*Job, total)
	for i := range all {
		all[i] = job.instance(i, total)
	}
	return all
}

// instance returns one of the instances of a parallel job.
func (j *Job) instance(i, total int) *Job {
	one := *j
	one.Index, one.Total = i+1, total
	counted := []config.Variable{{Key: "CI_NODE_INDEX", Value: fmt.Sprint(i + 1)}, {Key: "CI_NODE_TOTAL", Value: fmt.Sprint(total)}}
	if j.Matrix == nil {
		one.Name = fmt.Sprintf("%s %d/%d", j.Name, i+1, total)
		one.Variables = merge(j.Variables, counted)
		return &one
	}
	one.Name = config.InstanceName(j.Name, j.Matrix[i])
	one.Variables = merge(j.Variables, j.Matrix[i], counted)
	return &one
}
