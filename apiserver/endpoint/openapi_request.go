package endpoint

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// pathParameters returns the Parameter Objects of the path.
func (p *plan) pathParameters() []object {
	var all []object
	for i := range p.fields {
		if f := &p.fields[i]; f.path {
			all = append(all, parameter("path", flatField{name: f.name, schema: f.schema(), required: true}))
		}
	}
	return all
}

// queryParameters returns the Parameter Objects of all other parameters, for methods without a body.
func (p *plan) queryParameters() []object {
	var all []object
	for _, f := range p.flat("", true, false) {
		all = append(all, parameter("query", f))
	}
	return all
}

// parameter returns a Parameter Object. The description moves there from its schema.
func parameter(in string, f flatField) object {
	p := object{"name": f.name, "in": in, "required": f.required, "schema": f.schema}
	if doc, ok := f.schema["description"]; ok {
		p["description"] = doc
		delete(f.schema, "description")
	}
	if f.keyed {
		maps.Copy(p, keyedStyle())
	}
	return p
}

// keyedStyle describes how a query or form sends a map: variables[KEY]=x.
func keyedStyle() object { return object{"style": "deepObject", "explode": true} }

// body returns the Request Body Object, or nil if there is nothing to send.
func (p *plan) body() object {
	form, encoding := newStructure(), object{}
	for _, f := range p.flat("", true, false) {
		form.add(f.name, f.schema, f.required)
		if f.keyed {
			encoding[f.name] = keyedStyle()
		}
	}
	content, needed := object{}, len(form.required)
	if len(form.properties) > 0 {
		content["application/json"] = object{"schema": p.schema(), "example": p.example()}
		content["application/x-www-form-urlencoded"] = formOfType(form, encoding)
	}
	if p.addFiles(form) {
		if len(form.required) > needed {
			content = object{} // only a form can contain files
		}
		content["multipart/form-data"] = formOfType(form, encoding)
	}
	if len(content) == 0 {
		return nil
	}
	return object{"required": len(form.required) > 0, "content": content}
}

// formOfType returns the Media Type Object of a form.
func formOfType(form *structure, encoding object) object {
	o := object{"schema": form.schema()}
	if len(encoding) > 0 {
		o["encoding"] = encoding
	}
	return o
}

// addFiles adds the files to a form, and reports whether there are any.
func (p *plan) addFiles(form *structure) (found bool) {
	form.properties = maps.Clone(form.properties)
	for i := range p.fields {
		if f := &p.fields[i]; f.typ == fileType {
			form.add(f.name, f.schema(), f.required)
			found = true
		}
	}
	return found
}

// schema returns the schema of the parameters as a JSON object.
func (p *plan) schema() object {
	s := newStructure()
	for i := range p.fields {
		if f := &p.fields[i]; !f.path && f.typ != fileType {
			s.add(f.name, f.schema(), f.required)
		}
	}
	return s.schema()
}

// flatField is a parameter in the form of a query or form.
type flatField struct {
	name     string
	schema   object
	required bool
	// keyed marks a map.
	keyed bool
}

// flat returns the parameters in the form of a query or form: nested parameters have names with brackets, and those within a list repeat.
func (p *plan) flat(prefix string, required, repeat bool) []flatField {
	var all []flatField
	for i := range p.fields {
		f := &p.fields[i]
		if f.path || f.typ == fileType {
			continue
		}
		name, list := f.name, f.typ.Kind() == reflect.Slice
		if prefix != "" {
			name = prefix + "[" + name + "]"
		}
		needed := required && f.required
		if list && f.words != nil {
			all = append(all, flatField{name: name, schema: f.described(f.word())})
			if needed = false; f.comma {
				continue // generated clients cannot have one parameter for words and another one for lists
			}
		}
		if list {
			name += "[]"
		}
		if f.nested != nil {
			all = append(all, f.nested.flat(name, needed && !list, repeat || list)...)
			continue
		}
		all = append(all, flatField{name: name, schema: f.flatSchema(repeat), required: needed && !repeat, keyed: f.typ.Kind() == reflect.Map})
	}
	return all
}

// flatSchema returns the schema of the parameter in a query or form, in which it can repeat within a list.
func (f *field) flatSchema(repeat bool) object {
	switch {
	case f.typ.Kind() == reflect.Slice:
		return f.described(f.shape(f.typ))
	case repeat:
		return object{"type": "array", "items": f.schema()}
	default:
		return f.schema()
	}
}

// schema returns the schema of the parameter in JSON.
func (f *field) schema() object {
	s := f.shape(f.typ)
	if f.typ.Kind() == reflect.Slice && f.comma {
		s["type"] = []string{"array", "string"}
		if element := f.typ.Elem(); element.Kind() != reflect.String {
			s["type"] = []string{"array", "string", "integer"}
		}
	}
	if f.words != nil {
		s = object{"anyOf": []object{s, f.word()}}
	}
	if f.optional {
		s = nullable(s)
	}
	return f.described(s)
}

// word returns the schema of the words of an Either. If a list can come as one text, other texts are allowed too.
func (f *field) word() object {
	if f.comma {
		return object{"type": "string", "examples": f.words}
	}
	return object{"type": "string", "enum": f.words}
}

// described adds the properties to a schema that are the same in every form.
func (f *field) described(s object) object {
	switch {
	case slices.Contains(f.words, f.initial):
		s["default"] = f.initial
	case f.initial != "":
		s["default"] = typed(f.typ, f.initial)
	}
	if f.doc != "" {
		s["description"] = f.doc
	}
	return s
}

// shape returns the schema of the parameter's value, or of the elements of its list.
func (f *field) shape(t reflect.Type) object {
	switch {
	case t == timeType:
		return object{"type": "string", "format": "date-time"}
	case t.Kind() == reflect.Slice:
		return object{"type": "array", "items": f.shape(t.Elem())}
	case t == fileType:
		return object{"type": "string", "contentMediaType": "application/octet-stream"}
	case t.Kind() == reflect.Map:
		return object{"type": "object", "additionalProperties": object{"type": "string"}}
	case t.Kind() == reflect.Struct:
		return f.nested.schema()
	}
	s := scalar(t)
	if len(f.values) > 0 {
		var values []any
		for _, v := range f.values {
			values = append(values, typed(t, v))
		}
		s["enum"] = values
	}
	if f.minimum != nil {
		s["minimum"] = *f.minimum
	}
	if f.maximum != nil {
		s["maximum"] = *f.maximum
	}
	if f.refuse && t.Kind() == reflect.String {
		s["minLength"] = 1
	}
	return s
}

// typed converts the text of a struct tag to a value of the given type.
func typed(t reflect.Type, text string) any {
	var value any = text
	var err error
	switch t.Kind() {
	case reflect.Slice:
		list := []any{}
		for _, part := range strings.Split(text, ",") {
			list = append(list, typed(t.Elem(), strings.TrimSpace(part)))
		}
		return list
	case reflect.Bool:
		value, err = strconv.ParseBool(text)
	case reflect.Int, reflect.Int32, reflect.Int64:
		value, err = strconv.ParseInt(text, 10, 64)
	case reflect.Float64:
		value, err = strconv.ParseFloat(text, 64)
	}
	if err != nil {
		panic("endpoint: a tag has " + text + " for a " + t.String())
	}
	return value
}
