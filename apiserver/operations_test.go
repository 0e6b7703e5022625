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
	// path, query and form are the names of the parameters in the path, the query and a form. Names in a form have brackets.
	path, query, form []string
	// properties are the ways to the properties of a JSON body. An element of a list is "[]".
	properties [][]string
	// example is the example of a JSON body.
	example json.RawMessage
}

// described is the part of an operation in the document that these tests use.
type described struct {
	Parameters []struct {
		Name, In string
	}
	RequestBody struct {
		Content map[string]struct {
			Schema  shape
			Example json.RawMessage
		}
	}
}

// shape is the part of a schema that contains other schemas.
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
		op.example = content["application/json"].Example
		all = append(all, op)
	}
	return all
}

// leaves returns the ways to all properties, including nested ones.
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

// with returns the sample's body with other values of some properties. The values should be JSON, but can be malformed.
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

// at returns the first property of a way, and a value for it in JSON in which the way leads to the given value.
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

// asForm returns the sample's body as a form.
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
