package endpoint

import (
	"reflect"
	"strings"
	"unicode/utf8"
)

// Path is a parameter with the path of a file. A path that no file can have is answered 400 without the name of the parameter.
type Path string

var pathType = reflect.TypeFor[Path]()

func (d *decoding) assignPath(into reflect.Value, value any) bool {
	if text, ok := scalarText(value); ok && (strings.ContainsRune(text, 0) || !utf8.ValidString(text)) {
		d.refused = BadRequest("")
		return true
	}
	return assignScalar(into, value)
}
