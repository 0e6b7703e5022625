package history

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

const (
	// maxWalkedText is the maximum size of all messages of a walk together, in bytes.
	maxWalkedText = 64 << 20
	// walkBatch is the number of commits in memory at a time.
	walkBatch = 64
)

// ErrTooManyCommits is returned for a walk with more commits than the limit of the caller.
var ErrTooManyCommits = errors.New("there are too many commits")

// Walk reads all commits of a log, a few at a time; the caller can stop early. If there are more commits than l.Limit, it reads none and
// returns ErrTooManyCommits. Beyond 64 MiB of messages, the error is git.ErrOutputTooLarge. An error ends the sequence.
func Walk(ctx context.Context, r *git.Repository, l Log) iter.Seq2[*object.Commit, error] {
	return func(yield func(*object.Commit, error) bool) {
		ids, err := walked(ctx, r, l)
		if err != nil {
			yield(nil, fmt.Errorf("listing the commits of a log: %w", err))
			return
		}
		text := 0
		for batch := range slices.Chunk(ids, walkBatch) {
			commits, err := r.ReadCommits(ctx, batch, object.WholeCommits)
			if err != nil {
				yield(nil, fmt.Errorf("reading the commits of a log: %w", err))
				return
			}
			for _, c := range commits {
				if text += len(c.Message); text > maxWalkedText {
					yield(nil, fmt.Errorf("reading the commits of a log: %w", process.ErrOutputTooLarge))
					return
				}
				if !yield(c, nil) {
					return
				}
			}
		}
	}
}

func walked(ctx context.Context, r *git.Repository, l Log) ([]string, error) {
	if err := object.CheckIDs(slices.Concat(l.Tips, l.Without)...); err != nil {
		return nil, err
	}
	ids, err := logged(ctx, r, l)
	if err == nil && len(ids) > l.Limit {
		err = ErrTooManyCommits
	}
	return ids, err
}
