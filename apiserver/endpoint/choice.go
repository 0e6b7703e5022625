package endpoint

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// choice is a set of parameters from which the client must send at least one, exactly one, or at most one. A parameter that is
// sent as null counts as sent.
type choice struct {
	tag, group string
	names      []string
}

// The struct tags that declare choices.
const (
	exactlyOne = "exactlyOne"
	atLeastOne = "atLeastOne"
	atMostOne  = "atMostOne"
)

// choose records the choices that a field belongs to.
func (p *plan) choose(sf reflect.StructField) {
	for _, tag := range []string{exactlyOne, atLeastOne, atMostOne} {
		group, ok := sf.Tag.Lookup(tag)
		if !ok {
			continue
		}
		i := slices.IndexFunc(p.choices, func(c choice) bool { return c.tag == tag && c.group == group })
		if i < 0 {
			i = len(p.choices)
			p.choices = append(p.choices, choice{tag: tag, group: group})
		}
		p.choices[i].names = append(p.choices[i].names, sf.Tag.Get("param"))
	}
}

// check reports a problem if the client sent too few or too many parameters of a choice.
func (d *decoding) check(c choice, sent parameters, prefix string) {
	var all, there []string
	for _, name := range c.names {
		shown := name
		if prefix != "" {
			shown = prefix + "[" + name + "]"
		}
		all = append(all, shown)
		if _, ok := sent[name]; ok {
			there = append(there, shown)
		}
	}
	switch {
	case len(there) == 0 && c.tag == exactlyOne:
		d.problem(strings.Join(all, ", "), "are missing, exactly one parameter must be provided")
		d.alternatives = append(d.alternatives, "Send exactly one of: "+strings.Join(all, ", ")+".")
	case len(there) == 0 && c.tag == atLeastOne:
		d.problem(strings.Join(all, ", "), "are missing, at least one parameter must be provided")
		d.alternatives = append(d.alternatives, "Send at least one of: "+strings.Join(all, ", ")+".")
	case len(there) > 1 && c.tag != atLeastOne:
		d.problem(strings.Join(there, ", "), "are mutually exclusive")
	}
}

// anything reports whether a parameter was sent that does not identify the caller.
func anything(sent parameters) bool {
	for name := range sent {
		if !slices.Contains(identifying, name) {
			return true
		}
	}
	return false
}

// unknown returns the refusal of parameters that the plan does not have, or nil if it has all of them.
func (p *plan) unknown(sent parameters) error {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		known := slices.ContainsFunc(p.fields, func(f field) bool { return f.name == name })
		if !known && !slices.Contains(identifying, name) {
			all = append(all, name+" is not supported")
		}
	}
	if all == nil {
		return nil
	}
	return Parameters(strings.Join(all, ", "))
}

// nothing returns the refusal of a request without any parameter.
func (p *plan) nothing() *Error {
	var all []string
	for _, f := range p.fields {
		if !f.path {
			all = append(all, f.name)
		}
	}
	return Parameters(strings.Join(all, ", ") + " are missing, at least one parameter must be provided")
}
