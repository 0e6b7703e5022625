package document

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// maxExtends is the maximum number of jobs that one job extends through each other, as in GitLab.
	maxExtends = 11
	// maxReference is the maximum number of keys of a reference, and of references to each other.
	maxReference = 10
	// perSearch is the number of entries whose search for a key counts as a value.
	perSearch = 1024
)

// Expand resolves the extends of all jobs, and then all references. It returns nil for a document that becomes too large.
func Expand(root *Node) (*Node, Problems) {
	e := &extender{jobs: make(map[string]*Node, len(root.Entries)), done: map[string]extended{}}
	for _, entry := range root.Entries {
		e.jobs[entry.Key] = entry.Value
	}
	entries := slices.Clone(root.Entries)
	for i, entry := range entries {
		if entry.Value.Kind == Map && extends(entry) {
			entries[i].Value = e.extend(entry, nil).Node
		}
	}
	root = root.with(entries)
	if root.size > MaxNodes {
		e.problems.Add(root.File, 0, "", "the configuration has more than %d values, with extends expanded", MaxNodes)
		return nil, e.problems
	}
	if len(e.problems) > 0 {
		return root, e.problems
	}
	r := &resolver{root: root, count: root.size, known: map[string]*Node{}}
	root = r.resolve(root, "")
	return root, r.problems
}

// extends reports whether an entry of the top level can extend others: keywords such as default cannot.
func extends(e Entry) bool { return e.Value.Get("extends") != nil && !Reserved(e.Key) }

// reserved are the keys of the top level that are not jobs. A job called pages is one.
var reserved = []string{
	"default", "include", "stages", "types", "variables", "workflow", "image", "services", "before_script", "after_script", "cache", "spec",
}

// Reserved reports whether a key of the top level is a keyword, and so cannot be the name of a job.
func Reserved(key string) bool { return slices.Contains(reserved, key) }

type extender struct {
	// jobs are the values of the top level.
	jobs map[string]*Node
	done map[string]extended
	// merged is the number of values in all merged jobs.
	merged   int
	problems Problems
}

// extended is a job with those that it extends. height is the number of jobs in the longest chain.
type extended struct {
	*Node
	height int
}

// extend returns the map of a job merged into those that it extends. through are the jobs on the way to it.
func (e *extender) extend(job Entry, through []string) extended {
	if n, ok := e.done[job.Key]; ok {
		return n
	}
	of := job.Value.Get("extends")
	if of == nil {
		return extended{job.Value, 0}
	}
	key, through := Join(job.Key, "extends"), append(slices.Clip(through), job.Key)
	var made extended
	for _, name := range names(of) {
		base, ok := e.jobs[name.Text]
		switch {
		case e.merged > 10*MaxNodes:
		case !name.Scalar():
			e.problems.At(name, key, "it must be the name of a job, or a list of names")
		case slices.Contains(through, name.Text):
			e.problems.At(name, key, "the jobs extend each other in a circle: %s", strings.Join(append(through, name.Text), ", "))
		case len(through) > maxExtends:
			e.problems.At(name, key, "more than %d jobs extend each other", maxExtends)
		case !ok || base.Kind != Map || Reserved(name.Text):
			e.problems.At(name, key, "there is no job %q", name.Text)
		default:
			below := e.extend(Entry{Key: name.Text, Value: base}, through)
			made = extended{Merge(made.Node, below.Node), max(made.height, below.height)}
			e.merged += made.size
		}
	}
	made = extended{Merge(made.Node, job.Value).Without("extends"), made.height + 1}
	switch e.merged += made.size; {
	case made.height > maxExtends:
		e.problems.At(of, key, "more than %d jobs extend each other", maxExtends)
	case made.size > MaxNodes || e.merged > 10*MaxNodes:
		e.problems.At(of, key, "extends expands to too many values")
	}
	e.done[job.Key] = made
	return made
}

// names returns the items of a list, or a single value as a list.
func names(n *Node) []*Node {
	if n.Kind == List {
		return n.Items
	}
	return []*Node{n}
}

type resolver struct {
	root *Node
	// open are the references that are being resolved, and known those that are.
	open  []string
	known map[string]*Node
	// count is the number of values with references expanded.
	count    int
	problems Problems
}

// resolve returns a node with all references replaced. path are its keys.
func (r *resolver) resolve(n *Node, path string) *Node {
	if len(r.problems) > 0 || !n.refers {
		return n
	}
	changed := *n
	switch n.Kind {
	case Reference:
		return r.follow(n, path)
	case List:
		changed.Items = make([]*Node, len(n.Items))
		for i, item := range n.Items {
			changed.Items[i] = r.resolve(item, path)
		}
	case Map:
		changed.Entries = slices.Clone(n.Entries)
		for i, e := range changed.Entries {
			changed.Entries[i].Value = r.resolve(e.Value, Join(path, e.Key))
		}
	}
	switch changed.sized(); {
	case !r.counts(n, path, 0):
		return nothing
	case changed.height > MaxDepth:
		r.problems.At(n, path, "the values are nested more than %d deep, with references expanded", MaxDepth)
		return nothing
	}
	return &changed
}

// counts reports whether the configuration can have further values.
func (r *resolver) counts(n *Node, path string, values int) bool {
	if r.count += values; r.count > MaxNodes {
		r.problems.At(n, path, "the configuration has more than %d values, with references expanded", MaxNodes)
		return false
	}
	return true
}

// follow returns the value that a reference names.
func (r *resolver) follow(n *Node, path string) *Node {
	keys := make([]string, len(n.Items))
	for i, key := range n.Items {
		keys[i] = key.Text
	}
	id, name := fmt.Sprintf("%q", keys), strings.Join(keys, ", ")
	if known := r.known[id]; known != nil {
		if !r.counts(n, path, known.size) {
			return nothing
		}
		return known
	}
	found := r.root
	for _, key := range keys {
		if found != nil && !r.counts(n, path, len(found.Entries)/perSearch) {
			return nothing
		}
		e, _ := found.entry(key)
		found = e.Value
	}
	switch {
	case found == nil:
		r.problems.At(n, path, "!reference [%s] could not be found", name)
	case slices.Contains(r.open, id):
		r.problems.At(n, path, "!reference [%s] is part of a circle", name)
	case len(r.open) >= maxReference:
		r.problems.At(n, path, "more than %d references refer to each other", maxReference)
	default:
		r.open = append(r.open, id)
		found = r.resolve(found, path)
		r.open = r.open[:len(r.open)-1]
		if len(r.problems) == 0 && r.counts(n, path, found.size) {
			r.known[id] = found
			return found
		}
	}
	return nothing
}

// Flatten returns the items of a list with the items of lists in it, as references leave them. Any other value is its only item.
func (n *Node) Flatten() []*Node {
	if n == nil || n.Kind == Null {
		return nil
	}
	if n.Kind != List {
		return []*Node{n}
	}
	var all []*Node
	for _, item := range n.Items {
		all = append(all, item.Flatten()...)
	}
	return all
}
