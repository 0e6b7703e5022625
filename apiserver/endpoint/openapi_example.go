package endpoint

import "reflect"

// example returns an example of the parameters as a JSON object. It has the required parameters, and those whose tags have an example.
func (p *plan) example() object {
	shown := object{}
	for i := range p.fields {
		if f := &p.fields[i]; !f.path && f.typ != fileType && (f.required || f.example != "") {
			shown[f.name] = f.instance()
		}
	}
	return shown
}

// instance returns an example of the parameter's value.
func (f *field) instance() any {
	switch {
	case f.example != "":
		return typed(f.typ, f.example)
	case f.initial != "":
		return typed(f.typ, f.initial)
	case f.typ.Kind() == reflect.Slice:
		return []any{f.element(f.typ.Elem())}
	default:
		return f.element(f.typ)
	}
}

// element returns an example of a value, or of an element of a list, that the tags give no example for.
func (f *field) element(t reflect.Type) any {
	switch {
	case t == timeType:
		return "2030-12-31T00:00:00Z"
	case f.nested != nil:
		return f.nested.example()
	case len(f.values) > 0:
		return typed(t, f.values[0])
	case t.Kind() == reflect.Map:
		return object{"key": "value"}
	case t.Kind() == reflect.Bool:
		return true
	case t.Kind() == reflect.String:
		return f.name
	case f.minimum != nil:
		return *f.minimum
	default:
		return 1
	}
}
