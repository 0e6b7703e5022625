package conventions_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// field is a place in the schema of a kind.
type field struct {
	// path leads from the object to the field, such as "spec.push[].role".
	path string
	// name is the JSON name. It is empty for the items of a list and the values of a map.
	name   string
	schema *apiextensionsv1.JSONSchemaProps
}

// walk visits a field and everything below it.
func walk(f field, visit func(field)) {
	visit(f)
	for name, below := range f.schema.Properties {
		walk(field{path: strings.TrimPrefix(f.path+"."+name, "."), name: name, schema: &below}, visit)
	}
	if f.schema.Items != nil && f.schema.Items.Schema != nil {
		walk(field{path: f.path + "[]", schema: f.schema.Items.Schema}, visit)
	}
	if f.schema.AdditionalProperties != nil && f.schema.AdditionalProperties.Schema != nil {
		walk(field{path: f.path + "{}", schema: f.schema.AdditionalProperties.Schema}, visit)
	}
}

// declared visits the fields of a schema that belong to Forgeplane. It skips the fields that Kubernetes defines: type and metadata, and the fields
// of metav1.Condition.
func declared(root *apiextensionsv1.JSONSchemaProps, visit func(field)) {
	walk(field{schema: root}, func(f field) {
		switch {
		case f.path == "", f.path == "apiVersion", f.path == "kind", f.path == "metadata":
		case strings.HasPrefix(f.path, "status.conditions[]"):
		default:
			visit(f)
		}
	})
}

// schemaRule is a convention that every field must follow.
type schemaRule struct {
	name string
	// check returns what is wrong with a field, or an empty string.
	check func(f field) string
	// breaks and keeps are examples of properties in YAML: each of breaks violates the rule, and each of keeps follows it.
	breaks, keeps []string
}

var schemaRules = []schemaRule{{
	name:  "a string is bounded",
	check: boundedString,
	breaks: []string{
		`title: {type: string}`,
		`title: {type: string, minLength: 1, pattern: "^a+$"}`,
		`titles: {type: array, maxItems: 3, x-kubernetes-list-type: atomic, items: {type: string}}`,
		`labels: {type: object, maxProperties: 3, additionalProperties: {type: string}}`,
	},
	keeps: []string{
		`title: {type: string, maxLength: 10}`,
		`mode: {type: string, enum: [Fast]}`,
		`seenAt: {type: string, format: date-time}`,
	},
}, {
	name:   "a declared time or duration has a rule instead of a format, which admits texts that Go cannot read",
	check:  readableText,
	breaks: []string{`expiresAt: {type: string, format: date-time}`, `ttl: {type: string, format: duration, maxLength: 32}`},
	keeps: []string{
		`ttl: {type: string, maxLength: 32, x-kubernetes-validations: [{rule: "duration(self) > duration('0s')", message: ttl must be a duration}]}`,
		`status: {type: object, properties: {seenAt: {type: string, format: date-time}}}`,
	},
}, {
	name:  "a list is bounded and defines how it is merged",
	check: boundedList,
	breaks: []string{
		`sizes: {type: array, x-kubernetes-list-type: atomic, items: {type: integer, format: int32}}`,
		`sizes: {type: array, maxItems: 3, items: {type: integer, format: int32}}`,
		`parts: {type: array, maxItems: 3, x-kubernetes-list-type: map, items: {type: object}}`,
		`parts: {type: array, maxItems: 3, x-kubernetes-list-type: set, items: {type: object}}`,
	},
	keeps: []string{
		`sizes: {type: array, maxItems: 3, x-kubernetes-list-type: set, items: {type: integer, format: int32}}`,
		`parts: {type: array, maxItems: 3, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object}}`,
	},
}, {
	name:  "an object has named fields, or is a bounded map",
	check: boundedObject,
	breaks: []string{
		`labels: {type: object, additionalProperties: {type: string, maxLength: 3}}`,
		`anything: {type: object}`,
		`anything: {type: object, x-kubernetes-preserve-unknown-fields: true}`,
		`either: {x-kubernetes-int-or-string: true}`,
	},
	keeps: []string{`labels: {type: object, maxProperties: 3, additionalProperties: {type: string, maxLength: 3}}`},
}, {
	name:   "a number is an integer with a size",
	check:  sizedNumber,
	breaks: []string{`ratio: {type: number}`, `count: {type: integer}`, `count: {type: integer, minimum: 1, maximum: 9}`},
	keeps:  []string{`count: {type: integer, format: int32}`, `count: {type: integer, format: int64}`},
}, {
	name:   "enums are in PascalCase, except words of a protocol",
	check:  pascalEnum,
	breaks: []string{`mode: {type: string, enum: [Fast, slow]}`, `mode: {type: string, enum: [VERY_FAST]}`, `mode: {type: string, enum: [""]}`},
	keeps:  []string{`mode: {type: string, enum: [Fast, VeryFast]}`, `format: {type: string, enum: [sha1, sha256]}`},
}, {
	name:  "a field is described by a sentence that begins with its name",
	check: described,
	breaks: []string{
		`title: {type: string, maxLength: 3}`,
		`title: {type: string, description: what people see.}`,
		`title: {type: string, description: title that people see}`,
	},
	keeps: []string{
		`title: {type: string, description: title that people see.}`,
		`title: {type: string, description: What people see.}`,
	},
}, {
	name:   "a rule has a message",
	check:  ruleWithMessage,
	breaks: []string{`size: {type: integer, x-kubernetes-validations: [{rule: "self > 1"}]}`},
	keeps:  []string{`size: {type: integer, x-kubernetes-validations: [{rule: "self > 1", message: size is to be above 1}]}`},
}, {
	name:   "a format is described in words, and not by a pattern, which kubectl would print",
	check:  noPattern,
	breaks: []string{`title: {type: string, maxLength: 3, pattern: "^a+$"}`},
	keeps: []string{
		`title: {type: string, maxLength: 3, x-kubernetes-validations: [{rule: "self.matches('^a+$')", message: title must consist of the letter a}]}`,
	},
}, {
	name:  "a field names a Secret instead of containing its value",
	check: noSecret,
	breaks: []string{
		`password: {type: string, maxLength: 9}`,
		`apiToken: {type: string, maxLength: 9}`,
		`secret: {type: object, properties: {value: {type: string}}}`,
		`secretRef: {type: object, properties: {name: {type: string}, value: {type: string}}}`,
	},
	keeps: []string{
		`secretRef: {type: object, properties: {name: {type: string}, key: {type: string}}}`,
		`tokenDigest: {type: string, maxLength: 64}`,
	},
}, {
	name:  "a default is not within what is merged as a whole, which Argo CD would show as out of sync if the default is not in Git",
	check: mergedDefault,
	breaks: []string{
		`secretRef: {type: object, x-kubernetes-map-type: atomic, properties: {name: {type: string}, key: {type: string, default: token}}}`,
		`parts: {type: array, x-kubernetes-list-type: atomic, items: {type: object, properties: {size: {type: integer, default: 1}}}}`,
	},
	keeps: []string{
		`secretRef: {type: object, properties: {name: {type: string}, key: {type: string, default: token}}}`,
		`sizes: {type: array, x-kubernetes-list-type: atomic, default: [1], items: {type: integer}}`,
		`parts: {type: array, x-kubernetes-list-type: map, items: {type: object, properties: {size: {type: integer, default: 1}}}}`,
	},
}, {
	name:  "a reference names exactly one thing",
	check: exactReference,
	breaks: []string{
		`userRef: {type: object, x-kubernetes-map-type: atomic, properties: {name: {type: string}, path: {type: string}, id: {type: integer}, uid: {type: string}}}`,
		`userRef: {type: object, properties: {name: {type: string}}}`,
		`userRef: {type: string}`,
		`owner: {type: object, properties: {name: {type: string}, path: {type: string}, id: {type: integer}, uid: {type: string}}}`,
	},
	keeps: []string{
		`userRef: {type: object, x-kubernetes-map-type: atomic, properties: {name: {type: string}, path: {type: string}, id: {type: integer}, uid: {type: string}}, x-kubernetes-validations: [{rule: "` + exactlyOne + `"}]}`,
		`secretRef: {type: object, x-kubernetes-map-type: atomic, required: [name], properties: {name: {type: string}}}`,
	},
}}

func boundedString(f field) string {
	s := f.schema
	if s.Type != "string" || s.MaxLength != nil || len(s.Enum) > 0 || s.Format == "date-time" {
		return ""
	}
	return "is a string without maxLength, enum or format date-time"
}

// mergedDefault looks for defaults below fields that are merged as a whole.
func mergedDefault(f field) (problem string) {
	list, object := f.schema.XListType, f.schema.XMapType
	if (list == nil || *list != "atomic") && (object == nil || *object != "atomic") {
		return ""
	}
	walk(f, func(below field) {
		if below.path != f.path && below.schema.Default != nil {
			problem = "is merged as a whole, but " + below.path + " has a default"
		}
	})
	return problem
}

// readableText looks for formats of what tenants write. An object with a text that Go cannot read would stop every list of its kind.
func readableText(f field) string {
	if f.schema.Type != "string" || f.schema.Format == "" || strings.HasPrefix(f.path, "status.") {
		return ""
	}
	return "has the format " + f.schema.Format + " instead of a rule"
}

func boundedList(f field) string {
	s := f.schema
	if s.Type != "array" {
		return ""
	}
	if s.MaxItems == nil {
		return "is a list without maxItems"
	}
	if s.XListType == nil {
		return "is a list without x-kubernetes-list-type"
	}
	scalar := s.Items != nil && s.Items.Schema != nil && s.Items.Schema.Type != "object" && s.Items.Schema.Type != "array"
	switch {
	case *s.XListType == "map" && len(s.XListMapKeys) == 0:
		return "is a map list without keys"
	case *s.XListType == "set" && !scalar:
		return "is a set of what is no scalar"
	}
	return ""
}

func boundedObject(f field) string {
	s := f.schema
	switch {
	case s.XPreserveUnknownFields != nil || s.XIntOrString || s.Type == "":
		return "takes values of any form"
	case s.Type != "object":
		return ""
	case s.AdditionalProperties != nil && s.MaxProperties == nil:
		return "is a map without maxProperties"
	case s.AdditionalProperties == nil && len(s.Properties) == 0:
		return "is an object without fields"
	}
	return ""
}

func sizedNumber(f field) string {
	s := f.schema
	if s.Type == "number" {
		return "is a float"
	}
	if s.Type == "integer" && s.Format != "int32" && s.Format != "int64" {
		return "is an integer without format int32 or int64"
	}
	return ""
}

// protocolWords are values with the spelling of Git or the interface documents.
var protocolWords = []string{
	"sha1", "sha256",
	"api", "read_api", "read_user", "read_repository", "write_repository", "read_registry", "write_registry", "sudo",
	"initial", "scheduled", "started", "replicated", "finished", "failed", "cleanup failed",
}

var pascalCase = regexp.MustCompile(`^([A-Z][a-z0-9]*)+$`)

func pascalEnum(f field) string {
	for _, value := range f.schema.Enum {
		word := strings.Trim(string(value.Raw), `"`)
		if !pascalCase.MatchString(word) && !slices.Contains(protocolWords, word) {
			return fmt.Sprintf("has the value %q", word)
		}
	}
	return ""
}

func described(f field) string {
	if f.name == "" {
		return "" // The list or map itself is described.
	}
	text := f.schema.Description
	switch {
	case text == "":
		return "has no description"
	case !strings.HasSuffix(text, "."):
		return fmt.Sprintf("has a description that does not end in a period: %q", text)
	case !strings.HasPrefix(text, f.name+" ") && (text[0] < 'A' || text[0] > 'Z'):
		return fmt.Sprintf("has a description that begins neither with its name nor as a sentence: %q", text)
	}
	return ""
}

func ruleWithMessage(f field) string {
	for _, v := range f.schema.XValidations {
		if v.Message == "" && v.MessageExpression == "" {
			return fmt.Sprintf("has the rule %q without a message", v.Rule)
		}
	}
	return ""
}

func noPattern(f field) string {
	if f.schema.Pattern != "" {
		return fmt.Sprintf("has the pattern %q instead of a rule with a message", f.schema.Pattern)
	}
	return ""
}

var secretName = regexp.MustCompile(`(?i)(password|passphrase|secret|token|credential|privatekey|apikey)`)

func noSecret(f field) string {
	s := f.schema
	if !secretName.MatchString(f.name) || strings.HasSuffix(f.name, "Digest") || strings.HasSuffix(f.name, "Fingerprint") {
		return ""
	}
	switch s.Type {
	case "boolean", "integer":
		return ""
	case "object":
		if strings.HasSuffix(f.name, "Ref") && onlyProperties(s, "name", "key") {
			return ""
		}
	}
	return "may hold a secret: only a reference or a digest may"
}

// exactlyOne is the rule that the marker ExactlyOneOf=name;path;id becomes.
const exactlyOne = "(has(self.name)?1:0)+(has(self.path)?1:0)+(has(self.id)?1:0) == 1"

func exactReference(f field) string {
	s := f.schema
	reference := s.Type == "object" && len(s.Properties) == 4 && onlyProperties(s, "name", "path", "id", "uid")
	secret := s.Type == "object" && onlyProperties(s, "name", "key") && slices.Contains(s.Required, "name")
	switch {
	case reference && strings.HasSuffix(f.path, "[]"): // the list has a name in the plural
		if !slices.ContainsFunc(s.XValidations, func(v apiextensionsv1.ValidationRule) bool { return v.Rule == exactlyOne }) {
			return "may name several things, or nothing"
		}
		return ""
	case !strings.HasSuffix(f.name, "Ref"):
		if reference {
			return "is a reference whose name does not end in Ref"
		}
		return ""
	case !reference && !secret:
		return "is neither a Reference nor the reference to a Secret"
	case reference && (s.XMapType == nil || *s.XMapType != "atomic"):
		return "is a reference that can be merged in parts"
	case reference && !slices.ContainsFunc(s.XValidations, func(v apiextensionsv1.ValidationRule) bool { return v.Rule == exactlyOne }):
		return "may name several things, or nothing"
	}
	return ""
}

func onlyProperties(s *apiextensionsv1.JSONSchemaProps, names ...string) bool {
	if len(s.Properties) == 0 {
		return false
	}
	for name := range s.Properties {
		if !slices.Contains(names, name) {
			return false
		}
	}
	return true
}
