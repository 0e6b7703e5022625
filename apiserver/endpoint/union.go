package endpoint

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
)

// Either is a parameter that is a value or one of the words in the tag words, as in an id, None or Any. Words are taken in any letter case. A T
// is a text, number, boolean, time or a list of these.
type Either[T any] struct {
	// Set is true when the parameter was sent, and not as null.
	Set bool
	// Word is the one that was sent, as the tag has it; empty for a value.
	Word string
	// Value is what was sent in place of a word.
	Value T
}

func (*Either[T]) either() {}

// The places of the fields of an Either.
const (
	eitherSet = iota
	eitherWord
	eitherValue
)

// compileEither notes that a field is an Either.
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

// formOf says what a value of a type is.
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
	default:
		return "an integer"
	}
}

// either puts a value or word that was sent into an Either.
func (d *decoding) either(f *field, into reflect.Value, value any, name string) {
	into.Field(eitherSet).SetBool(true)
	text, single := scalarText(value)
	if list, is := value.([]any); is && f.comma && len(list) == 1 {
		text, single = scalarText(list[0]) // a list of one is the same as a text without a comma
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
		d.problem(name, "is invalid")
	case !f.allows(into):
		d.problem(name, "does not have a valid value")
	}
}

// assignTexts fills in a map of texts, of which each is under its key. What has something else in it is refused with a message, and not as
// a parameter, once all parameters are found to be right.
func (d *decoding) assignTexts(into reflect.Value, value any, name string) bool {
	sent, ok := value.(tree)
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
