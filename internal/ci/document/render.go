package document

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxRendered is the maximum size of a rendered document in bytes.
const maxRendered = 8 << 20

// ErrTooLarge says that a document is too large to be rendered.
var ErrTooLarge = fmt.Errorf("the merged configuration is larger than %d bytes", maxRendered)

// Render returns a map as a YAML document. The error can be ErrTooLarge.
func Render(n *Node) (string, error) {
	if n == nil || len(n.Entries) == 0 {
		return "--- {}\n", nil
	}
	if n.size > MaxNodes {
		return "", ErrTooLarge
	}
	var text limited
	text.WriteString("---\n")
	e := yaml.NewEncoder(&text)
	err := errors.Join(e.Encode(n.rendered()), e.Close())
	if text.full {
		err = ErrTooLarge // the library does not wrap it
	}
	return text.String(), err
}

// limited is a text of at most maxRendered bytes.
type limited struct {
	strings.Builder
	full bool
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if l.full = l.full || l.Len()+len(p) > maxRendered; l.full {
		return 0, ErrTooLarge
	}
	return l.Builder.Write(p)
}

func (n *Node) rendered() *yaml.Node {
	switch n.Kind {
	case Null:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
	case Text:
		var text yaml.Node
		text.SetString(n.Text)
		return &text
	case List, Reference:
		made := &yaml.Node{Kind: yaml.SequenceNode}
		if n.Kind == Reference {
			made.Tag, made.Style = "!reference", yaml.FlowStyle|yaml.TaggedStyle
		}
		for _, item := range n.Items {
			made.Content = append(made.Content, item.rendered())
		}
		return made
	case Map:
		made := &yaml.Node{Kind: yaml.MappingNode}
		for _, e := range n.Entries {
			var key yaml.Node
			key.SetString(e.Key)
			made.Content = append(made.Content, &key, e.Value.rendered())
		}
		return made
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: n.Text}
	}
}
