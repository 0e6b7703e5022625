package informer

import (
	"reflect"
	"slices"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// maxText is the length in bytes of the longest text that is shared. Longer texts rarely occur twice.
const maxText = 64

// compact makes the spec and the status of an object share texts with other objects, and gives each list the room that it needs: decoding JSON
// makes room for at least four elements.
func (s *sharing) compact(object v1alpha1.Object) {
	v := reflect.ValueOf(object).Elem()
	for _, name := range []string{"Spec", "Status"} {
		if part := v.FieldByName(name); part.IsValid() {
			s.walk(part)
		}
	}
}

func (s *sharing) walk(v reflect.Value) {
	if !v.CanSet() { // a part of a time or a quantity
		return
	}
	switch v.Kind() {
	case reflect.String:
		if t := v.String(); t != "" && len(t) <= maxText {
			v.SetString(s.text(t))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			s.walk(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			s.walk(v.Field(i))
		}
	case reflect.Slice:
		if v.Len() > 0 && v.Cap() > v.Len() {
			exact := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			reflect.Copy(exact, v)
			v.Set(exact)
		}
		if slices.Contains(plain, v.Type().Elem().Kind()) {
			return
		}
		for i := range v.Len() {
			s.walk(v.Index(i))
		}
	}
}

// plain are kinds of elements that contain no texts.
var plain = []reflect.Kind{reflect.Uint8, reflect.Int, reflect.Int32, reflect.Int64, reflect.Bool}
