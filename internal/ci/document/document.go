// Package document reads the YAML of CI configurations into trees of nodes that know their places, and merges them. Its limits keep hostile
// documents small, also once their anchors, extensions and references are expanded.
package document

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// MaxBytes is the maximum size of a file.
	MaxBytes = 1 << 20
	// MaxNodes is the maximum number of values of a configuration, once anchors, extends and references are expanded. A long text or key counts
	// as several values.
	MaxNodes = 100_000
	// MaxDepth is the maximum depth of values in each other.
	MaxDepth = 50
	// MaxProblems is the maximum number of problems that are reported.
	MaxProblems = 50

	// perValue is the number of bytes of a text or key that count as a value, and maxText the maximum size of the key and of the text of a
	// problem; what is longer is cut off.
	perValue, maxText = 64, 2000
)

// Kind is the kind of a Node.
type Kind int

// The kinds of nodes.
const (
	Null Kind = iota
	Bool
	Number
	Text
	List
	Map
	// Reference is a !reference that is not resolved yet. Its items are the keys.
	Reference
)

// Node is a value of a configuration. Nodes are immutable, because several places can share one.
type Node struct {
	Kind Kind
	// File and Line are the place of the value.
	File string
	Line int
	// Text is a scalar as it is written, without quotes.
	Text string
	// Items are the items of a list.
	Items []*Node
	// Entries are the entries of a map, in order.
	Entries []Entry

	// size is the number of values in the node, height that of values in each other, and refers says that there is a Reference.
	size, height int
	refers       bool
}

// Size returns the number of values in the node, as MaxNodes counts them.
func (n *Node) Size() int { return n.size }

// Entry is an entry of a map.
type Entry struct {
	Key string
	// File and Line are the place of the key.
	File  string
	Line  int
	Value *Node
}

// Get returns the value of a key; nil for a missing or null one.
func (n *Node) Get(key string) *Node {
	if e, ok := n.entry(key); ok && e.Value.Kind != Null {
		return e.Value
	}
	return nil
}

func (n *Node) entry(key string) (Entry, bool) {
	if n == nil {
		return Entry{}, false
	}
	for _, e := range n.Entries {
		if e.Key == key {
			return e, true
		}
	}
	return Entry{}, false
}

// Scalar reports whether the node is a text, a number or a boolean.
func (n *Node) Scalar() bool {
	return n != nil && (n.Kind == Text || n.Kind == Number || n.Kind == Bool)
}

// sized sets the size, the height and refers of a node from its children.
func (n *Node) sized() *Node {
	n.size, n.height, n.refers = 1+len(n.Text)/perValue, 0, n.Kind == Reference
	for _, i := range n.Items {
		n.add(i)
	}
	for _, e := range n.Entries {
		n.size += len(e.Key) / perValue
		n.add(e.Value)
	}
	return n
}

func (n *Node) add(child *Node) {
	n.size += child.size
	n.height = max(n.height, child.height+1)
	n.refers = n.refers || child.refers
}

// with returns a map with other entries.
func (n *Node) with(entries []Entry) *Node {
	changed := *n
	changed.Entries = entries
	return changed.sized()
}

// Without returns a map without a key.
func (n *Node) Without(key string) *Node {
	var kept []Entry
	for _, e := range n.Entries {
		if e.Key != key {
			kept = append(kept, e)
		}
	}
	return n.with(kept)
}

// With returns a map with another entry, which replaces an earlier one of the same key.
func (n *Node) With(added Entry) *Node {
	kept := make([]Entry, 0, len(n.Entries)+1)
	found := false
	for _, e := range n.Entries {
		if e.Key == added.Key {
			e, found = added, true
		}
		kept = append(kept, e)
	}
	if !found {
		kept = append(kept, added)
	}
	return n.with(kept)
}

// Merge merges maps deeply: the entries of over take precedence. Everything else, such as a list, is replaced.
func Merge(under, over *Node) *Node {
	if under == nil || over == nil || under.Kind != Map || over.Kind != Map {
		if over == nil {
			return under
		}
		return over
	}
	at := make(map[string]int, len(under.Entries))
	entries := make([]Entry, 0, len(under.Entries)+len(over.Entries))
	for _, e := range under.Entries {
		at[e.Key] = len(entries)
		entries = append(entries, e)
	}
	for _, e := range over.Entries {
		i, ok := at[e.Key]
		if !ok {
			at[e.Key] = len(entries)
			entries = append(entries, e)
			continue
		}
		e.Value = Merge(entries[i].Value, e.Value)
		entries[i] = e
	}
	return over.with(entries)
}

// Problem is a mistake in a configuration.
type Problem struct {
	File string
	Line int
	// Key is the path of keys, as in "build:script"; empty for the document as a whole.
	Key  string
	Text string
}

// String returns the problem as "file:line: key: text".
func (p Problem) String() string {
	var s strings.Builder
	if p.File != "" {
		s.WriteString(p.File + ":")
		if p.Line > 0 {
			fmt.Fprintf(&s, "%d:", p.Line)
		}
		s.WriteString(" ")
	}
	if p.Key != "" {
		s.WriteString(p.Key + ": ")
	}
	return s.String() + p.Text
}

// Problems are the mistakes of a configuration.
type Problems []Problem

// Error returns all problems, one a line.
func (p Problems) Error() string { return strings.Join(p.Strings(), "\n") }

// Strings returns the text of each problem.
func (p Problems) Strings() []string {
	all := make([]string, len(p))
	for i, one := range p {
		all[i] = one.String()
	}
	return all
}

// Add adds a problem at a place, unless there are MaxProblems, or the same problem was reported before.
func (p *Problems) Add(file string, line int, key, format string, args ...any) {
	if len(*p) >= MaxProblems {
		return
	}
	one := Problem{file, line, cut(key), cut(fmt.Sprintf(format, args...))}
	if !slices.Contains(*p, one) {
		*p = append(*p, one)
	}
}

// Append adds problems from elsewhere, with the same bounds.
func (p *Problems) Append(more Problems) {
	for _, one := range more {
		p.Add(one.File, one.Line, one.Key, "%s", one.Text)
	}
}

// cut returns the beginning of a text that is too long.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "..."
}

// At adds a problem at the place of a node.
func (p *Problems) At(n *Node, key, format string, args ...any) {
	p.Add(n.File, n.Line, key, format, args...)
}

// Join joins keys to a path of keys. A path that is too long for a problem stays as it is.
func Join(path, key string) string {
	switch {
	case path == "":
		return cut(key)
	case len(path) > maxText:
		return path
	}
	return path + ":" + cut(key)
}
