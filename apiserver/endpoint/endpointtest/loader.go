package endpointtest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// loader reads one document.
type loader struct {
	document map[string]any
	compiler *jsonschema.Compiler
}

// base is the URI under which the compiler knows the document.
const base = "urn:openapi#"

func newLoader(text []byte) (*loader, error) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("reading the document: %w", err)
	}
	official, err := officialSchema()
	if err != nil {
		return nil, fmt.Errorf("reading the schema of OpenAPI: %w", err)
	}
	if err := official.Validate(value); err != nil {
		return nil, fmt.Errorf("the document is not OpenAPI 3.1: %w", err)
	}
	l := &loader{document: value.(map[string]any), compiler: jsonschema.NewCompiler()}
	l.compiler.DefaultDraft(jsonschema.Draft2020)
	l.compiler.AssertFormat()
	return l, l.compiler.AddResource(base, value)
}

// schema compiles the schema at a place in the document.
func (l *loader) schema(at ...string) (*jsonschema.Schema, error) {
	return l.compiler.Compile(base + pointer(at))
}

var escape = strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D", "%", "%25")

func pointer(at []string) string {
	var p strings.Builder
	for _, key := range at {
		p.WriteString("/" + escape.Replace(key))
	}
	return p.String()
}

// allSchemas compiles, and so checks, every schema within a part of the document.
func (l *loader) allSchemas(part any, at ...string) error {
	switch v := part.(type) {
	case map[string]any:
		for key, value := range v {
			here := within(at, key)
			if key == "schema" {
				if _, err := l.schema(here...); err != nil {
					return fmt.Errorf("a schema is not valid: %w", err)
				}
				continue
			}
			if err := l.allSchemas(value, here...); err != nil {
				return err
			}
		}
	case []any:
		for i, value := range v {
			if err := l.allSchemas(value, within(at, fmt.Sprint(i))...); err != nil {
				return err
			}
		}
	}
	return nil
}

// examples checks the examples of the contents at a place against their schemas.
func (l *loader) examples(at ...string) error {
	_, contents := l.find(at)
	for kind := range contents {
		example, has := child(contents, kind)["example"]
		if !has {
			continue
		}
		schema, err := l.schema(within(at, kind, "schema")...)
		if err != nil {
			return err
		}
		if err := schema.Validate(example); err != nil {
			return fmt.Errorf("the example of %s is not valid: %w", kind, err)
		}
	}
	return nil
}

func (l *loader) operation(at ...string) (operation, error) {
	op := operation{}
	_, responses := l.find(at)
	for status := range responses {
		r, err := l.response(within(at, status))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", status, err)
		}
		op[status] = r
	}
	return op, nil
}

func (l *loader) response(at []string) (response, error) {
	at, found := l.find(at)
	r := response{headers: map[string]header{}}
	var err error
	if _, r.content = child(found, "content")["*/*"]; !r.content && child(found, "content") != nil {
		if r.body, err = l.schema(within(at, "content", "application/json", "schema")...); err != nil {
			return r, err
		}
	}
	_, r.plain = child(found, "content")["text/plain"]
	for name := range child(found, "headers") {
		at, found := l.find(within(at, "headers", name))
		schema, err := l.schema(within(at, "schema")...)
		if err != nil {
			return r, err
		}
		required, _ := found["required"].(bool)
		r.headers[name] = header{required: required, schema: schema}
	}
	return r, nil
}

// find returns the object at a place in the document, and its actual place if it is reached by a reference.
func (l *loader) find(at []string) (place []string, found map[string]any) {
	found = l.document
	for _, key := range at {
		found = child(found, key)
	}
	if ref, ok := found["$ref"].(string); ok {
		return l.find(strings.Split(strings.TrimPrefix(ref, "#/"), "/"))
	}
	return at, found
}

// within returns a place below another.
func within(at []string, keys ...string) []string { return slices.Concat(at, keys) }

func child(of map[string]any, key string) map[string]any {
	c, _ := of[key].(map[string]any)
	return c
}
