package config

import (
	"regexp"
	"strings"

	"github.com/forgeplane/forgeplane/internal/ci/document"
	"github.com/forgeplane/forgeplane/internal/ci/expression"
)

// maxRefs is the maximum number of different refs in only and except of all jobs.
const maxRefs = 500

// defaultRefs are the refs of only in jobs without their own.
var defaultRefs = []string{"branches", "tags"}

// Ref is an item of only or except: a keyword or a name, or a pattern of names.
type Ref struct {
	Name    string
	Pattern *regexp.Regexp
	// Project is the path of the project that the ref is for; empty for all.
	Project string
}

// withProject separates a pattern from a project. An escaped slash does not end the pattern.
var withProject = regexp.MustCompile(`^(/(?:[^\\]|\\.)*?/[imsU]*)@(.*[^/])$`)

// refs reads the refs of all jobs. Rules of jobs or of the workflow take the place of the default refs.
func (r *reader) refs(c *Config) {
	known := map[string]Ref{}
	for _, j := range c.Jobs {
		if j.Only == nil && j.Rules == nil && c.Workflow == nil {
			j.Only = &Filter{}
		}
		if j.Only != nil {
			if j.Only.RefTexts == nil {
				j.Only.RefTexts = defaultRefs
			}
			r.filterRefs(j.Only, known, document.Join(j.Name, "only"))
		}
		if j.Except != nil {
			r.filterRefs(j.Except, known, document.Join(j.Name, "except"))
		}
	}
}

// filterRefs reads the refs of one filter. It compiles each pattern once.
func (r *reader) filterRefs(f *Filter, known map[string]Ref, key string) {
	for _, text := range f.RefTexts {
		ref, ok := known[text]
		if !ok {
			if len(known) >= maxRefs {
				r.problems.Add(f.File, f.Line, key, "the jobs have more than %d different refs in only and except", maxRefs)
				return
			}
			var err error
			if ref, err = parseRef(text); err != nil {
				r.problems.Add(f.File, f.Line, key, "the pattern %.100q is invalid: %v", text, err)
			}
			known[text] = ref
		}
		f.Refs = append(f.Refs, ref)
	}
}

func parseRef(text string) (ref Ref, err error) {
	if !strings.HasPrefix(text, "/") {
		ref.Name, ref.Project, _ = strings.Cut(text, "@")
		return ref, nil
	}
	if parts := withProject.FindStringSubmatch(text); parts != nil {
		text, ref.Project = parts[1], parts[2]
	}
	ref.Pattern, err = expression.Pattern(text)
	return ref, err
}
