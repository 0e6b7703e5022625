package document

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3" // its nodes have line numbers and tags, which problems and !reference need
)

// Parse reads a file that has a map in YAML. The problems are those that keep it from being read, and warnings are about what is ambiguous.
// Without a map it returns nil.
func Parse(file string, content []byte) (root *Node, problems, warnings Problems) {
	p := &parser{file: file, known: map[*yaml.Node]*Node{}}
	switch {
	case len(content) > MaxBytes:
		p.problems.Add(file, 0, "", "the file is larger than %d bytes", MaxBytes)
		return nil, p.problems, nil
	case !utf8.Valid(content):
		p.problems.Add(file, 0, "", "the file is not UTF-8")
		return nil, p.problems, nil
	}
	n, err := decode(content)
	switch {
	case errors.Is(err, io.EOF):
		return nil, nil, nil
	case err != nil:
		line, text := place(err)
		p.problems.Add(file, line, "", "%s", text)
		return nil, p.problems, nil
	}
	root = p.convert(n, 0)
	switch {
	case len(p.problems) > 0:
		return nil, p.problems, p.warnings
	case root.Kind == Null:
		return nil, nil, nil
	case root.Kind != Map:
		p.problems.At(root, "", "the file must be a map of keywords and jobs")
		return nil, p.problems, nil
	}
	return root, nil, p.warnings
}

// errDocuments says that a file has a second document, which only inputs of a configuration need.
var errDocuments = errors.New("the file has several YAML documents: inputs (spec) are not supported")

// decode returns the node of the only document.
func decode(content []byte) (*yaml.Node, error) {
	var n, other yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(content))
	if err := d.Decode(&n); err != nil {
		return nil, err
	}
	if err := d.Decode(&other); !errors.Is(err, io.EOF) {
		if err == nil {
			err = errDocuments
		}
		return nil, err
	}
	if len(n.Content) == 0 {
		return nil, io.EOF
	}
	return n.Content[0], nil
}

var inLine = regexp.MustCompile(`^line (\d+): `)

// place returns the line of an error of the YAML library, and its text without it.
func place(err error) (line int, text string) {
	line, text = 1, strings.TrimPrefix(err.Error(), "yaml: ") // the library leaves out the first line
	if found := inLine.FindStringSubmatch(text); found != nil {
		line, _ = strconv.Atoi(found[1])
		text = text[len(found[0]):]
	}
	if !errors.Is(err, errDocuments) {
		text = "invalid YAML: " + text
	}
	return line, text
}

// parser converts nodes of the YAML library.
type parser struct {
	file string
	// known are the nodes with an anchor; nil while one is being converted.
	known              map[*yaml.Node]*Node
	count              int
	problems, warnings Problems
}

// nothing stands for a node with a problem.
var nothing = &Node{size: 1}

func (p *parser) fail(n *yaml.Node, format string, args ...any) *Node {
	p.problems.Add(p.file, n.Line, "", format, args...)
	return nothing
}

func (p *parser) convert(n *yaml.Node, depth int) *Node {
	switch {
	case len(p.problems) > 0: // most problems here are about the document as a whole
		return nothing
	case depth > MaxDepth:
		return p.fail(n, "the values are nested more than %d deep", MaxDepth)
	}
	if n.Kind == yaml.AliasNode {
		switch found, ok := p.known[n.Alias]; {
		case !ok: // the anchor belongs to a key, which was not converted
			return p.convert(n.Alias, depth)
		case found == nil:
			return p.fail(n, "the anchor %q contains itself", n.Value)
		case depth+found.height > MaxDepth:
			return p.fail(n, "the values are nested more than %d deep", MaxDepth)
		case p.counts(n, found.size):
			return found
		}
		return nothing
	}
	if !p.counts(n, 1+len(n.Value)/perValue) {
		return nothing
	}
	if n.Anchor != "" {
		p.known[n] = nil
	}
	made := p.value(n, depth)
	if n.Anchor != "" {
		p.known[n] = made
	}
	return made
}

// counts reports whether the file can have further values.
func (p *parser) counts(n *yaml.Node, values int) bool {
	if p.count += values; p.count > MaxNodes {
		p.fail(n, "the file has more than %d values, with its anchors expanded", MaxNodes)
		return false
	}
	return true
}

func (p *parser) value(n *yaml.Node, depth int) *Node {
	made := &Node{File: p.file, Line: n.Line}
	switch tag := n.ShortTag(); {
	case n.Kind == yaml.SequenceNode && (tag == "!!seq" || tag == "!reference"):
		made.Kind = List
		for _, item := range n.Content {
			made.Items = append(made.Items, p.convert(item, depth+1))
		}
		if tag == "!reference" {
			made.Kind = Reference
			p.checkReference(n, made)
		}
	case n.Kind == yaml.MappingNode && tag == "!!map":
		made.Kind = Map
		p.entries(made, n, depth)
	case n.Kind == yaml.ScalarNode:
		kind, ok := scalars[tag]
		if !ok {
			return p.fail(n, "the tag %s is unknown", tag)
		}
		made.Kind, made.Text = kind, n.Value
		if n.Style == 0 && tag == "!!str" && slices.Contains(words, strings.ToLower(n.Value)) {
			made.Kind = Bool
		}
	default:
		return p.fail(n, "the tag %s is unknown", tag)
	}
	return made.sized()
}

var scalars = map[string]Kind{
	"!!null": Null, "!!bool": Bool, "!!int": Number, "!!float": Number, "!!str": Text, "!!timestamp": Text, "!!merge": Text,
}

// words are the further booleans of YAML 1.1, as in GitLab.
var words = []string{"yes", "no", "on", "off"}

func (p *parser) checkReference(n *yaml.Node, r *Node) {
	for _, key := range r.Items {
		if !key.Scalar() {
			p.fail(n, "a !reference must be a list of keys, such as !reference [.setup, script]")
			return
		}
	}
	if len(r.Items) == 0 || len(r.Items) > maxReference {
		p.fail(n, "a !reference must have 1 to %d keys", maxReference)
	}
}

// entries adds the entries of a map. Its own keys take precedence over those of merged maps (<<), and earlier merged maps over later ones.
func (p *parser) entries(made *Node, n *yaml.Node, depth int) {
	var merged []*Node
	at := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], p.convert(n.Content[i+1], depth+1)
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			p.fail(key, "a key must be a text")
			return
		}
		if key.ShortTag() == "!!merge" {
			merged = append(merged, value)
			continue
		}
		if !p.counts(key, len(key.Value)/perValue) {
			return
		}
		e := Entry{key.Value, p.file, n.Content[i].Line, value}
		if before, twice := at[key.Value]; twice {
			p.warnings.Add(p.file, e.Line, key.Value, "the key is given twice, and this value replaces the one in line %d", made.Entries[before].Line)
			made.Entries[before] = e
			continue
		}
		at[key.Value] = len(made.Entries)
		made.Entries = append(made.Entries, e)
	}
	p.merge(made, n, at, merged)
}

func (p *parser) merge(made *Node, n *yaml.Node, at map[string]int, merged []*Node) {
	for _, m := range merged {
		all := []*Node{m}
		if m.Kind == List {
			all = m.Items
		}
		for _, one := range all {
			if one.Kind != Map {
				p.fail(n, "<< must be a map, or a list of maps")
				return
			}
			for _, e := range one.Entries {
				if _, has := at[e.Key]; has {
					continue
				}
				at[e.Key] = len(made.Entries)
				made.Entries = append(made.Entries, e)
			}
		}
	}
}
