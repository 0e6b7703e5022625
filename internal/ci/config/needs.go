package config

import (
	"github.com/forgeplane/forgeplane/internal/ci/document"
)

// maxParallel is the maximum number of instances of a job.
const maxParallel = 200

// needs reads the jobs that a job waits for. It is never nil.
func (r *reader) needs(n *document.Node, key string) []Need {
	items := n.Flatten()
	if n.Kind == document.Map { // as in needs: {pipeline: ...}
		items = []*document.Node{n}
	}
	if len(items) > maxNeeds {
		r.problems.At(n, key, "has more than %d jobs", maxNeeds)
		return []Need{}
	}
	all := make([]Need, len(items))
	for i, item := range items {
		all[i] = r.need(item, key)
	}
	return all
}

func (r *reader) need(n *document.Node, key string) Need {
	need := Need{Artifacts: true, File: n.File, Line: n.Line}
	if n.Kind != document.Map {
		need.Job = r.text(n, key)
		return need
	}
	elsewhere := r.refused("jobs of other pipelines and projects are not supported")
	if n.Get("project") != nil || n.Get("pipeline") != nil {
		elsewhere(n, key)
		return need
	}
	r.fields(n, key, fields{
		"job": r.textTo(&need.Job), "artifacts": r.boolTo(&need.Artifacts), "optional": r.boolTo(&need.Optional), "ref": elsewhere,
		"parallel": func(n *document.Node, key string) {
			r.fields(n, key, fields{"matrix": func(n *document.Node, key string) { need.Matrix = r.matrix(n, key) }})
		},
	})
	if need.Job == "" {
		r.problems.At(n, key, "job is missing")
	}
	return need
}

func (r *reader) parallel(j *Job, n *document.Node, key string) {
	if n.Kind != document.Map {
		j.Parallel = r.number(n, key, 1, maxParallel)
		return
	}
	r.fields(n, key, fields{"matrix": func(n *document.Node, key string) { j.Matrix = r.matrix(n, key) }})
	if n.Get("matrix") == nil {
		r.problems.At(n, key, "matrix is missing")
	}
}

// matrix returns the variables of all instances: for each item, one for each combination of the values of its variables.
func (r *reader) matrix(n *document.Node, key string) (all [][]Variable) {
	if n.Kind != document.List || len(n.Items) == 0 {
		r.problems.At(n, key, "must be a list of maps")
		return nil
	}
	for _, item := range n.Flatten() {
		if item.Kind != document.Map || len(item.Entries) == 0 {
			r.problems.At(item, key, "must be a list of maps of variables to values")
			return nil
		}
		combined := [][]Variable{nil}
		for _, e := range item.Entries {
			if combined = r.combine(combined, e, document.Join(key, e.Key)); len(combined)+len(all) > maxParallel {
				r.problems.At(item, key, "makes more than %d jobs", maxParallel)
				return nil
			}
		}
		all = append(all, combined...)
	}
	return all
}

// combine returns each of the combinations with each value of a variable.
func (r *reader) combine(combinations [][]Variable, e document.Entry, key string) (all [][]Variable) {
	values := r.texts(e.Value, key)
	if len(values) == 0 || !isName(e.Key) {
		r.problems.Add(e.File, e.Line, key, "must be a variable with at least one value")
	}
	if len(combinations)*len(values) > maxParallel {
		return make([][]Variable, maxParallel+1)
	}
	for _, c := range combinations {
		for _, value := range values {
			all = append(all, append(append([]Variable(nil), c...), Variable{Key: e.Key, Value: value}))
		}
	}
	return all
}
