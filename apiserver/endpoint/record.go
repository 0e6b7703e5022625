package endpoint

import (
	"fmt"
	"strconv"
	"strings"
)

// Located is a type of subjects that parameters of the path name, the first ones.
type Located interface {
	// Parameters are those, in the order of the path. It is asked of the zero value.
	Parameters() []Parameter
}

// Parameter is a parameter of the path that names a subject.
type Parameter struct {
	// Doc says in a sentence what it is, for the OpenAPI document.
	Doc string
	// Integer says that it is a number; otherwise it is a text.
	Integer bool
}

// located is one with its name.
type located struct {
	name string
	Parameter
}

// locate takes the parameters that name the subject, and returns those that are left.
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

// Located is the path parameter that names the subject, or where it is; empty where none does.
func (e *Endpoint) Located() string {
	if len(e.located) == 0 {
		return ""
	}
	return e.located[0].name
}

// Record is the path parameter that names the subject by itself: the last one that names it.
func (e *Endpoint) Record() string {
	if len(e.located) == 0 {
		return ""
	}
	return e.located[len(e.located)-1].name
}

// locatedParameters are the Parameter Objects of those that name the subject.
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

// ID reads a parameter that is an id. The error is that of a parameter of a request.
func ID(name, sent string) (int64, error) {
	id, err := strconv.ParseInt(strings.TrimSpace(sent), 10, 64)
	if err != nil {
		return 0, Parameters(name + " is invalid")
	}
	return id, nil
}

// Found says how the record is found that the endpoint is about. What it is depends on the subject, and the Guard knows.
func (e *Endpoint) Found(by any) *Endpoint {
	e.finder = by
	return e
}

// Finder is what Found has set; nil for nothing.
func (e *Endpoint) Finder() any { return e.finder }

// Rule is what decides about a record where a role does not, as that it is the caller's own. The Guard knows what it means.
type Rule string

// rule is a Rule, and whether it is enough without the ability.
type rule struct {
	Rule
	enough bool
}

// Or lets those in, too, who do not have the ability and for whom a rule on the record holds.
func (e *Endpoint) Or(r Rule) *Endpoint {
	e.rule = rule{r, true}
	return e
}

// And lets in of those who have the ability only the ones for whom a rule on the record holds.
func (e *Endpoint) And(r Rule) *Endpoint {
	e.rule = rule{r, false}
	return e
}

// Rule is what Or or And has set, and whether it is enough without the ability; empty for none.
func (e *Endpoint) Rule() (r Rule, enough bool) { return e.rule.Rule, e.rule.enough }

// describe is the rule for the OpenAPI document.
func (r rule) describe() object {
	if r.enough {
		return object{"or": r.Rule}
	}
	return object{"and": r.Rule}
}
