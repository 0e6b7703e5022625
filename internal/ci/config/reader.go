package config

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forgeplane/forgeplane/internal/ci/document"
	"github.com/forgeplane/forgeplane/internal/ci/expression"
)

// reader reads values of nodes, and collects problems.
type reader struct {
	problems    document.Problems
	expressions *expression.Parser
	// inherited is the number of values that all jobs inherit from default, and combined that of the variables that matrices make.
	inherited, combined int
}

// fields are the functions that read the values of the keys of a map.
type fields map[string]func(n *document.Node, key string)

// fields reads a map. A key that is not in the table is a problem. Null values are ignored.
func (r *reader) fields(n *document.Node, key string, table fields) {
	if n.Kind != document.Map {
		r.problems.At(n, key, "must be a map")
		return
	}
	for _, e := range n.Entries {
		read, ok := table[e.Key]
		switch path := document.Join(key, e.Key); {
		case !ok:
			r.problems.Add(e.File, e.Line, path, "unknown keyword; those here are %s", keys(table))
		case e.Value.Kind != document.Null:
			read(e.Value, path)
		}
	}
}

func keys(table fields) string {
	var all []string
	for key := range table {
		all = append(all, key)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// refused is the function of keywords that are not supported.
func (r *reader) refused(why string) func(*document.Node, string) {
	return func(n *document.Node, key string) { r.problems.At(n, key, "%s", why) }
}

// ignored is the function of keywords that have no effect here.
func ignored(*document.Node, string) {}

// set is the function of keywords whose value is the field to.
func set[T any](to *T, read func(n *document.Node, key string) T) func(*document.Node, string) {
	return func(n *document.Node, key string) { *to = read(n, key) }
}

// text reads a scalar.
func (r *reader) text(n *document.Node, key string) string {
	if !n.Scalar() {
		r.problems.At(n, key, "must be a text")
		return ""
	}
	return n.Text
}

// oneOf reads a text that must be one of those given.
func (r *reader) oneOf(to *string, allowed ...string) func(*document.Node, string) {
	return func(n *document.Node, key string) {
		if *to = r.text(n, key); n.Scalar() && !slices.Contains(allowed, *to) {
			r.problems.At(n, key, "must be one of %s", strings.Join(allowed, ", "))
		}
	}
}

func (r *reader) bool(n *document.Node, key string) bool {
	if n.Kind != document.Bool {
		r.problems.At(n, key, "must be true or false")
	}
	return slices.Contains([]string{"true", "yes", "on"}, strings.ToLower(n.Text))
}

// optionalBool is bool for a field that is nil without the keyword.
func (r *reader) optionalBool(n *document.Node, key string) *bool {
	is := r.bool(n, key)
	return &is
}

// number reads a number between bounds.
func (r *reader) number(n *document.Node, key string, least, most int) int {
	number, err := strconv.Atoi(n.Text)
	if n.Kind != document.Number || err != nil || number < least || number > most {
		r.problems.At(n, key, "must be a number from %d to %d", least, most)
		return least
	}
	return number
}

// texts reads a text, or a list of texts that can have lists in it. It is never nil.
func (r *reader) texts(n *document.Node, key string) []string {
	all := []string{}
	for _, item := range n.Flatten() {
		if !item.Scalar() {
			r.problems.At(item, key, "must be a text or a list of texts")
			continue
		}
		all = append(all, item.Text)
	}
	return all
}

// eachOf reads texts that must each be one of those given.
func (r *reader) eachOf(to *[]string, allowed ...string) func(*document.Node, string) {
	return func(n *document.Node, key string) {
		*to = nil
		for _, item := range n.Flatten() {
			var one string
			r.oneOf(&one, allowed...)(item, key)
			*to = append(*to, one)
		}
	}
}

// limited is texts with a maximum number.
func (r *reader) limited(to *[]string, most int) func(*document.Node, string) {
	return func(n *document.Node, key string) {
		if *to = r.texts(n, key); len(*to) > most {
			r.problems.At(n, key, "has more than %d items", most)
		}
	}
}

// numbers reads a number or a list of numbers.
func (r *reader) numbers(n *document.Node, key string, least, most int) (all []int) {
	for _, item := range n.Flatten() {
		all = append(all, r.number(item, key, least, most))
	}
	return all
}

// duration reads a duration in words.
func (r *reader) duration(n *document.Node, key string, least, most time.Duration) time.Duration {
	d, err := ParseDuration(r.text(n, key))
	switch {
	case err != nil:
		r.problems.At(n, key, "%v", err)
	case d < least || d > most:
		r.problems.At(n, key, "must be between %s and %s", least, most)
	}
	return d
}

func (r *reader) durationTo(to *time.Duration, least, most time.Duration) func(*document.Node, string) {
	return func(n *document.Node, key string) { *to = r.duration(n, key, least, most) }
}

func (r *reader) expression(n *document.Node, key string) *expression.Expression {
	e, err := r.expressions.Parse(r.text(n, key))
	if err != nil && n.Scalar() {
		r.problems.At(n, key, "invalid expression: %v", err)
	}
	return e
}

// maxVariables is the maximum number of variables of a job or pipeline, and maxValue the maximum size of a value.
const maxVariables, maxValue = 1000, 256 << 10

// variables reads a map of variables.
func (r *reader) variables(n *document.Node, key string) []Variable {
	return r.variableMap(n, key, false)
}

// described reads the variables of the pipeline, which can have a description and options.
func (r *reader) described(n *document.Node, key string) []Variable {
	return r.variableMap(n, key, true)
}

func (r *reader) variableMap(n *document.Node, key string, described bool) []Variable {
	if n.Kind != document.Map {
		r.problems.At(n, key, "must be a map of names to values")
		return nil
	}
	if len(n.Entries) > maxVariables {
		r.problems.At(n, key, "has more than %d variables", maxVariables)
		return nil
	}
	all := make([]Variable, 0, len(n.Entries))
	for _, e := range n.Entries {
		all = append(all, r.variable(e, document.Join(key, e.Key), described))
	}
	return all
}

func (r *reader) variable(e document.Entry, key string, described bool) Variable {
	v := Variable{Key: e.Key}
	n := e.Value
	if !isName(e.Key) {
		r.problems.Add(e.File, e.Line, key, "the name of a variable can have letters, digits and underscores, at most 255")
	}
	if n.Kind == document.Map {
		var expand = true
		table := fields{"value": set(&v.Value, r.text), "expand": set(&expand, r.bool)}
		if described {
			table["description"], table["options"] = set(&v.Description, r.text), set(&v.Options, r.texts)
		}
		r.fields(n, key, table)
		v.Raw = !expand
		if v.Options != nil && !slices.Contains(v.Options, v.Value) {
			r.problems.At(n, key, "value must be one of the options")
		}
	} else if n.Kind != document.Null {
		v.Value = r.text(n, key)
	}
	if len(v.Value) > maxValue {
		r.problems.At(n, key, "the value is larger than %d bytes", maxValue)
	}
	return v
}

func isName(name string) bool {
	if name == "" || len(name) > 255 {
		return false
	}
	for _, c := range name {
		if c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}
