package config

import (
	"slices"
	"strings"

	"github.com/forgeplane/forgeplane/internal/ci/document"
)

// check reports jobs that do not fit together.
func (r *reader) check(c *Config) {
	jobs := make(map[string]*Job, len(c.Jobs))
	for _, j := range c.Jobs {
		jobs[j.Name] = j
	}
	for _, j := range c.Jobs {
		if !slices.Contains(c.Stages, j.Stage) {
			r.problems.Add(j.File, j.Line, document.Join(j.Name, "stage"), "the stage %q is not one of %s", j.Stage, strings.Join(c.Stages, ", "))
			continue
		}
		r.checkNeeds(c, jobs, j, j.Needs, document.Join(j.Name, "needs"))
		for _, rule := range j.Rules {
			r.checkNeeds(c, jobs, j, rule.Needs, document.Join(j.Name, "rules:needs"))
		}
		r.checkDependencies(c, jobs, j)
		r.checkStop(jobs, j)
	}
	r.checkCircles(c, jobs)
}

// later reports whether the stage of a job is behind that of another one.
func (c *Config) later(a, b *Job) bool {
	return slices.Index(c.Stages, a.Stage) > slices.Index(c.Stages, b.Stage)
}

// Warnings are about jobs for which one action could start several pipelines, because their last rule always holds.
func (c *Config) Warnings() (all document.Problems) {
	if c.Workflow != nil {
		return nil
	}
	for _, j := range c.Jobs {
		if len(j.Rules) > 0 && j.Rules[len(j.Rules)-1].always() {
			all.Add(j.File, j.Line, document.Join(j.Name, "rules"), "the last rule holds for every pipeline, so one action can start several; workflow:rules can prevent this")
		}
	}
	return all
}

// always reports whether a rule adds the job to every pipeline, with a when of its own.
func (r Rule) always() bool {
	return r.When != "" && r.When != "never" && r.If == nil && r.Changes == nil && r.Exists == nil
}

func (r *reader) checkNeeds(c *Config, jobs map[string]*Job, j *Job, needs []Need, key string) {
	for _, need := range needs {
		needed, ok := jobs[need.Job]
		switch {
		case !ok && !need.Optional:
			r.problems.Add(need.File, need.Line, key, "there is no job %q", need.Job)
		case ok && needed == j:
			r.problems.Add(need.File, need.Line, key, "the job needs itself")
		case ok && c.later(needed, j):
			r.problems.Add(need.File, need.Line, key, "the job %q is in a later stage", need.Job)
		case ok && need.Matrix != nil && needed.Matrix == nil:
			r.problems.Add(need.File, need.Line, key, "the job %q has no parallel:matrix", need.Job)
		}
	}
}

func (r *reader) checkDependencies(c *Config, jobs map[string]*Job, j *Job) {
	for _, name := range j.Dependencies {
		other, ok := jobs[name]
		needed := slices.ContainsFunc(j.Needs, func(n Need) bool { return n.Job == name })
		switch key := document.Join(j.Name, "dependencies"); {
		case !ok:
			r.problems.Add(j.File, j.Line, key, "there is no job %q", name)
		case j.Needs != nil && !needed:
			r.problems.Add(j.File, j.Line, key, "the job %q must also be in needs", name)
		case j.Needs == nil && !c.later(j, other):
			r.problems.Add(j.File, j.Line, key, "the job %q is not in an earlier stage", name)
		}
	}
}

// checkStop reports an on_stop that names no job to stop the environment.
func (r *reader) checkStop(jobs map[string]*Job, j *Job) {
	if j.Environment == nil || j.Environment.OnStop == "" {
		return
	}
	stop, ok := jobs[j.Environment.OnStop]
	switch key := document.Join(j.Name, "environment:on_stop"); {
	case !ok:
		r.problems.Add(j.File, j.Line, key, "there is no job %q", j.Environment.OnStop)
	case stop.Environment == nil || stop.Environment.Action != "stop":
		r.problems.Add(j.File, j.Line, key, "the job %q must have an environment with the action stop", stop.Name)
	case stop.Environment.Name != j.Environment.Name:
		r.problems.Add(j.File, j.Line, key, "the job %q has another environment", stop.Name)
	}
}

// checkCircles reports jobs that need each other in a circle.
func (r *reader) checkCircles(c *Config, jobs map[string]*Job) {
	needs := func(j *Job) []*Job {
		needed := make([]*Job, len(j.Needs))
		for i, need := range j.Needs {
			if need.Job != j.Name {
				needed[i] = jobs[need.Job]
			}
		}
		return needed
	}
	Circles(c.Jobs, needs, func(j *Job, i int) {
		r.problems.Add(j.Needs[i].File, j.Needs[i].Line, document.Join(j.Name, "needs"), "the jobs need each other in a circle")
	})
}
