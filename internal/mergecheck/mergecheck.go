// Package mergecheck brings merge requests up to date with their branches: it records their versions, keeps their commits in refs of the
// repository, finds out whether they can be merged, and finishes merges that were interrupted.
package mergecheck

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/internal/activity"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/merge"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// Checker checks merge requests. It is safe for concurrent use.
type Checker struct {
	catalog      *catalog.Catalog
	repositories *repository.Repositories
	stores       activity.Stores
	clock        clock.PassiveClock
	checks       singleflight.Group
	// removeSource is Removing's; nil without it.
	removeSource func(context.Context, mergerequest.MergeRequest) error
}

// New returns a checker.
func New(cat *catalog.Catalog, r *repository.Repositories, s activity.Stores, c clock.PassiveClock) *Checker {
	return &Checker{catalog: cat, repositories: r, stores: s, clock: c}
}

// Removing sets what deletes the source branch of a merge request whose merge was interrupted. It must do nothing if the merge keeps the branch.
func (c *Checker) Removing(remove func(context.Context, mergerequest.MergeRequest) error) *Checker {
	c.removeSource = remove
	return c
}

// Head and Merge return the names of the refs of a merge request in the repository of its project: the head of the source branch, and that
// head merged into the target branch. Only the server writes them.
func Head(iid int64) string { return fmt.Sprintf("refs/merge-requests/%d/head", iid) }

// Merge returns the name of the ref of the merged commit; see Head.
func Merge(iid int64) string { return fmt.Sprintf("refs/merge-requests/%d/merge", iid) }

// Refresh compares a merge request with its branches and returns it. If it is open and a branch has moved since the last check, Refresh checks it
// again and records the result. It changes nothing otherwise. A merge request whose head was pushed to the target branch has the status Checking
// until Check marks it as merged by the pusher. If that does not happen soon, Refresh marks it as merged, without a merger. If it is locked by a merge
// that was interrupted, Refresh finishes or undoes that merge. A check that loses to another one is made again, because the other one can have
// read the branches before they moved. The error is mergerequest.ErrOutdated if that happens too often.
func (c *Checker) Refresh(ctx context.Context, m mergerequest.MergeRequest) (now mergerequest.MergeRequest, err error) {
	for range checkAttempts {
		if now, err = c.refresh(ctx, m); !errors.Is(err, mergerequest.ErrOutdated) {
			return now, err
		}
		if m, err = c.stores.MergeRequests.WithID(ctx, m.ID); err != nil {
			return m, err
		}
	}
	return m, mergerequest.ErrOutdated
}

// checkAttempts limits how often a check that has lost is made again.
const checkAttempts = 5

// refresh is one attempt of Refresh.
func (c *Checker) refresh(ctx context.Context, m mergerequest.MergeRequest) (mergerequest.MergeRequest, error) {
	if m.State != mergerequest.Opened && m.State != mergerequest.Locked {
		return m, nil
	}
	b, err := c.Branches(ctx, m)
	switch {
	case err != nil:
		return m, err
	case m.State == mergerequest.Locked:
		return c.resolve(ctx, m, b)
	case b.checked(m) && c.overdue(m):
		return c.finishPushed(ctx, m, b, mergerequest.Version{Head: m.Head, Base: m.Base, Start: m.Start}, database.User{})
	case b.checked(m):
		return m, nil
	case !b.Exist():
		return c.stores.MergeRequests.RecordCheck(ctx, m, mergerequest.Check{Status: mergerequest.Unchecked})
	}
	return c.checkOnce(ctx, m, b)
}

// errGone says that the caller whose check others wait for is gone.
var errGone = errors.New("the caller is gone")

// checkOnce is check. Concurrent callers who have read the same share one.
func (c *Checker) checkOnce(ctx context.Context, m mergerequest.MergeRequest, b Branches) (now mergerequest.MergeRequest, err error) {
	read := fmt.Sprintf("%d %s %q %s %s %s %s %s %s", m.ID, m.State, m.TargetBranch, m.Head, m.CheckedTarget, b.Source, b.Target, b.keptHead, b.Merged)
	for {
		own := false
		_, err, _ = c.checks.Do(read, func() (any, error) {
			own = true
			now, err = c.check(ctx, m, b)
			if err != nil && ctx.Err() != nil {
				return nil, errors.Join(errGone, err)
			}
			return nil, err
		})
		switch {
		case own:
			return now, err
		case ctx.Err() != nil:
			return m, context.Cause(ctx)
		case err == nil: // the other caller can have read other attributes before they changed
			return c.stores.MergeRequests.WithID(ctx, m.ID)
		case !errors.Is(err, errGone):
			return m, err
		}
	}
}

// check finds out whether the branches can be merged, and records it.
func (c *Checker) check(ctx context.Context, m mergerequest.MergeRequest, b Branches) (mergerequest.MergeRequest, error) {
	ctx, end, err := b.Repository.BeginWrite(ctx)
	if err != nil {
		return m, err
	}
	defer end()
	if err := b.Repository.CheckRoom(ctx); err != nil {
		return m, err
	}
	if b.source != b.Repository && b.keptHead != b.Source {
		if err := transfer.Bring(ctx, b.Repository, b.source, b.Source); err != nil {
			return m, fmt.Errorf("bringing the source branch of merge request %d: %w", m.ID, err)
		}
	}
	found := mergerequest.Check{Head: b.Source, Target: b.Target, Status: mergerequest.CannotMerge}
	if found.Base, err = history.CommonAncestor(ctx, b.Repository, b.Source, b.Target); err != nil {
		return m, err
	}
	merged := ""
	if found.Base == b.Source && b.arrived(m) { // the last version stays, and the task of the push comes
		found = mergerequest.Check{Target: b.Target, Status: mergerequest.Checking}
	} else if merged, err = b.compare(ctx, &found); err != nil {
		return m, err
	}
	if found.KeepApprovals, err = c.keepsApprovals(ctx, m.In); err != nil {
		return m, err
	}
	// The refs come first: no version names a commit that could be removed.
	err = refs.Apply(ctx, b.Repository, b.updates(m.IID, merged)...)
	if errors.Is(err, refs.ErrMoved) { // another check was faster
		return m, mergerequest.ErrOutdated
	}
	if err != nil {
		return m, fmt.Errorf("keeping the head of merge request %d: %w", m.ID, err)
	}
	now, err := c.stores.MergeRequests.RecordCheck(ctx, m, found)
	if errors.Is(err, mergerequest.ErrNotFound) { // deleted meanwhile
		err = errors.Join(err, forget(ctx, b.Repository, m.IID))
	}
	return now, err
}

// compare counts the changed files and merges the branches for a check. It returns the merged commit as trial does.
func (b Branches) compare(ctx context.Context, found *mergerequest.Check) (merged string, err error) {
	if found.Changes, err = count(ctx, b.Repository, found.Base, b.Source); err != nil {
		return "", err
	}
	if merged, err = trial(ctx, b); merged != "" {
		found.Status = mergerequest.CanBeMerged
	}
	return merged, err
}

// trial merges the branches for the ref that Merge names, and returns the commit, or "" if they cannot be merged. It always makes the same
// commit of the same branches.
func trial(ctx context.Context, b Branches) (commit string, err error) {
	source, err := b.Repository.ReadCommit(ctx, b.Source)
	if err != nil {
		return "", err
	}
	made, err := merge.Commits(ctx, b.Repository, merge.Request{
		Target: b.Target, Source: b.Source, Message: fmt.Sprintf("Merge %s into %s\n", b.Source, b.Target),
		Author: object.Signature{Name: "Forgeplane", Email: "forgeplane@noreply.invalid", When: source.Committer.When},
	})
	if Hopeless(err) {
		return "", nil
	}
	return made.Commit, err
}

// Hopeless reports whether an error of merging says that the commits can never be merged.
func Hopeless(err error) bool {
	return errors.As(err, new(*merge.ConflictError)) || errors.Is(err, merge.ErrUnrelated) || errors.Is(err, merge.ErrContained) ||
		git.LastingLimit(err) != ""
}

const (
	// countPatience limits the time for counting changed files.
	countPatience = 10 * time.Second
	// maxCount is the highest exact number of changed files.
	maxCount = 1000
)

// count returns the number of changed files for ChangesCount.
func count(ctx context.Context, r *git.Repository, from, to string) (string, error) {
	d, err := history.Compare(ctx, r, from, to, countPatience)
	switch n := len(d.Changes); {
	case err != nil:
		return "", fmt.Errorf("counting the changes of a merge request: %w", err)
	case n > maxCount:
		return strconv.Itoa(maxCount) + "+", nil
	case d.TimedOut:
		return "", nil
	default:
		return strconv.Itoa(n), nil
	}
}

// updates returns the updates of the refs of a merge request.
func (b Branches) updates(iid int64, merged string) (all []update.Ref) {
	for _, u := range []update.Ref{{Name: Head(iid), Old: b.keptHead, New: b.Source}, {Name: Merge(iid), Old: b.Merged, New: merged}} {
		if u.Old != u.New {
			all = append(all, u)
		}
	}
	return all
}
