package change

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/forgeplane/forgeplane/internal/codeowners"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/snapshot"
)

const (
	// maxChanged is the maximum length of the names of all changed files together, in bytes.
	maxChanged = 16 << 20
	// maxOwned is the maximum number of owned paths that are determined for the message to the pusher.
	maxOwned = 10
)

func (r *request) ownedPaths(ctx context.Context) ([]string, error) {
	if r.owned == nil {
		owned, err := r.findOwned(ctx)
		if err != nil {
			return nil, err
		}
		r.owned = &owned
	}
	return *r.owned, nil
}

// findOwned returns some of the changed paths that need the approval of a code owner. It reads the owners from the branch before the
// change, so that a push cannot release itself. A new branch is compared with the default branch.
func (r *request) findOwned(ctx context.Context) ([]string, error) {
	owners, from := r.Old, r.Old
	if r.Expects("") {
		head, err := refs.ReadHead(ctx, r.repository)
		if err != nil || head.Commit == "" { // an empty repository has no owners
			return nil, err
		}
		owners = head.Commit
		if from, err = history.MergeBase(ctx, r.repository, head.Commit, r.New, r.quarantine); err != nil {
			return nil, err
		}
	}
	file, err := r.owners(ctx, owners)
	if file == nil || err != nil {
		return nil, err
	}
	changed, err := history.ChangedPaths(ctx, r.repository, from, r.New, maxChanged, r.quarantine)
	if err != nil {
		return nil, err
	}
	var owned []string
	for _, path := range changed {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if file.ApprovalRequired(path) {
			if owned = append(owned, path); len(owned) == maxOwned {
				break
			}
		}
	}
	return owned, nil
}

// owners reads the CODEOWNERS file of a commit. It returns nil if there is none.
func (r *request) owners(ctx context.Context, commit string) (*codeowners.File, error) {
	for _, path := range codeowners.Locations {
		text, err := snapshot.ReadFile(ctx, r.repository, commit, path, codeowners.MaxSize)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		file, err := codeowners.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return file, nil
	}
	return nil, nil
}
