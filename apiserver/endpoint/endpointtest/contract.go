// Package endpointtest checks the answers of an API against its OpenAPI document, for tests.
package endpointtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"github.com/pb33f/libopenapi/datamodel" // includes the official schema of OpenAPI documents
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/forgeplane/forgeplane/apiserver/endpoint/router"
)

// Contract is an OpenAPI 3.1 document against which answers are checked.
type Contract struct {
	routes     *router.Router[string] // the operations' keys
	operations map[string]operation
	unknown    *jsonschema.Schema
}

// operation has the answers of one operation by status.
type operation map[string]response

// response describes an answer that the document allows.
type response struct {
	body    *jsonschema.Schema // nil if there is no body
	plain   bool               // whether the body may also be plain text
	content bool               // whether the body may have any content
	headers map[string]header
}

type header struct {
	required bool
	schema   *jsonschema.Schema
}

// Load reads a document. It fails if the document does not match the OpenAPI schema, if one of the document's own schemas is not valid, if
// the example of a request does not match its schema, or if two operations cannot be told apart.
func Load(text []byte) (*Contract, error) {
	l, err := newLoader(text)
	if err != nil {
		return nil, err
	}
	c := &Contract{routes: router.New[string](), operations: map[string]operation{}}
	if c.unknown, err = l.schema("components", "schemas", "ParameterError"); err != nil {
		return nil, err
	}
	seen := map[string]string{}
	for path, item := range child(l.document, "paths") {
		form := parameter.ReplaceAllString(path, "{}")
		if other, ok := seen[form]; ok {
			return nil, fmt.Errorf("%s and %s are one path", path, other)
		}
		seen[form] = path
		for method, op := range item.(map[string]any) {
			if err := l.allSchemas(op, "paths", path, method); err != nil {
				return nil, err
			}
			pattern := strings.ToUpper(method) + " " + path
			c.routes.Add(strings.ToUpper(method), withWildcard(path, op), pattern)
			if err := l.examples("paths", path, method, "requestBody", "content"); err != nil {
				return nil, fmt.Errorf("%s: %w", pattern, err)
			}
			if c.operations[pattern], err = l.operation("paths", path, method, "responses"); err != nil {
				return nil, fmt.Errorf("%s: %w", pattern, err)
			}
		}
	}
	return c, unique(l.document)
}

var parameter = regexp.MustCompile(`\{[^}]*\}`)

// withWildcard returns a path in which the parameter that may contain slashes is marked as a wildcard.
func withWildcard(path string, op any) string {
	parameters, _ := op.(map[string]any)["parameters"].([]any)
	for _, p := range parameters {
		if said, _ := p.(map[string]any); said["x-wildcard"] == true {
			path = strings.Replace(path, fmt.Sprintf("{%s}", said["name"]), fmt.Sprintf("{%s...}", said["name"]), 1)
		}
	}
	return path
}

// unique reports operations with the same ID.
func unique(document map[string]any) error {
	seen := map[any]string{}
	for path, item := range child(document, "paths") {
		for method, op := range item.(map[string]any) {
			id := op.(map[string]any)["operationId"]
			if other, ok := seen[id]; ok {
				return fmt.Errorf("%s %s and %s have the operationId %v", method, path, other, id)
			}
			seen[id] = method + " " + path
		}
	}
	return nil
}

// Operation returns the document's operation for a method and a path, such as "GET /projects/{id}"; empty without one. The path is as in Check.
func (c *Contract) Operation(method, path string) string {
	pattern, _, _ := c.routes.Find(method, path)
	return pattern
}

// Check checks an answer with the given body against the document's operation for the method and the path. The path is escaped and has no
// prefix such as /api/v4. If the document has no such operation, the answer must be 404 or 405.
func (c *Contract) Check(method, path string, status int, h http.Header, body []byte) error {
	pattern := c.Operation(method, path)
	op, ok := c.operations[pattern]
	switch {
	case !ok && status != http.StatusNotFound && status != http.StatusMethodNotAllowed:
		return fmt.Errorf("the document has no such operation, but the answer is %d", status)
	case !ok:
		return matches(response{body: c.unknown}, method, h, body)
	}
	want, ok := op[fmt.Sprint(status)]
	if !ok {
		return fmt.Errorf("the document has no answer %d for %s; the body is %.300s", status, pattern, body)
	}
	if err := matches(want, method, h, body); err != nil {
		return fmt.Errorf("the answer %d is not what the document says of %s: %w; the body is %.300s", status, pattern, err, body)
	}
	return nil
}

func matches(want response, method string, h http.Header, body []byte) error {
	for name, wanted := range want.headers {
		if err := wanted.matches(h.Values(name)); err != nil {
			return fmt.Errorf("header %s: %w", name, err)
		}
	}
	if method == http.MethodHead || want.content {
		return nil
	}
	if want.body == nil {
		if len(body) > 0 {
			return fmt.Errorf("there is a body")
		}
		return nil
	}
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if kind == "text/plain" && want.plain {
		return nil
	}
	if err != nil || kind != "application/json" {
		return fmt.Errorf("the content type is %q", h.Get("Content-Type"))
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("the body is not JSON: %w", err)
	}
	return want.body.Validate(value)
}

func (want header) matches(values []string) error {
	switch {
	case len(values) == 0 && want.required:
		return fmt.Errorf("is missing")
	case len(values) == 0:
		return nil
	case len(values) > 1:
		return fmt.Errorf("is there %d times", len(values))
	}
	if want.schema.Validate(values[0]) == nil {
		return nil
	}
	return want.schema.Validate(json.Number(values[0]))
}

// officialSchema is the schema that every OpenAPI 3.1 document must match.
var officialSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	official, err := jsonschema.UnmarshalJSON(strings.NewReader(datamodel.OpenAPI31SchemaData))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("openapi-3.1.json", official); err != nil {
		return nil, err
	}
	return compiler.Compile("openapi-3.1.json")
})
