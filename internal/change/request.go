package change

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/forgeplane/forgeplane/internal/codeowners"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/snapshot"
	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/internal/protection"
)

// request is a requested update. It reads the repository only once, even if it is decided several times.
type request struct {
	update.Ref
	via        protection.Via
	repository *git.Repository
	// quarantine has the objects of a push. It is nil if the objects are in the repository.
	quarantine *git.Quarantine

	// forced and owned are nil until they have been read.
	forced *bool
	owned  *[]string
}

// hasRead reports whether a decision on the request has depended on the repository.
func (r *request) hasRead() bool { return r.forced != nil || r.owned != nil }

// refused returns the reason why the request is refused to an actor, given the rules of the project, or "". The reason is for the person who
// made the request. An error means that there is no decision: the update must not be made.
func (r *request) refused(ctx context.Context, rules []protection.Rule, actor protection.Actor) (reason string, err error) {
	if text := r.malformed(); text != "" && !r.Deletes() { // refs with a malformed name can be deleted
		return text, nil
	}
	c := protection.Change{Ref: r.Ref, Via: r.via, Forced: r.isForced, OwnedPaths: r.ownedPaths}
	switch verdict, err := protection.Decide(ctx, rules, actor, c); {
	case errors.Is(err, git.ErrFileTooLarge), errors.Is(err, codeowners.ErrTooLarge):
		return "The CODEOWNERS file of the branch is too large to determine who must approve. To make it smaller, " +
			"first turn off the approval of code owners in the protection of the branch.", nil
	case errors.Is(err, git.ErrOutputTooLarge):
		return "Too many files change at once to determine whether their code owners must approve. Push fewer changes at a time.", nil
	case err != nil || verdict.Allowed:
		return "", err
	default:
		return verdict.Reason, nil
	}
}

// malformed returns the problem with the name of the ref, or "" for a valid name.
func (r *request) malformed() string {
	if err := object.CheckRefName(r.Name); err != nil {
		return err.Error() + "."
	}
	if branch, ok := strings.CutPrefix(r.Name, "refs/heads/"); ok && object.IsID(branch) {
		return fmt.Sprintf("A branch cannot be named %s: that name stands for an object.", branch)
	}
	return ""
}

func (r *request) isForced(ctx context.Context) (bool, error) {
	if r.forced == nil {
		forward, err := history.IsAncestor(ctx, r.repository, r.Old, r.New, r.quarantine)
		if err != nil {
			return false, err
		}
		forced := !forward
		r.forced = &forced
	}
	return *r.forced, nil
}

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

// owners reads the CODEOWNERS file of a commit. It returns nil if the file does not exist.
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
