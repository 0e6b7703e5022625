package ci

import (
	"context"
	"slices"
	"strings"

	"github.com/forgeplane/forgeplane/internal/ci/config"
	"github.com/forgeplane/forgeplane/internal/ci/document"
	"github.com/forgeplane/forgeplane/internal/ci/expression"
)

// choose sets the keywords that the rules of a job decide, and reports whether the job is in the pipeline.
func (s *selector) choose(ctx context.Context, job *Job) (ok bool, err error) {
	if job.Rules != nil {
		ok, err = s.rules(ctx, job)
	} else {
		ok, err = s.filters(ctx, job)
	}
	if job.When == "" {
		job.When = "on_success"
	}
	return ok, err
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

// filters applies only and except.
func (s *selector) filters(ctx context.Context, j *Job) (bool, error) {
	get := s.scope(j).lookup
	if j.Only != nil {
		if in, err := s.onlyHolds(ctx, j.Only, get); err != nil || !in {
			return false, err
		}
	}
	if j.Except == nil {
		return true, nil
	}
	out, err := s.exceptHolds(ctx, j.Except, get)
	return !out, err
}

// onlyHolds reports whether all kinds of conditions of only hold.
func (s *selector) onlyHolds(ctx context.Context, f *config.Filter, get expression.Lookup) (bool, error) {
	if !slices.ContainsFunc(f.Refs, s.matches) {
		return false, nil
	}
	if f.Variables != nil {
		if holds, err := s.conditions.AnyTrue(f.Variables, get); err != nil || !holds {
			return false, err
		}
	}
	if f.Changes == nil {
		return true, nil
	}
	return s.conditions.HasChanges(ctx, f.Changes, get)
}

// exceptHolds reports whether one of the conditions of except holds.
func (s *selector) exceptHolds(ctx context.Context, f *config.Filter, get expression.Lookup) (bool, error) {
	if slices.ContainsFunc(f.Refs, s.matches) {
		return true, nil
	}
	if holds, err := s.conditions.AnyTrue(f.Variables, get); err != nil || holds {
		return holds, err
	}
	if f.Changes == nil {
		return false, nil
	}
	return s.conditions.HasChanges(ctx, f.Changes, get)
}

// matches is match with a memory: jobs often have the same refs.
func (s *selector) matches(ref config.Ref) bool {
	is, ok := s.matched[ref]
	if !ok {
		is = s.match(ref)
		s.matched[ref] = is
	}
	return is
}

// match reports whether a ref of only or except matches: the branches or tags, the source of the pipeline, or the name. Branches and tags of
// merge requests do not count.
func (s *selector) match(ref config.Ref) bool {
	ofMergeRequest := s.Source == "merge_request_event"
	switch {
	case ref.Project != "" && ref.Project != s.Project:
		return false
	case ref.Name == "tags" && s.Tag, ref.Name == "branches" && !s.Tag && !ofMergeRequest, s.isSource(ref.Name):
		return true
	case ofMergeRequest:
		return false
	case ref.Pattern != nil:
		return ref.Pattern.MatchString(s.Ref)
	}
	return ref.Name == s.Ref
}

// isSource reports whether a name means the source of the pipeline, in the singular or plural and without _event.
func (s *selector) isSource(name string) bool {
	source := strings.TrimSuffix(s.Source, "_event")
	return source != "" && (name == source || name == source+"s" || name == "pushes" && source == "push")
}

// expand expands the variables in the keywords that the server uses.
func (s *selector) expand(j *Job) {
	scope := s.scope(j)
	expand := func(key string, most int, texts ...*string) {
		for _, text := range texts {
			if *text = scope.expand(*text); len(*text) > most {
				s.problems.Add(j.File, j.Line, document.Join(j.Of, key), "is longer than %d bytes with its variables", most)
				*text = ""
			}
		}
	}
	expand("resource_group", maxName, &j.ResourceGroup)
	j.Tags = slices.Clone(j.Tags)
	for i := range j.Tags {
		expand("tags", maxName, &j.Tags[i])
	}
	if j.Environment != nil {
		e := *j.Environment
		expand("environment", maxName, &e.Name, &e.OnStop)
		if e.AutoStopIn == 0 && e.AutoStopText != "" {
			e.AutoStopIn, _ = config.ParseDuration(scope.expand(e.AutoStopText))
		}
		j.Environment = &e
	}
	if j.Trigger != nil {
		t := *j.Trigger
		expand("trigger", maxPath, &t.Project, &t.Branch)
		t.Include = slices.Clone(t.Include)
		for i := range t.Include {
			c := &t.Include[i]
			expand("trigger:include", maxPath, &c.Local, &c.Project, &c.Ref, &c.File, &c.Artifact, &c.Job)
		}
		j.Trigger = &t
	}
}
