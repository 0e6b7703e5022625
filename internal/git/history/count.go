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
	size := func(int) int { return 8 }
	return recall.Find(ctx, r.Results(), "counting commits", commit, size, func(ctx context.Context) (int, error) {
		out, err := r.WalkOutput(ctx, process.In(r.Dir(), "rev-list", "--count", commit, "--"))
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
