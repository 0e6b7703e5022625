package cilint

import (
	"context"
	"errors"
	"fmt"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/launch"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/ci"
	"github.com/forgeplane/forgeplane/internal/ci/commit"
	"github.com/forgeplane/forgeplane/internal/ci/config"
	"github.com/forgeplane/forgeplane/internal/ci/document"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/refs"
)

// lint is the check of one configuration.
type lint struct {
	*Family
	subject             auth.Project
	repository          *git.Repository
	files               *commit.Files
	dryRun, includeJobs bool
}

// open opens a commit of the project.
func (l *lint) open(ctx context.Context, revision string) error {
	repo, err := l.Repositories.Content(ctx, l.subject.Scope.Project)
	if err != nil {
		return err
	}
	id, err := refs.Commit(ctx, repo, revision)
	if err == nil {
		l.repository, l.files = repo, commit.New(repo, l.subject.Scope.Path(), id, "")
	}
	return err
}

// check checks a configuration, and with dryRun plans a pipeline for a branch or tag.
func (l *lint) check(ctx context.Context, name string, content []byte, pipelineRef string) (none Result, err error) {
	p, err := l.pipeline(ctx, pipelineRef)
	if errors.Is(err, errReference) {
		return l.invalid(document.Problems{{Text: err.Error()}}), nil
	} else if err != nil {
		return none, err
	}
	loaded, err := p.Load(ctx, name, content)
	if err != nil {
		return none, err
	}
	var merged *string
	if loaded.Document != nil {
		text, err := document.Render(loaded.Document)
		switch {
		case errors.Is(err, document.ErrTooLarge):
			loaded.Warnings.Add(name, 0, "", "%v, so it is not shown", err)
		case err != nil:
			return none, err
		default:
			merged = &text
		}
	}
	result := l.invalid(loaded.Problems)
	result.Warnings, result.MergedYAML = loaded.Warnings.Strings(), merged
	result.Includes = l.includes(loaded.Included)
	if len(loaded.Problems) > 0 {
		return result, nil
	}
	return l.valid(ctx, p, loaded.Config, result)
}

// valid completes the result for a configuration without problems.
func (l *lint) valid(ctx context.Context, p *ci.Pipeline, c *config.Config, result Result) (Result, error) {
	jobs := declaredJobs(c)
	if l.dryRun {
		plan, err := p.Plan(ctx, c)
		var problems document.Problems
		switch {
		case errors.As(err, &problems):
			result.Errors = problems.Strings()
			return result, nil
		case errors.Is(err, ci.ErrFiltered):
			result.Errors = []string{err.Error()}
			return result, nil
		case err != nil:
			return result, err
		}
		jobs = plannedJobs(plan)
	}
	result.Valid = true
	size := 0
	for _, j := range jobs {
		size += j.size()
	}
	switch {
	case !l.includeJobs:
	case size > maxShown:
		result.Warnings = append(result.Warnings, fmt.Sprintf("the jobs are not shown, because they are larger than %d bytes", maxShown))
	default:
		result.Jobs = &jobs
	}
	return result, nil
}

// maxShown is the maximum size of all jobs that are shown, in bytes.
const maxShown = 8 << 20

// invalid returns the result of a configuration with problems.
func (l *lint) invalid(p document.Problems) Result {
	result := Result{Errors: p.Strings(), Warnings: []string{}, Includes: []Include{}}
	if l.includeJobs {
		result.Jobs = &[]Job{}
	}
	return result
}

// errReference says that a dry run is for no branch or tag. Pipelines use the same text.
var errReference = errors.New("Reference not found")

// pipeline returns the pipeline for a branch or tag; for the default branch if ref is empty.
func (l *lint) pipeline(ctx context.Context, name string) (*ci.Pipeline, error) {
	project := l.subject.Scope.Project
	p := &ci.Pipeline{Source: launch.SourcePush, Project: l.subject.Scope.Path(), Projects: launch.Projects{Kit: l.Kit, By: l.subject.Caller}}
	if l.files == nil {
		if l.dryRun {
			return nil, errReference
		}
		return p, nil
	}
	p.Files = l.files
	head, err := refs.ReadHead(ctx, l.repository)
	if err != nil {
		return nil, err
	}
	p.Ref, p.Files = head.Branch, l.files
	if l.dryRun {
		if err := l.at(ctx, p, name); err != nil {
			return nil, err
		}
	}
	p.Predefined = launch.Predefined(p, project.RESTID(), head.Branch)
	return p, nil
}

// at sets the branch or tag of a pipeline. The configuration and its local includes stay those of their own commit.
func (l *lint) at(ctx context.Context, p *ci.Pipeline, name string) error {
	if name == "" {
		return nil
	}
	if object.CheckRefName(ref.Branches+name) != nil {
		return errReference
	}
	objects, err := l.repository.Objects(ctx, ref.Branches+name, ref.Tags+name)
	switch {
	case err != nil:
		return fmt.Errorf("looking up the ref of a dry run: %w", err)
	case objects[0].ID == "" && objects[1].ID == "":
		return errReference
	}
	p.Ref, p.Tag = name, objects[0].ID == ""
	return nil
}
