package mergecheck

import (
	"context"
	"errors"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// Branches are the branches of a merge request at some time.
type Branches struct {
	// Repository is the repository of the target project; nil if it does not exist.
	Repository *git.Repository
	// Source and Target are the heads of the branches; empty if a branch does not exist.
	Source, Target string
	// Merged is the commit of the ref that Merge names; empty if it does not exist.
	Merged string

	source *git.Repository
	// keptHead is what the ref that Head names has. It was read before the branches, like Merged.
	keptHead string
}

// Exist reports whether both branches exist.
func (b Branches) Exist() bool { return b.Source != "" && b.Target != "" }

// SourceRepository returns the repository that has the source branch; nil if it does not exist.
func (b Branches) SourceRepository() *git.Repository { return b.source }

// checked reports whether a merge request was checked with these branches, and its refs exist.
func (b Branches) checked(m mergerequest.MergeRequest) bool {
	if !b.Exist() {
		return m.CheckedTarget == "" && m.MergeStatus == mergerequest.Unchecked
	}
	known := m.MergeStatus == mergerequest.CanBeMerged
	if b.Merged == "" {
		known = m.MergeStatus == mergerequest.CannotMerge || m.MergeStatus == mergerequest.Checking
	}
	return known && m.Head == b.Source && m.CheckedTarget == b.Target && b.keptHead == b.Source
}

// Branches reads the branches of a merge request.
func (c *Checker) Branches(ctx context.Context, m mergerequest.MergeRequest) (b Branches, err error) {
	if b.Repository, err = c.repository(ctx, m.In); err != nil || b.Repository == nil {
		return b, err
	}
	if b.source = b.Repository; m.Source.UID != m.In.UID {
		if b.source, err = c.repository(ctx, m.Source); err != nil {
			return b, err
		}
	}
	kept, err := heads(ctx, b.Repository, Head(m.IID), Merge(m.IID), object.BranchPrefix+m.TargetBranch)
	if err != nil {
		return b, err
	}
	b.keptHead, b.Merged, b.Target = kept[0], kept[1], kept[2]
	if b.source == nil {
		return b, nil
	}
	source, err := heads(ctx, b.source, object.BranchPrefix+m.SourceBranch)
	if err != nil {
		return b, err
	}
	b.Source = source[0]
	return b, nil
}

// heads returns the ids of refs; empty for those that do not exist.
func heads(ctx context.Context, r *git.Repository, names ...string) ([]string, error) {
	for _, name := range names {
		if object.CheckRefName(name) != nil {
			return make([]string, len(names)), nil //nolint:nilerr // no ref has this name
		}
	}
	found, err := r.Objects(ctx, names...)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(found))
	for i, o := range found {
		ids[i] = o.ID
	}
	return ids, nil
}

// repository returns the repository of a project, or nil if there is none.
func (c *Checker) repository(ctx context.Context, s database.Subject) (*git.Repository, error) {
	p, err := catalog.ByIDAndUID[*v1alpha1.Project](ctx, c.catalog, s.ID, s.UID)
	if err != nil {
		return nil, catalog.IgnoreNotFound(err)
	}
	r, err := c.repositories.Content(ctx, p)
	if errors.Is(err, repository.ErrNoStorage) {
		return nil, nil
	}
	return r, err
}
