// Package condition decides whether the rules of a CI configuration hold for a pipeline.
package condition

import (
	"context"
	"errors"
	"fmt"

	"github.com/forgeplane/forgeplane/internal/ci/config"
	"github.com/forgeplane/forgeplane/internal/ci/expression"
)

// Repository has what rules ask about a commit.
type Repository interface {
	// Paths returns the paths of all files.
	Paths(ctx context.Context) ([]string, error)
	// Changed returns the paths that differ between the commit and compareTo, or what the pipeline compares with if that is empty. known is
	// false if the pipeline is not about a change, as that of a tag.
	Changed(ctx context.Context, compareTo string) (paths []string, known bool, err error)
}

// Context is the context of the rules of one pipeline. It remembers paths.
type Context struct {
	repository Repository
	masked     expression.Lookup
	paths      *Paths
	changed    map[string]*Paths
	// compared is the number of different compare_to, and left that of comparisons that are left for all paths and expressions.
	compared, left int
}

// maxCompared is the maximum number of different compare_to, and matchSteps the number of steps of an expression that count as a comparison.
const maxCompared, matchSteps = 10, 256

// New returns a context. A nil repository has no files, and all paths count as changed. Only expressions see the masked variables, before all
// others.
func New(r Repository, masked expression.Lookup) *Context {
	return &Context{repository: r, masked: masked, changed: map[string]*Paths{}, left: maxComparisons}
}

// Holds reports whether all conditions of a rule hold.
func (c *Context) Holds(ctx context.Context, r config.Rule, get expression.Lookup) (bool, error) {
	if r.If != nil {
		if holds, err := c.isTrue(r.If, get); err != nil || !holds {
			return false, err
		}
	}
	if r.Changes != nil {
		if holds, err := c.HasChanges(ctx, r.Changes, get); err != nil || !holds {
			return false, err
		}
	}
	if r.Exists == nil {
		return true, nil
	}
	return c.exists(ctx, r.Exists, get)
}

// isTrue evaluates an expression. The steps of its matches with patterns count as comparisons.
func (c *Context) isTrue(e *expression.Expression, get expression.Lookup) (bool, error) {
	steps := c.left * matchSteps
	before := steps
	is := e.True(func(name string) (string, bool, bool) {
		if value, raw, ok := c.masked(name); ok {
			return value, raw, true
		}
		return get(name)
	}, &steps)
	if c.left -= 1 + (before-steps)/matchSteps; c.left < 0 {
		return false, ErrTooManyComparisons
	}
	return is, nil
}

// AnyTrue reports whether one of the expressions is true.
func (c *Context) AnyTrue(all []*expression.Expression, get expression.Lookup) (bool, error) {
	for _, e := range all {
		if is, err := c.isTrue(e, get); err != nil || is {
			return is, err
		}
	}
	return false, nil
}

// First returns the first rule that holds.
func (c *Context) First(ctx context.Context, rules []config.Rule, get expression.Lookup) (config.Rule, bool, error) {
	for _, r := range rules {
		if err := ctx.Err(); err != nil {
			return config.Rule{}, false, err
		}
		if holds, err := c.Holds(ctx, r, get); err != nil || holds {
			return r, holds, err
		}
	}
	return config.Rule{}, false, nil
}

// HasChanges reports whether one of the paths has changed.
func (c *Context) HasChanges(ctx context.Context, changes *config.Changes, get expression.Lookup) (bool, error) {
	if c.repository == nil {
		return true, nil
	}
	to := expression.Expand(changes.CompareTo, get)
	paths, ok := c.changed[to]
	if !ok {
		if to != "" {
			c.compared++
		}
		if c.compared > maxCompared {
			return false, errCompared
		}
		all, known, err := c.repository.Changed(ctx, to)
		if err != nil {
			return false, err
		}
		if known {
			paths = c.NewPaths(all)
		}
		c.changed[to] = paths
	}
	if paths == nil {
		return true, nil
	}
	return anyOf(ctx, paths, changes.Paths, get)
}

func (c *Context) exists(ctx context.Context, e *config.Exists, get expression.Lookup) (bool, error) {
	if c.paths == nil {
		var all []string
		if c.repository != nil {
			var err error
			if all, err = c.repository.Paths(ctx); err != nil {
				return false, err
			}
		}
		c.paths = c.NewPaths(all)
	}
	return anyOf(ctx, c.paths, e.Paths, get)
}

func anyOf(ctx context.Context, paths *Paths, globs []string, get expression.Lookup) (bool, error) {
	for _, glob := range globs {
		if found, err := paths.Any(ctx, expression.Expand(glob, get)); err != nil || found {
			return found, err
		}
	}
	return false, nil
}

// errCompared says that a configuration compares with too many refs.
var errCompared = fmt.Errorf("rules:changes:compare_to: the configuration compares with more than %d refs", maxCompared)

// UnknownRefError is returned for a compare_to that names no commit. It is the name.
type UnknownRefError string

// Error implements error.
func (e UnknownRefError) Error() string {
	return fmt.Sprintf("rules:changes:compare_to: there is no branch, tag or commit %.100q", string(e))
}

// Mistake reports whether an error of a condition is one of the configuration, rather than a failure to read the repository.
func Mistake(err error) bool {
	var unknown UnknownRefError
	return errors.Is(err, ErrTooManyComparisons) || errors.Is(err, errCompared) || errors.As(err, &unknown)
}
