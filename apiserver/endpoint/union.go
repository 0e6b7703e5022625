package endpoint

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
)

// Either is a parameter that is a value or one of the words in the tag words, such as an id, None or Any. Words are matched without regard
// to case. T is a text, number, boolean, time or a list of these.
type Either[T any] struct {
	// Set is true if the parameter was sent, and not as null.
	Set bool
	// Word is the word that was sent, in the spelling of the tag; empty for a value.
	Word string
	// Value is the value that was sent instead of a word.
	Value T
}

func (*Either[T]) either() {}

// The indexes of the fields of an Either.
const (
	eitherSet = iota
	eitherWord
	eitherValue
)

// compileEither records that a field is an Either.
func (f *field) compileEither(sf reflect.StructField) {
	if !reflect.PointerTo(sf.Type).Implements(reflect.TypeFor[interface{ either() }]()) {
		return
	}
	words := sf.Tag.Get("words")
	if words == "" {
		panic("endpoint: " + sf.Name + " has no words")
	}
	f.typ, f.words = sf.Type.Field(eitherValue).Type, strings.Split(words, ",")
	forms := []string{formOf(f.typ)}
	for _, word := range f.words {
		forms = append(forms, "'"+word+"'")
	}
	last := len(forms) - 1
	f.should = "should be " + strings.Join(forms[:last], ", ") + " or " + forms[last]
}

// formOf describes the expected form of a value of a type.
func formOf(t reflect.Type) string {
	switch {
	case t == timeType:
		return "a time"
	case t.Kind() == reflect.Slice:
		return "an array"
	case t.Kind() == reflect.Float64:
		return "a number"
	case t.Kind() == reflect.String:
		return "a text"
	case t.Kind() == reflect.Bool:
		return "a boolean"
	case t == fileType:
		return "a file of multipart/form-data"
	case t.Kind() == reflect.Struct, t.Kind() == reflect.Map:
		return "an object"
	default:
		return "an integer"
	}
}

// either stores a sent value or word in an Either.
func (d *decoding) either(f *field, into reflect.Value, value any, name string) {
	into.Field(eitherSet).SetBool(true)
	text, single := scalarText(value)
	if list, is := value.([]any); is && f.comma && len(list) == 1 {
		text, single = scalarText(list[0]) // a list of one element is equivalent to a text without a comma
	}
	if i := slices.IndexFunc(f.words, func(word string) bool { return strings.EqualFold(word, text) }); i >= 0 && single {
		into.Field(eitherWord).SetString(f.words[i])
		return
	}
	into = into.Field(eitherValue)
	assigned := d.assign(f, into, value, name)
	switch {
	case !assigned && single:
		d.problem(name, f.should)
	case !assigned:
		d.invalid(f, name)
	case !f.allows(into):
		d.notAllowed(f, name)
	}
}

// assignTexts fills in a map of texts. If a value is not a text, the request is refused with a message rather than as an invalid parameter,
// once all parameters are valid.
func (d *decoding) assignTexts(into reflect.Value, value any, name string) bool {
	sent, ok := value.(parameters)
	if !ok {
		return false
	}
	all := make(map[string]string, len(sent))
	for key, element := range sent {
		text, ok := element.(string)
		if !ok {
			d.refused = Message(http.StatusBadRequest, "%s needs to be a map of key-valued strings", name)
			return true
		}
		if strings.ContainsRune(key+text, 0) {
			return false
		}
		all[key] = text
	}
	into.Set(reflect.ValueOf(all))
	return true
}
