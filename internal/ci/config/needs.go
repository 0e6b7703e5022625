package config

import (
	"slices"
	"strings"

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
		"job": set(&need.Job, r.text), "artifacts": set(&need.Artifacts, r.bool), "optional": set(&need.Optional, r.bool), "ref": elsewhere,
		"parallel": func(n *document.Node, key string) {
			r.fields(n, key, fields{"matrix": set(&need.Matrix, r.matrix)})
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
	r.fields(n, key, fields{"matrix": set(&j.Matrix, r.matrix)})
	if n.Get("matrix") == nil {
		r.problems.At(n, key, "matrix is missing")
	}
	for _, variables := range j.Matrix {
		if len(InstanceName(j.Name, variables)) > maxName {
			r.problems.At(n, key, "the values make the name of a job longer than %d bytes", maxName)
			return
		}
	}
}

// InstanceName returns the name of the instance of a job with these variables of its matrix.
func InstanceName(job string, variables []Variable) string {
	values := make([]string, len(variables))
	for i, v := range variables {
		values[i] = v.Value
	}
	return job + ": [" + strings.Join(values, ", ") + "]"
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
		all = append(all, r.combinations(item, key)...)
		if len(all) > maxParallel {
			r.problems.At(item, key, "makes more than %d jobs", maxParallel)
			return nil
		}
	}
	return all
}

// combinations returns one list of variables for each combination of the values in a map, or more than maxParallel lists if there are too many.
func (r *reader) combinations(item *document.Node, key string) [][]Variable {
	all := [][]Variable{nil}
	for i, e := range item.Entries {
		path := document.Join(key, e.Key)
		values := r.texts(e.Value, path)
		if len(values) == 0 || !isName(e.Key) {
			r.problems.Add(e.File, e.Line, path, "must be a variable with at least one value")
		}
		if r.combined += len(all) * len(values) * (i + 1); r.combined > document.MaxNodes {
			r.problems.Add(e.File, e.Line, path, "the matrices have more than %d values, with all combinations", document.MaxNodes)
			return nil
		}
		before := all
		all = nil
		for _, variables := range before {
			for _, value := range values {
				all = append(all, append(slices.Clip(variables), Variable{Key: e.Key, Value: value}))
			}
		}
		if len(all) > maxParallel {
			break
		}
	}
	return all
}
