// Package merge merges commits in bare repositories.
package merge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/edit"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

// Errors about commits that cannot be merged.
var (
	// ErrUnrelated says that the commits have no common ancestor.
	ErrUnrelated = errors.New("the branches have no common history")
	// ErrContained says that there is nothing to merge.
	ErrContained = errors.New("the target branch already contains the source branch")
)

// ConflictError is returned for commits with conflicting changes.
type ConflictError struct {
	// Paths are some of the files with conflicts.
	Paths []string
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("there are conflicts, among others in %.300q", e.Paths)
}

// Tree merges the commit theirs into the commit ours as git merge does, and returns the id of the merged tree. It finds renames. Nothing names
// the tree yet; the caller must have begun a write. Unlike in a work tree, .gitattributes files have no effect.
//
// The error is a *ConflictError, ErrUnrelated, ErrContained if ours contains theirs, and git.ErrObjectNotFound if one of them is not a commit.
func Tree(ctx context.Context, r *git.Repository, ours, theirs string) (id string, err error) {
	for _, commit := range []string{ours, theirs} {
		if _, err := r.ReadCommit(ctx, commit); err != nil {
			return "", err
		}
	}
	switch base, err := history.CommonAncestor(ctx, r, theirs, ours); {
	case err != nil:
		return "", err
	case base == "":
		return "", ErrUnrelated
	case base == theirs:
		return "", ErrContained
	}
	return mergeTree(ctx, r, ours, theirs)
}

// mergeTree is Tree for commits that exist and have a common ancestor.
func mergeTree(ctx context.Context, r *git.Repository, ours, theirs string) (id string, err error) {
	if err := r.CheckRoom(ctx); err != nil {
		return "", err
	}
	var out strings.Builder
	c := process.In(r.Dir(), "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs)
	c.Stdout = &paths{to: &out}
	err = r.Walking(ctx, func(ctx context.Context) error { return r.Run(ctx, c) })
	id, conflicts, _ := strings.Cut(out.String(), "\x00")
	switch failed := (*process.Error)(nil); {
	case errors.As(err, &failed) && failed.ExitCode == 1 && object.IsID(id): // git-merge-tree(1)
		return "", &ConflictError{Paths: strings.FieldsFunc(conflicts, func(c rune) bool { return c == 0 })}
	case err != nil:
		return "", fmt.Errorf("merging %s into %s: %w", theirs, ours, err)
	case !object.IsID(id):
		return "", fmt.Errorf("git merge-tree: unexpected output %.100q", out.String())
	}
	return id, nil
}

// keptPaths is the number of bytes of the output of git merge-tree that are kept.
const keptPaths = 4 << 10

// paths is a writer that keeps the beginning of what is written.
type paths struct{ to *strings.Builder }

// Write implements io.Writer.
func (p *paths) Write(b []byte) (int, error) {
	p.to.Write(b[:min(len(b), keptPaths-p.to.Len())])
	return len(b), nil
}

// Request describes a merge.
type Request struct {
	// Target and Source are the heads of the branches.
	Target, Source string
	// Author is the author and committer of the commits.
	Author object.Signature
	// Message is the message of the merge commit.
	Message string
	// SquashMessage, unless empty, asks for one commit in place of those of the source branch.
	SquashMessage string
	// Trial is an earlier merge commit of some heads, or empty. If they are the same ones, its tree is taken.
	Trial string
}

// Result has the commits of a merge.
type Result struct {
	// Commit is the merge commit. Squash is the commit in place of those of the source branch; empty if they are merged themselves.
	Commit, Squash string
}

// Commits merges as Tree does, and writes the merge commit. Its first parent is the target. For a squash, the second parent is a commit of the
// source's files on top of the merge base. No ref names the commits yet.
func Commits(ctx context.Context, r *git.Repository, q Request) (made Result, err error) {
	tree, err := q.tree(ctx, r)
	if err != nil {
		return Result{}, err
	}
	merged := q.Source
	if q.SquashMessage != "" {
		if made.Squash, err = squash(ctx, r, q); err != nil {
			return Result{}, err
		}
		merged = made.Squash
	}
	made.Commit, err = edit.CommitTree(ctx, r, edit.TreeCommit{
		Tree: tree, Parents: []string{q.Target, merged}, Author: q.Author, Committer: q.Author, Message: q.Message,
	})
	return made, err
}

// tree returns the merged tree.
func (q Request) tree(ctx context.Context, r *git.Repository) (id string, err error) {
	if q.Trial != "" {
		tried, err := r.ReadCommit(ctx, q.Trial)
		if err == nil && slices.Equal(tried.Parents, []string{q.Target, q.Source}) {
			return tried.Tree, nil
		}
	}
	return Tree(ctx, r, q.Target, q.Source)
}

func squash(ctx context.Context, r *git.Repository, q Request) (id string, err error) {
	base, err := history.CommonAncestor(ctx, r, q.Source, q.Target)
	if err != nil {
		return "", err
	}
	source, err := r.ReadCommit(ctx, q.Source)
	if err != nil {
		return "", err
	}
	return edit.CommitTree(ctx, r, edit.TreeCommit{
		Tree: source.Tree, Parents: []string{base}, Author: q.Author, Committer: q.Author, Message: q.SquashMessage,
	})
}
