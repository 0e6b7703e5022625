package history

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/internal/recall"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

// Count returns the number of commits that are reachable from a commit, including itself.
func Count(ctx context.Context, r *git.Repository, commit string) (int, error) {
	if err := object.CheckIDs(commit); err != nil {
		return 0, err
	}
	return count(ctx, r, commit)
}

// CountBetween returns the number of commits that are reachable from to but not from from.
func CountBetween(ctx context.Context, r *git.Repository, from, to string) (int, error) {
	if err := object.CheckIDs(from, to); err != nil {
		return 0, err
	}
	return count(ctx, r, from+".."+to)
}

// count returns the number of commits in a range.
func count(ctx context.Context, r *git.Repository, commits string) (int, error) {
	size := func(int) int { return 8 }
	return recall.Find(ctx, r.Results(), "counting commits", commits, size, func(ctx context.Context) (int, error) {
		out, err := r.WalkOutput(ctx, process.In(r.Dir(), "rev-list", "--count", commits, "--"))
		if err != nil {
			return 0, err
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(out)))
		if err != nil {
			return 0, fmt.Errorf("reading the number of commits: %w", err)
		}
		return n, nil
	})
}
