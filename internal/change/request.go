package change

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
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

	// approvals is Write.OwnerApprovals.
	approvals func(ctx context.Context, owners []string) (int, error)

	// forced and owned are nil until they have been read.
	forced *bool
	owned  *[]ownedPath
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

// ownedPath is a changed path with a pattern whose owners must approve the change.
type ownedPath struct {
	path string
	codeowners.Owned
}

const (
	// maxChanged is the maximum length of the names of all changed files together, in bytes.
	maxChanged = 16 << 20
	// maxOwned is the maximum number of owned paths that are determined for the message to the writer; for each pattern, if the write can be approved.
	maxOwned = 10
)

// ownedPaths returns some of the changed paths that lack the approval of a code owner. It counts the approvals in each call, because the
// roles of those who have approved can change.
func (r *request) ownedPaths(ctx context.Context) ([]string, error) {
	if r.owned == nil {
		owned, err := r.findOwned(ctx)
		if err != nil {
			return nil, err
		}
		r.owned = &owned
	}
	var unapproved []string
	approved := map[*codeowners.Entry]bool{}
	for _, o := range *r.owned {
		if _, counted := approved[o.Entry]; !counted && r.approvals != nil {
			n, err := r.approvals(ctx, o.Entry.Owners)
			if err != nil {
				return nil, fmt.Errorf("counting the approvals of code owners: %w", err)
			}
			approved[o.Entry] = n >= o.Section.Approvals
		}
		if !approved[o.Entry] && len(unapproved) < maxOwned && !slices.Contains(unapproved, o.path) {
			unapproved = append(unapproved, o.path)
		}
	}
	return unapproved, nil
}

// findOwned returns changed paths that need the approval of a code owner. It reads the owners from the branch before the change, so that a
// push cannot release itself. A new branch is compared with the default branch.
func (r *request) findOwned(ctx context.Context) ([]ownedPath, error) {
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
	return r.pathsIn(ctx, file, changed)
}

// pathsIn returns the first maxOwned changed paths that need the approval of a code owner, or those of each pattern if the write can be approved.
func (r *request) pathsIn(ctx context.Context, file *codeowners.File, changed []string) (owned []ownedPath, err error) {
	paths, ofEntry := 0, map[*codeowners.Entry]int{}
	for _, path := range changed {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		needed := false
		for _, o := range file.Owners(path) {
			if o.Section.Optional {
				continue
			}
			needed = true
			if ofEntry[o.Entry]++; ofEntry[o.Entry] <= maxOwned {
				owned = append(owned, ownedPath{path, o})
			}
		}
		if needed {
			paths++
		}
		if paths == maxOwned && r.approvals == nil {
			break
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
