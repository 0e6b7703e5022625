package config

import (
	"github.com/forgeplane/forgeplane/internal/ci/document"
)

// maxChildren is the maximum number of files of a child pipeline, as in GitLab.
const maxChildren = 3

func (r *reader) trigger(n *document.Node, key string) *Trigger {
	t := &Trigger{ForwardVariables: true}
	if n.Kind != document.Map {
		t.Project = r.text(n, key)
		return t
	}
	var strategy string
	r.fields(n, key, fields{
		"project": set(&t.Project, r.text), "branch": set(&t.Branch, r.text), "strategy": r.oneOf(&strategy, "depend", "mirror"),
		"include": set(&t.Include, r.children), "inputs": r.refused("inputs are not supported"),
		"forward": func(n *document.Node, key string) {
			r.fields(n, key, fields{"yaml_variables": set(&t.ForwardVariables, r.bool), "pipeline_variables": set(&t.ForwardPipelines, r.bool)})
		},
	})
	t.Depend = strategy != ""
	switch {
	case (t.Project == "") == (t.Include == nil):
		r.problems.At(n, key, "either project or include is necessary")
	case t.Branch != "" && t.Project == "":
		r.problems.At(n, key, "branch needs project")
	}
	return t
}

func (r *reader) children(n *document.Node, key string) []Child {
	items := n.Flatten()
	if len(items) == 0 || len(items) > maxChildren {
		r.problems.At(n, key, "must have 1 to %d files", maxChildren)
		return []Child{}
	}
	all := make([]Child, len(items))
	for i, item := range items {
		all[i] = r.child(item, key)
	}
	return all
}

func (r *reader) child(n *document.Node, key string) (c Child) {
	if n.Kind != document.Map {
		c.Local = r.text(n, key)
		return c
	}
	elsewhere := r.refused("only local, project and artifact files are supported")
	r.fields(n, key, fields{
		"local": set(&c.Local, r.text), "project": set(&c.Project, r.text), "ref": set(&c.Ref, r.text), "file": set(&c.File, r.text),
		"artifact": set(&c.Artifact, r.text), "job": set(&c.Job, r.text), "inputs": r.refused("inputs are not supported"),
		"remote": elsewhere, "template": elsewhere, "component": elsewhere,
	})
	kinds := 0
	for _, given := range []bool{c.Local != "", c.Project != "" && c.File != "", c.Artifact != "" && c.Job != ""} {
		if given {
			kinds++
		}
	}
	if kinds != 1 {
		r.problems.At(n, key, "must have local, or project and file, or artifact and job")
	}
	return c
}
