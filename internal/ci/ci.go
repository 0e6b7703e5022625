// Package ci expands the CI configuration of a repository to the jobs of a pipeline.
package ci

import (
	"context"
	"fmt"

	"github.com/forgeplane/forgeplane/internal/ci/condition"
	"github.com/forgeplane/forgeplane/internal/ci/config"
	"github.com/forgeplane/forgeplane/internal/ci/document"
	"github.com/forgeplane/forgeplane/internal/ci/expression"
	"github.com/forgeplane/forgeplane/internal/ci/include"
)

// Names are the paths of the configuration, in the order of precedence. Repositories from GitLab have the second.
var Names = []string{".forgeplane-ci.yml", ".gitlab-ci.yml"}

// Pipeline describes the pipeline to create.
type Pipeline struct {
	// Ref is the name of a branch or tag.
	Ref string
	Tag bool
	// Source is the value of CI_PIPELINE_SOURCE.
	Source string
	// Project is the full path of the project.
	Project string
	// Predefined are variables that the configuration can replace, and Variables those that replace the configuration's.
	Predefined, Variables []config.Variable
	// Masked take precedence over both in the expressions of rules, and nothing else uses them, because others can see the other texts.
	Masked []config.Variable
	// Files are the files of the commit. They are nil if there is no commit, as in an empty repository.
	Files include.Files
	// Projects opens other projects; nil if they cannot be included.
	Projects include.Projects
}

// Loaded is a configuration with what it includes.
type Loaded struct {
	// Document is the merged and expanded document; nil if it could not be read.
	Document *document.Node
	Included []include.File
	Config   *config.Config
	// Problems make the configuration invalid; Warnings do not.
	Problems, Warnings document.Problems
}

// Load reads a configuration. Mistakes in it are Loaded.Problems, and an error is a failure to read files.
func (p *Pipeline) Load(ctx context.Context, name string, content []byte) (*Loaded, error) {
	loader := include.Loader{Projects: p.Projects, Variables: newScope(p.Predefined, p.Variables).lookup, Context: p.conditions()}
	root, included, problems, warnings, err := loader.Load(ctx, name, content, p.Files)
	l := &Loaded{Included: included, Problems: problems, Warnings: warnings}
	switch {
	case condition.Mistake(err):
		l.Problems.Add(name, 0, "include", "%v", err)
		return l, nil
	case err != nil:
		return nil, fmt.Errorf("reading the files of the configuration: %w", err)
	case len(problems) > 0:
		return l, nil
	case root == nil:
		l.Problems.Add(name, 0, "", "the file is empty")
		return l, nil
	}
	l.Document, l.Problems = document.Expand(root)
	if len(l.Problems) == 0 {
		l.Config, l.Problems = config.Read(l.Document)
	}
	if len(l.Problems) == 0 {
		l.Warnings = append(l.Warnings, l.Config.Warnings()...)
	}
	return l, nil
}

// conditions returns the context of the conditions.
func (p *Pipeline) conditions() *condition.Context {
	return condition.New(p.Files, newScope(p.Masked).lookup)
}

// scope has variables; later lists take precedence.
type scope map[string]config.Variable

func newScope(lists ...[]config.Variable) scope {
	s := scope{}
	for _, list := range lists {
		for _, v := range list {
			s[v.Key] = v
		}
	}
	return s
}

func (s scope) lookup(name string) (value string, raw, ok bool) {
	v, ok := s[name]
	return v.Value, v.Raw, ok
}

// expand expands the variables in a text.
func (s scope) expand(text string) string { return expression.Expand(text, s.lookup) }

// merge returns variables in the order in which they first occur; later values take precedence.
func merge(lists ...[]config.Variable) (all []config.Variable) {
	at := map[string]int{}
	for _, list := range lists {
		for _, v := range list {
			if i, ok := at[v.Key]; ok {
				all[i] = v
				continue
			}
			at[v.Key] = len(all)
			all = append(all, v)
		}
	}
	return all
}
