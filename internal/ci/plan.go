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

// maxPlanned is the maximum number of jobs of a pipeline, with all instances of parallel jobs.
const maxPlanned = 2000

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
var ErrFiltered = errors.New("Pipeline will not run for the selected trigger. The rules configuration prevented any jobs from being added to the pipeline.") //nolint:staticcheck // the text is that of the interface

// Plan returns the jobs of the pipeline. The error is ErrFiltered, document.Problems, or a failure to read files.
func (p *Pipeline) Plan(ctx context.Context, c *config.Config) (*Plan, error) {
	s := &selector{Pipeline: p, config: c, conditions: p.conditions()}
	plan, err := s.plan(ctx)
	if condition.Mistake(err) {
		return nil, document.Problems{{Text: err.Error()}}
	}
	return plan, err
}

// selector selects the jobs of one pipeline.
type selector struct {
	*Pipeline
	config     *config.Config
	conditions *condition.Context
	// globals are the variables of the pipeline that the configuration declares.
	globals  []config.Variable
	problems document.Problems
}

func (s *selector) plan(ctx context.Context) (*Plan, error) {
	plan := &Plan{AutoCancel: s.config.AutoCancel}
	s.globals = s.config.Variables
	if err := s.workflow(ctx, plan); err != nil {
		return nil, err
	}
	plan.Variables = s.globals
	plan.Name = newScope(s.Predefined, s.globals, s.Variables).expand(s.config.Name)
	var chosen []*Job
	for _, j := range s.config.Jobs {
		job, ok, err := s.choose(ctx, j)
		if err != nil {
			return nil, err
		}
		if ok {
			chosen = append(chosen, job)
		}
	}
	plan.Jobs = s.order(s.instances(chosen))
	for _, j := range plan.Jobs {
		s.expand(j)
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

// order sorts jobs by stage, and resolves what they need.
func (s *selector) order(jobs []*Job) []*Job {
	slices.SortStableFunc(jobs, func(a, b *Job) int {
		return slices.Index(s.config.Stages, a.Stage) - slices.Index(s.config.Stages, b.Stage)
	})
	byName := map[string][]*Job{}
	for _, j := range jobs {
		byName[j.Of] = append(byName[j.Of], j)
	}
	for _, j := range jobs {
		s.resolve(j, byName)
	}
	return jobs
}

// resolve replaces the needs and dependencies of a job by instances in the pipeline.
func (s *selector) resolve(j *Job, byName map[string][]*Job) {
	j.HasNeeds, j.HasDependencies = j.Job.Needs != nil, j.Job.Dependencies != nil
	for _, need := range j.Job.Needs {
		instances := byName[need.Job]
		if len(instances) == 0 && !need.Optional {
			s.problems.Add(need.File, need.Line, document.Join(j.Of, "needs"),
				"the job needs %q, which is not in this pipeline; it could be optional", need.Job)
		}
		found := false
		for _, i := range instances {
			if need.Matrix == nil || slices.ContainsFunc(need.Matrix, func(v []config.Variable) bool { return sameVariables(v, i.Matrix[i.Index-1]) }) {
				j.Needs, found = append(j.Needs, Need{i.Name, need.Artifacts}), true
			}
		}
		if len(instances) > 0 && !found {
			s.problems.Add(need.File, need.Line, document.Join(j.Of, "needs"), "no instance of the job %q has these variables", need.Job)
		}
	}
	for _, name := range j.Job.Dependencies {
		for _, i := range byName[name] {
			j.Dependencies = append(j.Dependencies, i.Name)
		}
	}
	if len(j.Needs) > maxNeeded {
		s.problems.Add(j.File, j.Line, document.Join(j.Of, "needs"), "the job needs more than %d instances of jobs", maxNeeded)
	}
}

// maxNeeded is the maximum number of instances that a job needs: those of a parallel job count one by one.
const maxNeeded = 250

func sameVariables(a, b []config.Variable) bool {
	if len(a) != len(b) {
		return false
	}
	values := newScope(b)
	return !slices.ContainsFunc(a, func(v config.Variable) bool { other, ok := values[v.Key]; return !ok || other.Value != v.Value })
}

// instances replaces parallel jobs by their instances.
func (s *selector) instances(jobs []*Job) (all []*Job) {
	for _, j := range jobs {
		total := max(j.Parallel, len(j.Matrix))
		if len(all)+max(total, 1) > maxPlanned {
			s.problems.Add(j.File, j.Line, document.Join(j.Name, "parallel"), "the pipeline has more than %d jobs", maxPlanned)
			return all
		}
		if total == 0 {
			all = append(all, j)
			continue
		}
		for i := range total {
			all = append(all, j.instance(i, total))
		}
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
	values := ""
	for n, v := range j.Matrix[i] {
		if n > 0 {
			values += ", "
		}
		values += v.Value
	}
	one.Name = fmt.Sprintf("%s: [%s]", j.Name, values)
	one.Variables = merge(j.Variables, j.Matrix[i], counted)
	return &one
}
