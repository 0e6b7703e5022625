package config

import (
	"slices"
	"time"

	"github.com/forgeplane/forgeplane/internal/ci/document"
)

const (
	maxName, maxTags, maxServices, maxNeeds = 255, 50, 50, 50
	// maxScript is the maximum size of the scripts of a job in bytes.
	maxScript = 1 << 20
	// maxTimeout is the longest time of a job.
	maxTimeout = 30 * day
)

// whens are the values of when of a job.
var whens = []string{"on_success", "on_failure", "always", "manual", "delayed"}

// job reads a job with the defaults that it inherits.
func (r *reader) job(e document.Entry, common *document.Node) *Job {
	j := &Job{Name: e.Key, File: e.File, Line: e.Line, Stage: "test"}
	if len(j.Name) > maxName || j.Name == "" {
		r.problems.Add(e.File, e.Line, e.Key[:min(len(e.Key), 50)], "the name of a job must have 1 to %d bytes", maxName)
	}
	n := r.inherit(j, e, common)
	bridge := n.Get("trigger") != nil
	table := r.shared(j)
	for key, read := range r.running(j) {
		if bridge {
			read = r.refused("cannot be used with trigger")
		}
		table[key] = read
	}
	r.fields(n, e.Key, table)
	if j.When == "manual" && !j.AllowFailure.Set {
		j.AllowFailure.Always = true
	}
	r.checkJob(j, n, bridge)
	return j
}

// inherit adds the defaults to the map of a job.
func (r *reader) inherit(j *Job, e document.Entry, common *document.Node) *document.Node {
	n := e.Value
	from := Selection{}
	if i := n.Get("inherit"); i != nil {
		r.fields(i, document.Join(e.Key, "inherit"), fields{
			"default": set(&from, r.selection), "variables": set(&j.InheritVariables, r.selection),
		})
	}
	bridge := n.Get("trigger") != nil
	for _, d := range common.Entries {
		if n.Get(d.Key) != nil || !from.Includes(d.Key) || !slices.Contains(defaults, d.Key) || bridge && d.Key != "interruptible" {
			continue
		}
		if r.inherited += d.Value.Size(); r.inherited > document.MaxNodes {
			r.problems.Add(d.File, d.Line, document.Join("default", d.Key), "the jobs inherit more than %d values", document.MaxNodes)
			break
		}
		n = n.With(d)
	}
	return n
}

// selection reads true, false or a list of names.
func (r *reader) selection(n *document.Node, key string) Selection {
	if n.Kind == document.List {
		return Selection{Names: r.texts(n, key)}
	}
	return Selection{None: !r.bool(n, key)}
}

// shared returns the keywords of all jobs.
func (r *reader) shared(j *Job) fields {
	return fields{
		"stage": set(&j.Stage, r.text), "inherit": ignored, "extends": ignored, "when": r.oneOf(&j.When, whens...),
		"rules":    func(n *document.Node, key string) { j.Rules = r.rules(n, key, r.jobRule) },
		"parallel": func(n *document.Node, key string) { r.parallel(j, n, key) },
		"only":     set(&j.Only, r.filter), "except": set(&j.Except, r.filter),
		"variables": set(&j.Variables, r.variables), "needs": set(&j.Needs, r.needs), "allow_failure": set(&j.AllowFailure, r.allowFailure),
		"trigger": set(&j.Trigger, r.trigger), "environment": set(&j.Environment, r.environment), "interruptible": set(&j.Interruptible, r.bool),
		"start_in": r.durationTo(&j.StartIn, time.Second, maxStart), "resource_group": set(&j.ResourceGroup, r.text),
		"manual_confirmation": set(&j.Confirmation, r.text),
	}
}

// running returns the keywords of jobs that a runner executes.
func (r *reader) running(j *Job) fields {
	return fields{
		"script": set(&j.Script, r.texts), "before_script": set(&j.BeforeScript, r.texts), "after_script": set(&j.AfterScript, r.texts),
		"hooks": func(n *document.Node, key string) {
			r.fields(n, key, fields{"pre_get_sources_script": set(&j.PreGetSources, r.texts)})
		},
		"tags": r.limited(&j.Tags, maxTags), "dependencies": r.limited(&j.Dependencies, maxNeeds), "coverage": set(&j.Coverage, r.coverage),
		"image": set(&j.Image, r.image), "services": set(&j.Services, r.services), "artifacts": set(&j.Artifacts, r.artifacts),
		"cache": set(&j.Cache, r.caches), "retry": set(&j.Retry, r.retry), "timeout": r.durationTo(&j.Timeout, time.Second, maxTimeout),
		"release": set(&j.Release, r.release), "id_tokens": set(&j.IDTokens, r.idTokens),
		"secrets":            r.refused("external secrets are not supported; use variables"),
		"identity":           r.refused("identity providers are not supported"),
		"pages":              r.refused("Pages are not supported"),
		"publish":            r.refused("Pages are not supported"),
		"run":                r.refused("steps are not supported; use script"),
		"dast_configuration": r.refused("DAST is not supported"),
	}
}

// checkJob reports keywords that exclude or need each other.
func (r *reader) checkJob(j *Job, n *document.Node, bridge bool) {
	if len(j.Script) == 0 && !bridge {
		r.problems.Add(j.File, j.Line, j.Name, "script is missing")
	}
	size := 0
	for _, lines := range [][]string{j.BeforeScript, j.Script, j.AfterScript, j.PreGetSources} {
		for _, line := range lines {
			size += len(line) + 1
		}
	}
	if size > maxScript {
		r.problems.Add(j.File, j.Line, j.Name, "the scripts are larger than %d bytes", maxScript)
	}
	if j.Rules != nil {
		for _, key := range []string{"only", "except"} {
			if other := n.Get(key); other != nil {
				r.problems.At(other, document.Join(j.Name, key), "cannot be used with rules")
			}
		}
	}
	if j.Rules == nil || j.When != "" {
		r.checkDelay(n, j.Name, j.When, j.StartIn)
	}
	if j.Environment != nil && j.Environment.OnStop == j.Name {
		r.problems.Add(j.File, j.Line, j.Name, "environment:on_stop names the job itself")
	}
}

func (r *reader) allowFailure(n *document.Node, key string) AllowFailure {
	a := AllowFailure{Set: true}
	if n.Kind != document.Map {
		a.Always = r.bool(n, key)
		return a
	}
	r.fields(n, key, fields{"exit_codes": func(n *document.Node, key string) { a.ExitCodes = r.numbers(n, key, 0, 255) }})
	if len(a.ExitCodes) == 0 {
		r.problems.At(n, key, "exit_codes is missing")
	}
	return a
}

// maxRetries is the maximum number of retries of a failed job, as in GitLab.
const maxRetries = 2

// retryReasons are the values of retry:when.
var retryReasons = []string{
	"always", "unknown_failure", "script_failure", "api_failure", "stuck_or_timeout_failure", "runner_system_failure", "runner_unsupported",
	"runner_interrupted", "stale_schedule", "job_execution_timeout", "archived_failure", "unmet_prerequisites", "scheduler_failure", "data_integrity_failure",
}

func (r *reader) retry(n *document.Node, key string) Retry {
	if n.Kind != document.Map {
		return Retry{Max: r.number(n, key, 0, maxRetries)}
	}
	again := Retry{Max: maxRetries}
	r.fields(n, key, fields{
		"max":        func(n *document.Node, key string) { again.Max = r.number(n, key, 0, maxRetries) },
		"exit_codes": func(n *document.Node, key string) { again.ExitCodes = r.numbers(n, key, 0, 255) },
		"when":       r.eachOf(&again.When, retryReasons...),
	})
	return again
}
