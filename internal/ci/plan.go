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

// maxPlanned is the maximum number of jobs of a pipeline, with all instances of parallel jobs. maxConsidered is the maximum number before the
// rules choose.
const maxPlanned, maxConsidered = 2000, 10_000

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
	chosen, err := s.jobs(ctx)
	if err != nil {
		return nil, err
	}
	plan.Jobs = s.order(chosen)
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

// jobs returns the jobs and instances that are in the pipeline. Each instance has its own variables, so rules can choose some of them only.
func (s *selector) jobs(ctx context.Context) (chosen []*Job, err error) {
	considered := 0
	for _, of := range s.config.Jobs {
		instances := s.instances(of)
		if considered += len(instances); considered > maxConsidered {
			s.problems.Add(of.File, of.Line, document.Join(of.Name, "parallel"), "the configuration has more than %d jobs, with all instances", maxConsidered)
			return nil, s.problems
		}
		for _, job := range instances {
			ok, err := s.choose(ctx, job)
			if err != nil {
				return nil, err
			}
			if ok {
				chosen = append(chosen, job)
			}
		}
		if len(chosen) > maxPlanned {
			s.problems.Add(of.File, of.Line, document.Join(of.Name, "parallel"), "the pipeline has more than %d jobs", maxPlanned)
			return nil, s.problems
		}
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("choosing the jobs of a pipeline: %w", err)
		}
	}
	return chosen, nil
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
	s.checkCircles(jobs)
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

// checkCircles reports jobs that need each other in a circle, because the needs of rules make one.
func (s *selector) checkCircles(jobs []*Job) {
	const open, done = 1, 2
	named := make(map[string]*Job, len(jobs))
	for _, j := range jobs {
		named[j.Name] = j
	}
	state := make(map[*Job]int, len(jobs))
	var visit func(j *Job) (circle bool)
	visit = func(j *Job) bool {
		if state[j] != 0 {
			return state[j] == open
		}
		state[j] = open
		for _, need := range j.Needs {
			if visit(named[need.Job]) {
				s.problems.Add(j.File, j.Line, document.Join(j.Of, "needs"), "the jobs need each other in a circle")
			}
		}
		state[j] = done
		return false
	}
	for _, j := range jobs {
		visit(j)
	}
}

func sameVariables(a, b []config.Variable) bool {
	if len(a) != len(b) {
		return false
	}
	values := newScope(b)
	return !slices.ContainsFunc(a, func(v config.Variable) bool { other, ok := values[v.Key]; return !ok || other.Value != v.Value })
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
