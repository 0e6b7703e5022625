package endpoint

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Payload is the JSON object of all parameters of the query and the body, including parameters that the endpoint does not know. A field of
// this type has the tag payload with the names of the parameters that are left out, such as a credential. Parameters that identify the caller are
// always left out.
type Payload string

var payloadType = reflect.TypeFor[Payload]()

// payload is the field of a request that has the Payload.
type payload struct {
	index   []int
	without []string
}

func (p *plan) compilePayload(sf reflect.StructField) {
	names, ok := sf.Tag.Lookup("payload")
	if !ok {
		return
	}
	if sf.Type != payloadType {
		panic("endpoint: " + sf.Name + " must be a Payload")
	}
	p.payload = &payload{sf.Index, append(strings.Split(names, ","), identifying...)}
}

// fill sets the Payload in a request. A nil payload does nothing.
func (p *payload) fill(request reflect.Value, sent parameters) {
	if p == nil {
		return
	}
	of := maps.Clone(sent)
	maps.DeleteFunc(of, func(name string, _ any) bool { return slices.Contains(p.without, name) })
	if text, err := json.Marshal(of); err == nil { // the values come from JSON or from a form
		request.FieldByIndex(p.index).SetString(string(text))
	}
}
