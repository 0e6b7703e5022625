package config

import (
	"time"

	"github.com/forgeplane/forgeplane/internal/ci/document"
	"github.com/forgeplane/forgeplane/internal/ci/expression"
)

// maxRules is the maximum number of rules of a job, maxPaths that of the paths of a keyword, and maxExpressions that of variables of only.
const maxRules, maxPaths, maxExpressions = 100, 50, 50

// maxStart is the longest time after which a delayed job starts.
const maxStart = 7 * day

// rules reads a list of rules, which can have lists of rules in it. It is never nil.
func (r *reader) rules(n *document.Node, key string, read func(*Rule, *document.Node, string)) []Rule {
	if n.Kind != document.List {
		r.problems.At(n, key, "must be a list of rules")
		return []Rule{}
	}
	items := n.Flatten()
	if len(items) > maxRules {
		r.problems.At(n, key, "has more than %d rules", maxRules)
		return []Rule{}
	}
	all := make([]Rule, len(items))
	for i, item := range items {
		read(&all[i], item, key)
	}
	return all
}

// conditions returns the fields of all kinds of rules.
func (r *reader) conditions(rule *Rule) fields {
	return fields{
		"if": set(&rule.If, r.expression), "changes": set(&rule.Changes, r.changes), "exists": set(&rule.Exists, r.exists),
	}
}

func (r *reader) workflowRule(rule *Rule, n *document.Node, key string) {
	table := r.conditions(rule)
	table["when"] = r.oneOf(&rule.When, "always", "never")
	table["variables"] = set(&rule.Variables, r.variables)
	table["auto_cancel"] = set(&rule.AutoCancel, r.autoCancel)
	r.fields(n, key, table)
}

// IncludeRule reads the rules of an include. All includes of a configuration share a parser.
func IncludeRule(n *document.Node, key string, p *expression.Parser) ([]Rule, document.Problems) {
	r := &reader{expressions: p}
	all := r.rules(n, key, func(rule *Rule, n *document.Node, key string) {
		table := r.conditions(rule)
		table["when"] = r.oneOf(&rule.When, "always", "never")
		r.fields(n, key, table)
	})
	return all, r.problems
}

func (r *reader) jobRule(rule *Rule, n *document.Node, key string) {
	table := r.conditions(rule)
	table["when"] = r.oneOf(&rule.When, "on_success", "on_failure", "always", "never", "manual", "delayed")
	table["start_in"] = r.durationTo(&rule.StartIn, time.Second, maxStart)
	table["variables"] = set(&rule.Variables, r.variables)
	table["needs"] = func(n *document.Node, key string) { rule.Needs, rule.HasNeeds = r.needs(n, key), true }
	table["allow_failure"] = set(&rule.AllowFailure, r.optionalBool)
	table["interruptible"] = set(&rule.Interruptible, r.optionalBool)
	r.fields(n, key, table)
	r.checkDelay(n, key, rule.When, rule.StartIn)
}

// checkDelay reports a delayed job without a time to start, or a time without a delay.
func (r *reader) checkDelay(n *document.Node, key, when string, in time.Duration) {
	if (when == "delayed") != (in != 0) && n.Kind == document.Map {
		r.problems.At(n, key, "when: delayed and start_in need each other")
	}
}

func (r *reader) changes(n *document.Node, key string) *Changes {
	c := &Changes{}
	r.paths(&c.Paths, n, key, fields{"compare_to": set(&c.CompareTo, r.text)})
	return c
}

func (r *reader) exists(n *document.Node, key string) *Exists {
	e := &Exists{}
	r.paths(&e.Paths, n, key, fields{"project": r.refused("only files of the own project can be checked"), "ref": ignored})
	return e
}

// paths reads a list of patterns, or a map with the list and the keywords of the table.
func (r *reader) paths(to *[]string, n *document.Node, key string, table fields) {
	read := r.limited(to, maxPaths)
	if n.Kind != document.Map {
		read(n, key)
		return
	}
	table["paths"] = read
	if r.fields(n, key, table); *to == nil {
		r.problems.At(n, key, "paths is missing")
	}
}

func (r *reader) filter(n *document.Node, key string) *Filter {
	f := &Filter{File: n.File, Line: n.Line}
	if n.Kind != document.Map {
		r.limited(&f.RefTexts, maxPaths)(n, key)
		return f
	}
	r.fields(n, key, fields{
		"refs":       r.limited(&f.RefTexts, maxPaths),
		"changes":    set(&f.Changes, r.changes),
		"kubernetes": r.refused("clusters are not supported"),
		"variables": func(n *document.Node, key string) {
			items := n.Flatten()
			if len(items) > maxExpressions {
				r.problems.At(n, key, "has more than %d expressions", maxExpressions)
				return
			}
			for _, item := range items {
				f.Variables = append(f.Variables, r.expression(item, key))
				f.VariableTexts = append(f.VariableTexts, item.Text)
			}
		},
	})
	return f
}
