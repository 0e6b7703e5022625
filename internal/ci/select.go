package ci

import (
	"context"
	"slices"
	"strings"

	"github.com/forgeplane/forgeplane/internal/ci/config"
	"github.com/forgeplane/forgeplane/internal/ci/expression"
)

// choose returns a job with the keywords that its rules decide, and whether it is in the pipeline.
func (s *selector) choose(ctx context.Context, of *config.Job) (*Job, bool, error) {
	job := &Job{Job: *of, Of: of.Name}
	inherited := slices.DeleteFunc(slices.Clone(s.globals), func(v config.Variable) bool { return !of.InheritVariables.Includes(v.Key) })
	job.Variables = merge(inherited, of.Variables)
	var ok bool
	var err error
	if of.Rules != nil {
		ok, err = s.rules(ctx, job)
	} else {
		ok, err = s.filters(ctx, job)
	}
	if err != nil || !ok {
		return nil, false, err
	}
	if job.When == "" {
		job.When = "on_success"
	}
	return job, true, nil
}

// scope returns the variables for a job.
func (s *selector) scope(j *Job) scope { return newScope(s.Predefined, j.Variables, s.Variables) }

// rules applies the first rule that holds.
func (s *selector) rules(ctx context.Context, j *Job) (bool, error) {
	rule, holds, err := s.conditions.First(ctx, j.Rules, s.scope(j).lookup)
	if err != nil || !holds || rule.When == "never" {
		return false, err
	}
	if rule.When != "" {
		j.When, j.StartIn = rule.When, rule.StartIn
	}
	if rule.AllowFailure != nil {
		j.AllowFailure = config.AllowFailure{Set: true, Always: *rule.AllowFailure}
	}
	if rule.HasNeeds {
		j.Job.Needs = rule.Needs
	}
	if rule.Interruptible != nil {
		j.Interruptible = *rule.Interruptible
	}
	j.Variables = merge(j.Variables, rule.Variables)
	return true, nil
}

// filters applies only and except. A manual job without rules can fail by default.
func (s *selector) filters(ctx context.Context, j *Job) (bool, error) {
	only := j.Only
	if only == nil {
		only = &config.Filter{}
	}
	if only.Refs == nil {
		with := *only
		with.Refs = []string{"branches", "tags"}
		only = &with
	}
	if j.When == "manual" && !j.AllowFailure.Set {
		j.AllowFailure = config.AllowFailure{Set: true, Always: true}
	}
	get := s.scope(j).lookup
	in, err := s.onlyHolds(ctx, only, get)
	if err != nil || !in || j.Except == nil {
		return in, err
	}
	out, err := s.exceptHolds(ctx, j.Except, get)
	return !out, err
}

// onlyHolds reports whether all kinds of conditions of only hold.
func (s *selector) onlyHolds(ctx context.Context, f *config.Filter, get expression.Lookup) (bool, error) {
	if !slices.ContainsFunc(f.Refs, s.matches) || f.Variables != nil && !anyTrue(f.Variables, get) {
		return false, nil
	}
	if f.Changes == nil {
		return true, nil
	}
	return s.conditions.HasChanges(ctx, f.Changes, get)
}

// exceptHolds reports whether one of the conditions of except holds.
func (s *selector) exceptHolds(ctx context.Context, f *config.Filter, get expression.Lookup) (bool, error) {
	if slices.ContainsFunc(f.Refs, s.matches) || anyTrue(f.Variables, get) {
		return true, nil
	}
	if f.Changes == nil {
		return false, nil
	}
	return s.conditions.HasChanges(ctx, f.Changes, get)
}

func anyTrue(all []*expression.Expression, get expression.Lookup) bool {
	return slices.ContainsFunc(all, func(e *expression.Expression) bool { return e.True(get) })
}

// sources are the keywords of only and except for the sources of pipelines.
var sources = map[string]string{
	"api": "api", "chat": "chat", "external": "external", "external_pull_requests": "external_pull_request_event", "merge_requests": "merge_request_event",
	"pipelines": "pipeline", "pushes": "push", "schedules": "schedule", "triggers": "trigger", "web": "web",
}

// matches reports whether a ref of only or except matches: a keyword, a name, or a pattern between slashes, each with @ and the path of a
// project or without. Branches and tags of merge requests do not count.
func (s *selector) matches(ref string) bool {
	if name, project, found := strings.Cut(ref, "@"); found && (!strings.HasPrefix(ref, "/") || strings.HasPrefix(project, s.Project)) {
		if project != s.Project {
			return false
		}
		ref = name
	}
	ofMergeRequest := s.Source == "merge_request_event"
	switch source, known := sources[ref]; {
	case ref == "branches":
		return !s.Tag && !ofMergeRequest
	case ref == "tags":
		return s.Tag
	case known:
		return s.Source == source
	case ofMergeRequest:
		return false
	}
	if strings.HasPrefix(ref, "/") {
		re, err := expression.Pattern(ref)
		return err == nil && re.MatchString(s.Ref)
	}
	return ref == s.Ref
}

// expand expands the variables in the keywords that the server uses.
func (s *selector) expand(j *Job) {
	expand := s.scope(j).expand
	j.ResourceGroup = expand(j.ResourceGroup)
	j.Tags = slices.Clone(j.Tags)
	for i := range j.Tags {
		j.Tags[i] = expand(j.Tags[i])
	}
	if j.Environment != nil {
		e := *j.Environment
		e.Name, e.OnStop = expand(e.Name), expand(e.OnStop)
		if e.AutoStopIn == 0 && e.AutoStopText != "" {
			e.AutoStopIn, _ = config.ParseDuration(expand(e.AutoStopText))
		}
		j.Environment = &e
	}
	if j.Trigger != nil {
		t := *j.Trigger
		t.Project, t.Branch = expand(t.Project), expand(t.Branch)
		t.Include = slices.Clone(t.Include)
		for i, c := range t.Include {
			t.Include[i].Local, t.Include[i].Project, t.Include[i].Ref = expand(c.Local), expand(c.Project), expand(c.Ref)
			t.Include[i].File, t.Include[i].Artifact, t.Include[i].Job = expand(c.File), expand(c.Artifact), expand(c.Job)
		}
		j.Trigger = &t
	}
}
