package apiserver

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

// operation is an endpoint as the OpenAPI document describes it, with a request that succeeds.
type operation struct {
	sample sample
	// path and query have the names of the parameters there; form those of a form, with brackets.
	path, query, form []string
	// properties lead to those of a JSON body; an element of a list is "[]".
	properties [][]string
}

// described is the part of a description that is of use here.
type described struct {
	Parameters []struct {
		Name, In string
	}
	RequestBody struct {
		Content map[string]struct{ Schema shape }
	}
}

// shape is a schema, as far as it leads to others.
type shape struct {
	Properties map[string]shape
	Items      *shape
}

// operations reads the document that a handler serves.
func operations(t *testing.T, h *endpoint.Handler) []operation {
	t.Helper()
	var document struct {
		Paths map[string]map[string]described
	}
	if err := json.Unmarshal(h.OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	var all []operation
	for _, s := range samples(h) {
		if s.note != "" {
			continue
		}
		said, ok := document.Paths[s.endpoint.Path()][strings.ToLower(s.endpoint.Method())]
		if !ok {
			t.Fatalf("the document has nothing about %s", s)
		}
		op := operation{sample: s}
		for _, p := range said.Parameters {
			if p.In == "path" {
				op.path = append(op.path, p.Name)
			} else {
				op.query = append(op.query, p.Name)
			}
		}
		content := said.RequestBody.Content
		op.form = slices.Sorted(maps.Keys(content["application/x-www-form-urlencoded"].Schema.Properties))
		op.properties = content["application/json"].Schema.leaves(nil)
		all = append(all, op)
	}
	return all
}

// leaves are the ways to each property, and to those within it.
func (s shape) leaves(way []string) [][]string {
	var all [][]string
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		below := s.Properties[name]
		here := append(slices.Clip(way), name)
		all = append(all, here)
		if below.Items != nil {
			here = append(slices.Clip(here), "[]")
			below = *below.Items
			all = append(all, here)
		}
		all = append(all, below.leaves(here)...)
	}
	return all
}

// with returns the sample's body with a property set to a text of JSON, which need not be any.
func (op operation) with(values map[string]string) string {
	properties := map[string]json.RawMessage{}
	if op.sample.body != "" {
		if err := json.Unmarshal([]byte(op.sample.body), &properties); err != nil {
			panic(err)
		}
	}
	for name, value := range values {
		properties[name] = json.RawMessage(value)
	}
	var b strings.Builder
	b.WriteString("{")
	for i, name := range slices.Sorted(maps.Keys(properties)) {
		if i > 0 {
			b.WriteString(",")
		}
		key, _ := json.Marshal(name)
		b.Write(key)
		b.WriteString(":")
		b.Write(properties[name])
	}
	b.WriteString("}")
	return b.String()
}

// at returns the property of the body that a way begins with, and a text of JSON for it that has the value at the end.
func at(way []string, value string) (name, text string) {
	text = value
	for _, step := range slices.Backward(way[1:]) {
		if step == "[]" {
			text = "[" + text + "]"
			continue
		}
		key, _ := json.Marshal(step)
		text = "{" + string(key) + ":" + text + "}"
	}
	return way[0], text
}

// asForm is the sample's body as a form.
func (op operation) asForm() url.Values {
	form := url.Values{}
	properties := map[string]any{}
	if op.sample.body != "" {
		if err := json.Unmarshal([]byte(op.sample.body), &properties); err != nil {
			panic(err)
		}
	}
	for name, value := range properties {
		switch v := value.(type) {
		case []any:
			for _, element := range v {
				form.Add(name+"[]", text(element))
			}
		default:
			form.Set(name, text(v))
		}
	}
	return form
}

func text(value any) string {
	if s, ok := value.(string); ok {
		return s
	}
	encoded, _ := json.Marshal(value)
	return string(encoded)
}
