package document

import (
	"go.yaml.in/yaml/v3"
)

// Render returns a map as a YAML document.
func Render(n *Node) (string, error) {
	if n == nil || len(n.Entries) == 0 {
		return "--- {}\n", nil
	}
	text, err := yaml.Marshal(n.rendered())
	return "---\n" + string(text), err
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
