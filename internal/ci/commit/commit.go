// Package commit reads the files of a commit for a CI configuration.
package commit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/forgeplane/forgeplane/internal/ci/condition"
	"github.com/forgeplane/forgeplane/internal/ci/include"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/snapshot"
)

// maxChanged is the maximum size of the paths of a change in bytes.
const maxChanged = 16 << 20

// Files are the files of a commit. It implements include.Files.
type Files struct {
	repository  *git.Repository
	project, id string
	// before is the commit before a push; empty if the pipeline is not about a change.
	before string
}

// New returns the files of a commit in the repository of a project. before is the commit with which rules compare; empty for none.
func New(r *git.Repository, project, id, before string) *Files { return &Files{r, project, id, before} }

// Project implements include.Files.
func (f *Files) Project() string { return f.project }

// Commit implements include.Files.
func (f *Files) Commit() string { return f.id }

// Read implements include.Files.
func (f *Files) Read(ctx context.Context, path string, limit int) ([]byte, error) {
	content, err := snapshot.ReadFile(ctx, f.repository, f.id, path, limit)
	switch {
	case errors.Is(err, fs.ErrInvalid):
		return nil, fs.ErrNotExist
	case errors.Is(err, git.ErrFileTooLarge):
		return nil, include.ErrTooLarge
	}
	return content, err
}

// Paths implements condition.Repository.
func (f *Files) Paths(ctx context.Context) (paths []string, err error) {
	entries, err := snapshot.Tree(ctx, f.repository, f.id, "", true)
	if err != nil {
		return nil, limited(err)
	}
	for _, e := range entries {
		if e.Type == "blob" {
			paths = append(paths, e.Path)
		}
	}
	return paths, nil
}

// Changed implements condition.Repository. A change since another ref is that since the merge base.
func (f *Files) Changed(ctx context.Context, compareTo string) ([]string, bool, error) {
	from := f.before
	if compareTo != "" {
		to, err := refs.Commit(ctx, f.repository, compareTo)
		if err == nil {
			from, err = history.MergeBase(ctx, f.repository, to, f.id, nil)
		}
		if errors.Is(err, refs.ErrNotFound) || errors.Is(err, git.ErrObjectNotFound) {
			return nil, false, condition.UnknownRefError(compareTo)
		} else if err != nil {
			return nil, false, fmt.Errorf("comparing with %.100q: %w", compareTo, err)
		}
	}
	if from == "" {
		return nil, false, nil
	}
	paths, err := history.ChangedPaths(ctx, f.repository, from, f.id, maxChanged, nil)
	return paths, true, limited(err)
}

// limited returns condition.ErrTooManyComparisons for a repository or change that is too large to be listed.
func limited(err error) error {
	if errors.Is(err, git.ErrOutputTooLarge) || errors.Is(err, git.ErrFileTooLarge) {
		return condition.ErrTooManyComparisons
	}
	return err
}
