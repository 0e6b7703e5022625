package document

import (
	"slices"
	"strings"
)

const (
	// maxExtends is the maximum number of jobs that one job extends through each other, as in GitLab.
	maxExtends = 11
	// maxReference is the maximum number of keys of a reference, and of references to each other.
	maxReference = 10
)

// Expand resolves the extends of all jobs, and then all references.
func Expand(root *Node) (*Node, Problems) {
	e := &extender{root: root, done: map[string]extended{}}
	entries := slices.Clone(root.Entries)
	for i, entry := range entries {
		if entry.Value.Kind == Map && extends(entry) {
			entries[i].Value = e.extend(entry, nil).Node
		}
	}
	root = root.with(entries)
	if root.size > MaxNodes {
		e.problems.Add(root.File, 0, "", "the configuration has more than %d values, with extends expanded", MaxNodes)
	}
	if len(e.problems) > 0 {
		return root, e.problems
	}
	r := &resolver{root: root}
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
	root *Node
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
		base, ok := e.root.entry(name.Text)
		switch {
		case e.merged > 10*MaxNodes:
		case !name.Scalar():
			e.problems.At(name, key, "it must be the name of a job, or a list of names")
		case slices.Contains(through, name.Text):
			e.problems.At(name, key, "the jobs extend each other in a circle: %s", strings.Join(append(through, name.Text), ", "))
		case !ok || base.Value.Kind != Map || Reserved(name.Text):
			e.problems.At(name, key, "there is no job %q", name.Text)
		default:
			below := e.extend(base, through)
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
	// open are the references that are being resolved.
	open     []string
	count    int
	problems Problems
}

// resolve returns a node with all references replaced. path are its keys.
func (r *resolver) resolve(n *Node, path string) *Node {
	if len(r.problems) > 0 || !n.refers() {
		return n
	}
	if r.count++; r.count > MaxNodes {
		r.problems.At(n, path, "the configuration has more than %d values, with references expanded", MaxNodes)
		return nothing
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
	if changed.sized().size > MaxNodes {
		r.problems.At(n, path, "the configuration has more than %d values, with references expanded", MaxNodes)
		return nothing
	}
	return &changed
}

// refers reports whether there is a reference in a node.
func (n *Node) refers() bool {
	return n.Kind == Reference || slices.ContainsFunc(n.Items, (*Node).refers) ||
		slices.ContainsFunc(n.Entries, func(e Entry) bool { return e.Value.refers() })
}

// follow returns the value that a reference names.
func (r *resolver) follow(n *Node, path string) *Node {
	keys := make([]string, len(n.Items))
	found := r.root
	for i, key := range n.Items {
		keys[i] = key.Text
		if e, ok := found.entry(key.Text); ok {
			found = e.Value
		} else {
			found = nil
		}
	}
	name := strings.Join(keys, ", ")
	switch {
	case found == nil:
		r.problems.At(n, path, "!reference [%s] could not be found", name)
	case slices.Contains(r.open, name):
		r.problems.At(n, path, "!reference [%s] is part of a circle", name)
	case len(r.open) >= maxReference:
		r.problems.At(n, path, "more than %d references refer to each other", maxReference)
	default:
		r.open = append(r.open, name)
		found = r.resolve(found, path)
		r.open = r.open[:len(r.open)-1]
		return found
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
