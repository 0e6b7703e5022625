package endpoint

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// invalid reports a value of the wrong type.
func (d *decoding) invalid(f *field, name string) {
	d.problem(name, "is invalid")
	form := formOf(f.typ)
	if f.typ == timeType {
		form += " such as 2026-06-15 or 2026-06-15T12:00:00Z"
	}
	if f.typ.Kind() == reflect.Slice {
		form += ", and each of its elements " + formOf(f.typ.Elem())
	}
	d.hints = append(d.hints, name+" must be "+form+".")
}

// notAllowed reports a value that is not allowed, and lists the allowed values.
func (d *decoding) notAllowed(f *field, name string) {
	d.problem(name, "does not have a valid value")
	number := func(n *float64) string { return strconv.FormatFloat(*n, 'f', -1, 64) }
	var must string
	switch {
	case len(f.values) > 0:
		must = oneOf(f.values)
	case f.minimum != nil && f.maximum != nil:
		must = "from " + number(f.minimum) + " to " + number(f.maximum)
	case f.minimum != nil:
		must = number(f.minimum) + " or more"
	default:
		must = number(f.maximum) + " or less"
	}
	d.hints = append(d.hints, fmt.Sprintf("%s must be %s.", name, must))
}

// oneOf joins values for a sentence, as in "private, internal or public".
func oneOf(values []string) string {
	last := len(values) - 1
	if last < 1 {
		return strings.Join(values, "")
	}
	return strings.Join(values[:last], ", ") + " or " + values[last]
}
