package merge

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/edit"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

// MaxRebase is the maximum number of commits that Rebase takes.
const MaxRebase = 200

// ErrTooMany says that a branch has more commits than MaxRebase.
var ErrTooMany = fmt.Errorf("the source branch has more than %d commits of its own", MaxRebase)

// Rebase applies the commits that source has and onto does not have on top of onto, as git rebase does, and returns the last commit. It
// leaves out merge commits, and commits whose changes onto has already. Commits that are in their place already stay as they are. Authors and
// messages stay. No ref names the new commits yet; the caller must have begun a write. The error is a *ConflictError for the first commit that cannot be applied, or ErrTooMany.
func Rebase(ctx context.Context, r *git.Repository, source, onto string, committer object.Signature) (head string, err error) {
	if err := object.CheckIDs(source, onto); err != nil {
		return "", err
	}
	if done, err := rebased(ctx, r, source, onto); err != nil {
		return "", err
	} else if done {
		return source, nil
	}
	out, err := r.WalkOutput(ctx, process.In(r.Dir(), "rev-list", "--reverse", "--topo-order", "--no-merges", "--cherry-pick", "--right-only",
		fmt.Sprintf("--max-count=%d", MaxRebase+1), onto+"..."+source, "--"))
	if err != nil {
		return "", err
	}
	picked := strings.Fields(string(out))
	if len(picked) > MaxRebase {
		return "", ErrTooMany
	}
	at, err := r.ReadCommit(ctx, onto)
	if err != nil {
		return "", err
	}
	head, tree := at.ID, at.Tree
	for _, id := range picked {
		c, err := r.ReadCommit(ctx, id)
		if err != nil {
			return "", err
		}
		if slices.Equal(c.Parents, []string{head}) {
			head, tree = c.ID, c.Tree
			continue
		}
		merged, empty, err := pick(ctx, r, c, tree)
		if err != nil {
			return "", fmt.Errorf("applying commit %s: %w", id, err)
		}
		if merged == tree && !empty { // onto has the changes
			continue
		}
		tree = merged
		head, err = edit.CommitTree(ctx, r, edit.TreeCommit{Tree: tree, Parents: []string{head}, Author: c.Author, Committer: committer, Message: c.Message})
		if err != nil {
			return "", err
		}
	}
	return head, nil
}

// rebased reports whether a rebase has nothing to do: source is on top of onto, without merge commits.
func rebased(ctx context.Context, r *git.Repository, source, onto string) (bool, error) {
	base, err := history.CommonAncestor(ctx, r, source, onto)
	if err != nil || base != onto {
		return false, err
	}
	merges, err := r.WalkOutput(ctx, process.In(r.Dir(), "rev-list", "--merges", "--max-count=1", onto+".."+source, "--"))
	return len(merges) == 0, err
}

// pick applies the changes of a commit to a tree, and returns the new tree. empty says that the commit changes nothing.
func pick(ctx context.Context, r *git.Repository, c *object.Commit, onto string) (tree string, empty bool, err error) {
	base := object.EmptyTree(c.ID)
	if len(c.Parents) > 0 {
		parent, err := r.ReadCommit(ctx, c.Parents[0])
		if err != nil {
			return "", false, err
		}
		base = parent.Tree
	}
	if base == c.Tree {
		return onto, true, nil
	}
	// git merge-tree takes no merge base before 2.40. It finds the parent's tree in a commit that both sides have in common.
	var ours, theirs string
	err = edit.CommitTrees(ctx, r, len(c.ID), func(add func(edit.TreeCommit) string) {
		synthetic := edit.TreeCommit{Tree: base, Author: c.Author, Committer: c.Author}
		synthetic.Parents = []string{add(synthetic)}
		synthetic.Tree = onto
		ours = add(synthetic)
		synthetic.Tree = c.Tree
		theirs = add(synthetic)
	})
	if err != nil {
		return "", false, err
	}
	if ours == theirs {
		return onto, false, nil
	}
	tree, err = mergeTree(ctx, r, ours, theirs)
	return tree, false, err
}
