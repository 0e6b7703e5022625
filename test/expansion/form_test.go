package expansion_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/forgeplane/forgeplane/internal/ci/config"
)

// conditions are the keywords that are compared as they are written.
var conditions = []string{"rules", "only", "except"}

// add adds the keywords of a job. long brings keywords into their long forms.
func (v view) add(name string, job map[string]any, long func(map[string]any)) {
	for _, key := range conditions {
		if job[key] != nil {
			v[name+"."+key] = text(flat(job[key]))
		}
		delete(job, key)
	}
	for _, key := range []string{"needs", "dependencies"} {
		if list, ok := job[key].([]any); ok && len(list) == 0 {
			v[name+"."+key] = "none"
		}
	}
	long(job)
	for key, value := range tidy(job).(map[string]any) {
		v[name+"."+key] = text(value)
	}
}

// text returns a value as JSON.
func text(of any) string {
	content, err := json.Marshal(of)
	if err != nil {
		panic(err) // all values are from JSON or YAML
	}
	return string(content)
}

// plain returns a YAML value with its scalars as they are written.
func plain(n *yaml.Node) any {
	switch n.Kind {
	case yaml.DocumentNode:
		return plain(n.Content[0])
	case yaml.AliasNode:
		return plain(n.Alias)
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			list[i] = plain(item)
		}
		return list
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			m[n.Content[i].Value] = plain(n.Content[i+1])
		}
		return m
	}
	if n.ShortTag() == "!!null" {
		return nil
	}
	return n.Value
}

// tidy returns a value with its scalars as texts, and without values that are the same as a missing keyword.
func tidy(of any) any {
	switch of := of.(type) {
	case nil:
		return ""
	case []any:
		made := make([]any, len(of))
		for i, item := range of {
			made[i] = tidy(item)
		}
		return made
	case map[string]any:
		made := map[string]any{}
		for key, value := range of {
			if value = tidy(value); !slices.Contains([]string{`""`, `"0"`, `"false"`, `[]`, `{}`}, text(value)) {
				made[key] = value
			}
		}
		return made
	default:
		return fmt.Sprint(of)
	}
}

// flat returns a value with the items of lists in lists as items of one list.
func flat(of any) any {
	list, ok := of.([]any)
	if !ok {
		return of
	}
	made := []any{}
	for _, item := range list {
		if inner, ok := flat(item).([]any); ok {
			made = append(made, inner...)
		} else {
			made = append(made, item)
		}
	}
	return made
}

// items returns the items of a list, a single value as its only item, and nothing for nil.
func items(of any) []any {
	if of == nil {
		return nil
	}
	if list, ok := of.([]any); ok {
		return list
	}
	return []any{of}
}

// named returns a map, or a scalar as the value of a key of a map. The maps of anchors are shared, so it returns a copy.
func named(of any, key string) map[string]any {
	if m, ok := of.(map[string]any); ok {
		return maps.Clone(m)
	}
	return map[string]any{key: of}
}

// fill sets missing values.
func fill(m, defaults map[string]any) {
	for key, value := range defaults {
		if m[key] == nil {
			m[key] = value
		}
	}
}

// lists makes lists of values that can be single.
func lists(m map[string]any, keys ...string) {
	for _, key := range keys {
		if m[key] != nil {
			m[key] = items(m[key])
		}
	}
}

// rename moves a value to another key.
func rename(m map[string]any, from, to string) {
	if value, ok := m[from]; ok {
		delete(m, from)
		m[to] = value
	}
}

// variables returns a map of variables as a list of texts.
func variables(of any) []any {
	m, _ := of.(map[string]any)
	made := []any{}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		value := named(m[key], "value")
		made = append(made, assignment(key, fmt.Sprint(tidy(value["value"])), value["expand"] == "false"))
	}
	return made
}

// assignment returns the text of a variable.
func assignment(key, value string, raw bool) string {
	if raw {
		return key + "=" + value + " (raw)"
	}
	return key + "=" + value
}

// nanoseconds returns a duration in words as a number, and another value as it is.
func nanoseconds(of any) any {
	if of == "never" {
		return -1
	}
	d, err := config.ParseDuration(fmt.Sprint(of))
	if of == nil || err != nil {
		return of
	}
	return d.Nanoseconds()
}
