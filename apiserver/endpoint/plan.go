package endpoint

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Optional is a parameter that can be absent, null or a value.
type Optional[T any] struct {
	// Set is true if the parameter was sent, even as null.
	Set bool
	// Null is true if it was sent as null.
	Null bool
	// Value is the sent value, or the zero value.
	Value T
}

// Or returns the value, or otherwise if there is no value.
func (o Optional[T]) Or(otherwise T) T {
	if o.Set && !o.Null {
		return o.Value
	}
	return otherwise
}

func (*Optional[T]) optional() {}

// The indexes of the fields of an Optional.
const (
	optionalSet = iota
	optionalNull
	optionalValue
)

// isOptional reports whether t is an Optional.
func isOptional(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[interface{ optional() }]())
}

// plan describes how to fill in a request type.
type plan struct {
	typ     reflect.Type
	fields  []field
	choices []choice
	// files are the names of files, and raw is the raw body if there is one.
	files   map[string]bool
	raw     *rawBody
	payload *payload
}

// field is one parameter.
type field struct {
	name     string
	index    []int
	typ      reflect.Type // within an Optional
	optional bool
	path     bool
	required bool
	refuse   bool // blank values
	comma    bool // a list may come as one text with commas
	values   []string
	minimum  *float64
	maximum  *float64
	initial  string
	doc      string
	example  string
	nested   *plan // the plan of a struct, or of the elements of a list of structs
	// words are the words of an Either, and should is the message if neither a word nor a value was sent.
	words  []string
	should string
}

// compile reads the struct tags of a request type, which has a field for each of the named path parameters. It panics if a tag is wrong:
// that is a programming error, and every test builds every table.
func compile(t reflect.Type, path string, named []string) *plan {
	p := compileStruct(t)
	for _, name := range named {
		i := slices.IndexFunc(p.fields, func(f field) bool { return f.name == name })
		if i < 0 {
			panic(fmt.Sprintf("endpoint: %s: %s has no field for {%s}", path, t, name))
		}
		p.fields[i].path = true
	}
	return p
}

func compileStruct(t reflect.Type) *plan {
	p := &plan{typ: t, files: map[string]bool{}}
	for _, sf := range reflect.VisibleFields(t) {
		p.compileRaw(sf)
		p.compilePayload(sf)
		name, ok := sf.Tag.Lookup("param")
		if !ok {
			continue
		}
		f := field{name: name, index: sf.Index, typ: sf.Type, initial: sf.Tag.Get("default"), doc: sf.Tag.Get("doc"), example: sf.Tag.Get("example")}
		if f.optional = isOptional(sf.Type); f.optional {
			f.typ = sf.Type.Field(optionalValue).Type
		}
		f.compileEither(sf)
		_, f.required = sf.Tag.Lookup("required")
		_, f.comma = sf.Tag.Lookup("comma")
		f.refuse = sf.Tag.Get("blank") == "refuse"
		if values := sf.Tag.Get("values"); values != "" {
			f.values = strings.Split(values, ",")
		}
		f.minimum, f.maximum = bound(sf, "minimum"), bound(sf, "maximum")
		f.nested = nestedPlan(f.typ)
		p.files[name] = f.typ == fileType
		p.fields = append(p.fields, f)
		p.choose(sf)
	}
	return p
}

func bound(sf reflect.StructField, key string) *float64 {
	text, ok := sf.Tag.Lookup(key)
	if !ok {
		return nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(fmt.Sprintf("endpoint: %s of %s is not a number", key, sf.Name))
	}
	return &n
}

var timeType = reflect.TypeFor[time.Time]()

func nestedPlan(t reflect.Type) *plan {
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() == reflect.Map && !reflect.TypeFor[map[string]string]().AssignableTo(t) {
		panic(fmt.Sprintf("endpoint: no parameter is of type %s", t))
	}
	if t.Kind() != reflect.Struct || t == timeType || t == fileType {
		return nil
	}
	return compileStruct(t)
}

// decode creates and fills in a request. The error is a 400 that names every problem.
func (p *plan) decode(sent parameters, path map[string]string) (any, error) {
	request := reflect.New(p.typ)
	var d decoding
	d.fill(p, request.Elem(), sent, path, "")
	p.raw.fill(request.Elem(), sent)
	p.payload.fill(request.Elem(), sent)
	if len(d.problems) > 0 {
		return nil, d.refusal()
	}
	if d.refused != nil {
		return nil, d.refused
	}
	return request.Interface(), nil
}

// decoding collects the problems of one request.
type decoding struct {
	problems []string
	// hints say what the problems leave open, and alternatives what is wrong with the choices.
	hints, alternatives []string
	// refused is the answer if there are no other problems.
	refused *Error
}

func (d *decoding) problem(name, what string) { d.problems = append(d.problems, name+" "+what) }

// refusal returns the answer to the problems. A sentence about one choice alone can be understood without a hint.
func (d *decoding) refusal() *Error {
	hints := d.hints
	if len(d.problems) > 1 {
		hints = append(hints, d.alternatives...)
	}
	answer := Parameters(d.problems...)
	if len(hints) == 0 {
		return answer
	}
	return answer.Describe("%s", strings.Join(hints, " "))
}

func (d *decoding) fill(p *plan, into reflect.Value, sent parameters, path map[string]string, prefix string) {
	for i := range p.fields {
		f := &p.fields[i]
		name := f.name
		if prefix != "" {
			name = prefix + "[" + f.name + "]"
		}
		value, set := sent[f.name]
		if f.path {
			value, set = path[f.name], true
		}
		if !set && f.initial != "" {
			value, set = f.initial, true
		}
		if !set {
			if f.required {
				d.problem(name, "is missing")
			}
			continue
		}
		d.set(f, into.FieldByIndex(f.index), value, name)
	}
	for _, c := range p.choices {
		d.check(c, sent, prefix)
	}
}

// set stores one sent value in its field.
func (d *decoding) set(f *field, into reflect.Value, value any, name string) {
	if f.refuse && blank(value) {
		d.problem(name, "is empty")
		return
	}
	null := absent(value, f.typ)
	if f.optional {
		into.Field(optionalSet).SetBool(true)
		into.Field(optionalNull).SetBool(null)
		into = into.Field(optionalValue)
	}
	if null {
		return
	}
	if f.words != nil {
		d.either(f, into, value, name)
		return
	}
	if !d.assign(f, into, value, name) {
		d.invalid(f, name)
		return
	}
	if !f.allows(into) {
		d.notAllowed(f, name)
	}
}

func blank(value any) bool {
	s, ok := value.(string)
	return value == nil || ok && strings.TrimSpace(s) == ""
}

// absent reports whether a value means that there is none: null, or an empty text for a number, boolean or time.
func absent(value any, t reflect.Type) bool {
	if value == nil {
		return t.Kind() != reflect.Slice
	}
	s, ok := value.(string)
	if !ok || s != "" {
		return false
	}
	return t.Kind() != reflect.String && t.Kind() != reflect.Slice
}

// allows reports whether a value is one of the allowed values.
func (f *field) allows(v reflect.Value) bool {
	if len(f.values) > 0 {
		for _, text := range texts(v) {
			if !slices.Contains(f.values, text) {
				return false
			}
		}
	}
	var n float64
	switch {
	case v.CanInt():
		n = float64(v.Int())
	case v.CanFloat():
		n = v.Float()
	default:
		return true
	}
	return (f.minimum == nil || n >= *f.minimum) && (f.maximum == nil || n <= *f.maximum)
}

func texts(v reflect.Value) []string {
	if v.Kind() != reflect.Slice {
		return []string{fmt.Sprint(v.Interface())}
	}
	all := make([]string, v.Len())
	for i := range all {
		all[i] = fmt.Sprint(v.Index(i).Interface())
	}
	return all
}

// assign converts and stores a value. It reports false if the value has the wrong type.
func (d *decoding) assign(f *field, into reflect.Value, value any, name string) bool {
	t := into.Type()
	switch {
	case t == timeType:
		return assignTime(into, value)
	case t == fileType:
		return assignFile(into, value)
	case t == pathType:
		return d.assignPath(into, value)
	case t.Kind() == reflect.Slice:
		return d.assignList(f, into, value, name)
	case t.Kind() == reflect.Map:
		return d.assignTexts(into, value, name)
	case t.Kind() == reflect.Struct:
		object, ok := value.(parameters)
		if ok {
			d.fill(f.nested, into, object, nil, name)
		}
		return ok
	default:
		return assignScalar(into, value)
	}
}

func (d *decoding) assignList(f *field, into reflect.Value, value any, name string) bool {
	var elements []any
	switch v := value.(type) {
	case nil:
	case []any:
		elements = v
		if f.comma {
			// A form sends an empty list as one empty element.
			elements = slices.DeleteFunc(slices.Clone(v), func(e any) bool { return e == "" })
		}
	case string:
		if !f.comma {
			return false
		}
		for _, part := range strings.Split(v, ",") {
			if part = strings.TrimSpace(part); part != "" {
				elements = append(elements, part)
			}
		}
	case json.Number:
		if !f.comma {
			return false
		}
		elements = []any{v}
	default:
		return false
	}
	list := reflect.MakeSlice(into.Type(), len(elements), len(elements))
	for i, e := range elements {
		if !d.assign(f, list.Index(i), e, fmt.Sprintf("%s[%d]", name, i)) {
			return false
		}
	}
	into.Set(list)
	return true
}

func assignScalar(into reflect.Value, value any) bool {
	switch into.Kind() {
	case reflect.String:
		text, ok := scalarText(value)
		if !ok || strings.ContainsRune(text, 0) {
			return false
		}
		into.SetString(text)
	case reflect.Bool:
		truth, ok := boolean(value)
		if !ok {
			return false
		}
		into.SetBool(truth)
	case reflect.Int, reflect.Int64, reflect.Int32:
		text, ok := scalarText(value)
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if !ok || err != nil || into.OverflowInt(n) {
			return false
		}
		into.SetInt(n)
	case reflect.Float64:
		text, ok := scalarText(value)
		n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if !ok || err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			return false
		}
		into.SetFloat(n)
	default:
		panic(fmt.Sprintf("endpoint: no parameter is of type %s", into.Type()))
	}
	return true
}

// scalarText returns the text of a value that is neither a list nor an object. A boolean is neither a text nor a number.
func scalarText(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	default:
		return "", false
	}
}

func boolean(value any) (truth, ok bool) {
	if b, ok := value.(bool); ok {
		return b, true
	}
	text, ok := scalarText(value)
	if !ok {
		return false, false
	}
	switch strings.ToLower(text) {
	case "true", "1", "on", "t":
		return true, true
	case "false", "0", "off", "f":
		return false, true
	default:
		return false, false
	}
}
