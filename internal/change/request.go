package change

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/forgeplane/forgeplane/internal/codeowners"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/internal/protection"
)

// request is an update that somebody requests. It asks the repository once, however often it is decided on.
type request struct {
	update.Ref
	via        protection.Via
	repository *git.Repository
	// quarantine has the objects of a push; nil if they are in the repository.
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
	if text := r.malformed(); text != "" && !r.Deletes() { // it must be possible to delete a ref with a malformed name
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

// malformed returns what is wrong with the name of the ref, or "".
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
