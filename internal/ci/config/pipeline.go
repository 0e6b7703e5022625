package config

import (
	"slices"
	"strings"

	"github.com/forgeplane/forgeplane/internal/ci/document"
)

const (
	maxJobs   = 1000
	maxStages = 100
	// First is the stage before all others.
	First = ".pre"
	// Last is the stage after all others.
	Last = ".post"
)

// defaults are the keywords that default can have. Some of them can also be at the top level.
var defaults = []string{
	"after_script", "artifacts", "before_script", "cache", "hooks", "id_tokens", "image", "interruptible", "retry", "services", "tags", "timeout",
}

// globals are the keywords of the top level that are defaults. GitLab has deprecated them.
var globals = []string{"after_script", "before_script", "cache", "image", "services"}

// config reads the document.
func (r *reader) config(root *document.Node) *Config {
	c := &Config{Stages: []string{First, "build", "test", "deploy", Last}}
	common := &document.Node{Kind: document.Map, File: root.File, Line: root.Line}
	if n := root.Get("default"); n != nil {
		r.checkDefault(n)
		if n.Kind == document.Map {
			common = n
		}
	}
	table := fields{
		"default": ignored, "include": ignored, "workflow": func(n *document.Node, key string) { r.workflow(c, n, key) },
		"stages": func(n *document.Node, key string) { r.stages(c, n, key) }, "types": r.refused("use stages"),
		"spec":      r.refused("inputs are not supported"),
		"variables": set(&c.Variables, r.described),
	}
	for _, key := range globals {
		n := root.Get(key)
		table[key] = ignored
		if n == nil {
			continue
		}
		if common.Get(key) != nil {
			r.problems.At(n, key, "is also in default: keep that one alone")
		}
		common = common.With(document.Entry{Key: key, File: n.File, Line: n.Line, Value: n})
	}
	var jobs []document.Entry
	for _, e := range root.Entries {
		switch {
		case document.Reserved(e.Key):
			if e.Value.Kind != document.Null {
				table[e.Key](e.Value, e.Key)
			}
		case !strings.HasPrefix(e.Key, "."):
			jobs = append(jobs, e)
		}
	}
	r.jobs(c, root, jobs, common)
	return c
}

func (r *reader) jobs(c *Config, root *document.Node, jobs []document.Entry, common *document.Node) {
	switch {
	case len(jobs) == 0:
		r.problems.Add(root.File, 0, "", "the configuration has no job that is not hidden")
	case len(jobs) > maxJobs:
		r.problems.At(root, "", "the configuration has more than %d jobs", maxJobs)
		return
	}
	for _, e := range jobs {
		if e.Value.Kind != document.Map {
			r.problems.Add(e.File, e.Line, e.Key, "unknown keyword, or a job that is not a map; begin the key with a dot, as in .%s, to hide other values", e.Key)
			continue
		}
		c.Jobs = append(c.Jobs, r.job(e, common))
	}
	r.refs(c)
}

// checkDefault reports keys that default cannot have. Their values are checked in the jobs.
func (r *reader) checkDefault(n *document.Node) {
	table := fields{}
	for _, key := range defaults {
		table[key] = ignored
	}
	r.fields(n, "default", table)
}

func (r *reader) stages(c *Config, n *document.Node, key string) {
	names := r.texts(n, key)
	if n.Kind != document.List || len(names) > maxStages {
		r.problems.At(n, key, "must be a list of at most %d names", maxStages)
		return
	}
	c.Stages = []string{First}
	for _, name := range names {
		if name != First && name != Last && !slices.Contains(c.Stages, name) {
			c.Stages = append(c.Stages, name)
		}
	}
	c.Stages = append(c.Stages, Last)
}

func (r *reader) workflow(c *Config, n *document.Node, key string) {
	c.WorkflowPlace = Place{n.File, n.Line}
	r.fields(n, key, fields{
		"name": set(&c.Name, r.text), "auto_cancel": set(&c.AutoCancel, r.autoCancel),
		"rules": func(n *document.Node, key string) { c.Workflow = r.rules(n, key, r.workflowRule) },
	})
	if len(c.Name) > 255 {
		r.problems.At(n, document.Join(key, "name"), "is longer than 255 bytes")
	}
}

func (r *reader) autoCancel(n *document.Node, key string) (a AutoCancel) {
	r.fields(n, key, fields{
		"on_new_commit":  r.oneOf(&a.OnNewCommit, "conservative", "interruptible", "none"),
		"on_job_failure": r.oneOf(&a.OnJobFailure, "none", "all"),
	})
	return a
}
