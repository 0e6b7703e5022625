// Package change decides on updates of refs, whichever way they come: it finds out in the repository what package protection
// needs to know.
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

// Request is a ref update that somebody requests.
type Request struct {
	update.Ref
	// Via is the way by which it comes.
	Via protection.Via
	// Repository is where the ref is.
	Repository *git.Repository
	// Quarantine has the objects of a push; nil for what is in the repository.
	Quarantine *git.Quarantine

	known *known
}

// known is what was found out in the repository about an update.
type known struct {
	forced *bool
	owned  *[]string
}

// Remembered returns an update that asks the repository once, however often it is decided about. It is for one goroutine.
func (u Request) Remembered() Request {
	u.known = &known{}
	return u
}

// Refused says why the update is refused to an actor, given the rules of the project, and nothing if it is not. The reason is
// for the person who asked. An error means that there is no decision: the update must not be made.
func (u Request) Refused(ctx context.Context, rules []protection.Rule, actor protection.Actor) (reason string, err error) {
	if text := u.malformed(); text != "" && !u.Deletes() { // a malformed name that has got in must be allowed out
		return text, nil
	}
	c := protection.Change{Ref: u.Ref, Via: u.Via, Forced: u.forced, OwnedPaths: u.ownedPaths}
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

// malformed says what is wrong with the name of the ref, and nothing if it is fine.
func (u Request) malformed() string {
	if err := object.CheckRefName(u.Name); err != nil {
		return err.Error() + "."
	}
	if branch, ok := strings.CutPrefix(u.Name, "refs/heads/"); ok && object.IsID(branch) {
		return fmt.Sprintf("A branch cannot be named %s: that name stands for an object.", branch)
	}
	return ""
}

func (u Request) forced(ctx context.Context) (bool, error) {
	if u.known != nil && u.known.forced != nil {
		return *u.known.forced, nil
	}
	forward, err := history.IsAncestor(ctx, u.Repository, u.Old, u.New, u.Quarantine)
	forced := !forward
	if u.known != nil && err == nil {
		u.known.forced = &forced
	}
	return forced, err
}
