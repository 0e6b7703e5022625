package endpoint

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

var (
	noneType      = reflect.TypeFor[None]()
	listType      = reflect.TypeFor[list]()
	marshalerType = reflect.TypeFor[json.Marshaler]()
	textType      = reflect.TypeFor[encoding.TextMarshaler]()
)

// The names of the error families.
const (
	parameterError  = "ParameterError"
	messageError    = "MessageError"
	validationError = "ValidationError"
	tokenError      = "TokenError"
)

// schemas has the schemas of the document. Named structs are shared under their name.
type schemas struct {
	components object
	names      map[reflect.Type]string
}

func newSchemas() *schemas {
	text := object{"type": "string"}
	texts := object{"type": "array", "items": text}
	described := object{"type": "string", "description": "Details for people, beside the text that clients compare. The wording can change."}
	family := func(description string, required []string, properties object) object {
		return object{
			"type": "object", "description": description, "properties": properties, "required": required, "additionalProperties": false,
		}
	}
	return &schemas{names: map[reflect.Type]string{}, components: object{
		parameterError: family("Parameters that are missing or not valid; several problems are joined by commas.",
			[]string{"error"}, object{"error": text, "error_description": described}),
		messageError: family("The reason why the request failed.",
			[]string{"message"}, object{"message": object{"anyOf": []object{text, texts}}, "error_description": described}),
		validationError: family("The problems, by attribute.",
			[]string{"message"}, object{
				"message":           object{"type": "object", "additionalProperties": object{"anyOf": []object{texts, text}}},
				"error_description": described,
			}),
		tokenError: family("A token that is not accepted, or whose scopes do not suffice: scope lists those of which one would.",
			[]string{"error", "error_description"}, object{"error": text, "error_description": text, "scope": text}),
	}}
}

// of returns the schema of the JSON that encoding/json produces for a type.
func (s *schemas) of(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[Time]():
		return object{"type": []string{"string", "null"}, "format": "date-time"}
	case t == reflect.TypeFor[Date]():
		return object{"type": []string{"string", "null"}, "format": "date"}
	case t == timeType:
		return object{"type": "string", "format": "date-time"}
	case t.Kind() == reflect.Pointer:
		return nullable(s.of(t.Elem()))
	case t.Kind() == reflect.Interface, t.Implements(marshalerType), reflect.PointerTo(t).Implements(marshalerType):
		return object{}
	case t.Implements(textType):
		return object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
			return object{"type": "string", "contentEncoding": "base64"}
		}
		return object{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		if t.Name() == "" {
			return s.structure(t)
		}
		return reference("schemas", s.component(t))
	default:
		return scalar(t)
	}
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// component returns the name of the shared schema of a struct. If two structs have the same name, the second one is prefixed with its
// package.
func (s *schemas) component(t reflect.Type) string {
	if name, ok := s.names[t]; ok {
		return name
	}
	name := capital(notInNames.ReplaceAllString(t.Name(), "_"))
	if _, taken := s.components[name]; taken {
		name = capital(t.PkgPath()[strings.LastIndex(t.PkgPath(), "/")+1:]) + name
	}
	if _, taken := s.components[name]; taken {
		panic(fmt.Sprintf("endpoint: %s: another type has the name %s in the OpenAPI document", t, name))
	}
	s.names[t], s.components[name] = name, object{} // before its fields, because they can refer to the same type
	s.components[name] = s.structure(t)
	return name
}

func (s *schemas) structure(t reflect.Type) object {
	st := newStructure()
	s.collect(st, t, true)
	return st.schema()
}

// collect adds the fields of a struct. The fields of embedded structs come last, and the struct's own fields hide them.
func (s *schemas) collect(into *structure, t reflect.Type, present bool) {
	var embedded []reflect.StructField
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" && options == "":
			continue
		case f.Anonymous && name == "" && pointedTo(f.Type).Kind() == reflect.Struct:
			embedded = append(embedded, f)
			continue
		case !f.IsExported():
			continue
		case name == "":
			name = f.Name
		}
		has := strings.Split(options, ",")
		value := s.of(f.Type)
		if slices.Contains(has, "string") {
			value = object{"type": "string"}
		}
		if doc := f.Tag.Get("doc"); doc != "" {
			value["description"] = doc
		}
		into.add(name, value, present && !slices.Contains(has, "omitempty") && !slices.Contains(has, "omitzero"))
	}
	for _, f := range embedded {
		s.collect(into, pointedTo(f.Type), present && f.Type.Kind() == reflect.Struct)
	}
}

func pointedTo(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// root returns the type of a body: a pointer to a struct is never nil, and one to a scalar can be.
func root(t reflect.Type) reflect.Type {
	if to := pointedTo(t); to.Kind() == reflect.Struct {
		return to
	}
	return t
}

func scalar(t reflect.Type) object {
	switch t.Kind() {
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int32:
		return object{"type": "integer", "format": "int32"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer", "format": "int64"}
	case reflect.Int8, reflect.Int16:
		return object{"type": "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return object{"type": "integer", "minimum": 0}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	default:
		panic(fmt.Sprintf("endpoint: no JSON is of type %s", t))
	}
}

// nullable returns a schema that also allows null.
func nullable(s object) object {
	switch t := s["type"].(type) {
	case string:
		s["type"] = []string{t, "null"}
	case []string:
		if !slices.Contains(t, "null") {
			s["type"] = append(slices.Clip(t), "null")
		}
	default:
		if len(s) == 0 {
			return s // the schema already allows anything
		}
		return object{"anyOf": []object{s, {"type": "null"}}}
	}
	if values, ok := s["enum"].([]any); ok {
		s["enum"] = append(slices.Clip(values), nil)
	}
	return s
}

// structure is the schema of an object under construction.
type structure struct {
	properties object
	required   []string
}

func newStructure() *structure { return &structure{properties: object{}} }

// add adds a property unless one of the same name exists.
func (st *structure) add(name string, s object, required bool) {
	if _, ok := st.properties[name]; ok {
		return
	}
	st.properties[name] = s
	if required {
		st.required = append(st.required, name)
	}
}

func (st *structure) schema() object {
	s := object{"type": "object", "properties": st.properties}
	if len(st.required) > 0 {
		s["required"] = st.required
	}
	return s
}
