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
	// maxChanged is how long the names of all changed files may be together, in bytes.
	maxChanged = 16 << 20
	// maxOwned is how many owned paths are of interest: they are there to be named to the pusher.
	maxOwned = 10
)

// ownedPaths is findOwned, asked once where that is remembered.
func (u Request) ownedPaths(ctx context.Context) ([]string, error) {
	if u.known != nil && u.known.owned != nil {
		return *u.known.owned, nil
	}
	owned, err := u.findOwned(ctx)
	if u.known != nil && err == nil {
		u.known.owned = &owned
	}
	return owned, err
}

// findOwned returns some of the changed paths that need the approval of a code owner. It reads the owners from the branch before the
// change, so that a push cannot release itself. A new branch is compared with the default branch.
func (u Request) findOwned(ctx context.Context) ([]string, error) {
	owners, from := u.Old, u.Old
	if u.Expects("") {
		head, err := refs.ReadHead(ctx, u.Repository)
		if err != nil || head.Commit == "" { // an empty repository has no owners
			return nil, err
		}
		owners = head.Commit
		if from, err = history.MergeBase(ctx, u.Repository, head.Commit, u.New, u.Quarantine); err != nil {
			return nil, err
		}
	}
	file, err := u.owners(ctx, owners)
	if file == nil || err != nil {
		return nil, err
	}
	changed, err := history.ChangedPaths(ctx, u.Repository, from, u.New, maxChanged, u.Quarantine)
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
func (u Request) owners(ctx context.Context, commit string) (*codeowners.File, error) {
	for _, path := range codeowners.Locations {
		text, err := snapshot.ReadFile(ctx, u.Repository, commit, path, codeowners.MaxSize)
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
