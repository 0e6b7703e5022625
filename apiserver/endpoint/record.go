package endpoint

import (
	"fmt"
	"strconv"
	"strings"
)

// Located is a type of subjects that the first path parameters identify.
type Located interface {
	// Parameters returns these path parameters, in their order. It is called on the zero value.
	Parameters() []Parameter
}

// Parameter is a path parameter that names a subject.
type Parameter struct {
	// Doc describes the parameter in one sentence, for the OpenAPI document.
	Doc string
	// Integer says that the parameter is a number; otherwise it is a text.
	Integer bool
}

// located is a Parameter with its name.
type located struct {
	name string
	Parameter
}

// locate takes the parameters that name the subject from named, and returns the rest.
func (e *Endpoint) locate(named []string) []string {
	l, is := e.subject.(Located)
	if !is {
		return named
	}
	for _, p := range l.Parameters() {
		if len(named) == 0 {
			panic(fmt.Sprintf("endpoint: %s: no parameter names the %T", e.path, e.subject))
		}
		e.located, named = append(e.located, located{named[0], p}), named[1:]
	}
	return named
}

// Located returns the path parameters that name the subject: first those of its containers, the outermost first, and last its own.
func (e *Endpoint) Located() []string {
	all := make([]string, len(e.located))
	for i, p := range e.located {
		all[i] = p.name
	}
	return all
}

// locatedParameters returns the Parameter Objects of the parameters that name the subject.
func (e *Endpoint) locatedParameters() (all []object) {
	for _, p := range e.located {
		kind := object{"type": "string"}
		if p.Integer {
			kind = object{"type": "integer", "format": "int64"}
		}
		all = append(all, object{"name": p.name, "in": "path", "required": true, "schema": kind, "description": p.Doc})
	}
	return all
}

// ID parses a parameter that is an id. The error is the answer for an invalid parameter.
func ID(name, sent string) (int64, error) {
	id, err := strconv.ParseInt(strings.TrimSpace(sent), 10, 64)
	if err != nil {
		return 0, Parameters(name + " is invalid")
	}
	return id, nil
}

// Found sets how to find the record that the endpoint is about. The type of by depends on the subject; the Guard knows it.
func (e *Endpoint) Found(by any) *Endpoint {
	e.finder = by
	return e
}

// Finder returns the value that Found set, or nil.
func (e *Endpoint) Finder() any { return e.finder }

// Rule decides about a record where a role does not, such as the rule that the record is the caller's own. The Guard defines its meaning.
type Rule string

// rule is a Rule, and whether it suffices without the ability.
type rule struct {
	Rule
	enough bool
}

// Or also admits callers who lack the ability if a rule on the record holds for them.
func (e *Endpoint) Or(r Rule) *Endpoint {
	e.rule = rule{r, true}
	return e
}

// And admits callers who have the ability only if a rule on the record also holds for them.
func (e *Endpoint) And(r Rule) *Endpoint {
	e.rule = rule{r, false}
	return e
}

// Rule returns the rule that Or or And set, and whether it suffices without the ability; "" if there is none.
func (e *Endpoint) Rule() (r Rule, enough bool) { return e.rule.Rule, e.rule.enough }

// describe returns the rule for the OpenAPI document.
func (r rule) describe() object {
	if r.enough {
		return object{"or": r.Rule}
	}
	return object{"and": r.Rule}
}
