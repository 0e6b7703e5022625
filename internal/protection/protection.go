// Package protection decides who may do what to a ref. It is the only place that does: pushes, merges and commits made through the API all
// call Decide.
//
// Decide does no input or output of its own. Facts that are expensive to determine (is this push a fast-forward, does it touch owned files)
// are passed as functions, which are called only if the answer depends on them.
package protection

import (
	"context"
	"fmt"

	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/internal/role"
)

// Rule protects the branches that match its name.
type Rule struct {
	// Name is a branch name or a wildcard; see Match.
	Name string
	// Source is the object that declares the rule, as "namespace/name". It only appears in messages.
	Source string
	// Push, Merge and Unprotect list who may push to, merge into, and unprotect or delete a matching branch. Any one grant suffices. An
	// empty list grants nothing, but an empty Unprotect stands for the Maintainers.
	Push, Merge, Unprotect []Grant
	// AllowForcePush also lets everyone who may push rewrite history.
	AllowForcePush bool
	// CodeOwnerApprovalRequired refuses changes of files with code owners, except merges that the owners have approved.
	CodeOwnerApprovalRequired bool
}

// Grant says who may do something: everybody with at least a role, one user, the members of one group, or one deploy key. At most one of
// the fields other than Title is set. The zero Grant is "No one": it lets no one do anything, not even administrators, but does not
// restrict the other grants of a list.
type Grant struct {
	// Role is Developer, Maintainer or Admin. An administrator counts as Owner, so only Admin singles them out.
	Role role.Role
	// UserID, GroupID and DeployKeyID are REST ids. A user, or a member of the group, also needs the Developer role in the project, and a
	// deploy key must have write access.
	UserID, GroupID, DeployKeyID int64
	// Title names the user, group or deploy key in messages.
	Title string
}

// Actor wants to make a change.
type Actor struct {
	// UserID is the REST id of the user; 0 if there is none.
	UserID int64
	// Role is the effective role in the project.
	Role role.Role
	// Admin is true for administrators of the instance.
	Admin bool
	// InGroup reports whether the user is a member of the group with a REST id. nil means that they are not a member of any.
	InGroup func(ctx context.Context, groupID int64) (bool, error)
	// Collaborates reports whether merge requests let the actor push to a branch that no rule protects, or to some branch if the name is empty. It
	// only counts for actors who cannot write; nil means no branch.
	Collaborates func(ctx context.Context, branch string) (bool, error)
	// DeployKey is set if a deploy key acts. The other fields are ignored then: a key does not have the permissions of the person who
	// created it.
	DeployKey DeployKey
}

// DeployKey is a deploy key that acts by itself. The zero DeployKey means that none does.
type DeployKey struct {
	ID       int64
	Title    string
	CanWrite bool
}

// CanWrite reports whether the actor may change anything in the repository at all.
func (a Actor) CanWrite() bool {
	if a.DeployKey.ID != 0 {
		return a.DeployKey.CanWrite
	}
	return a.role() >= role.Developer
}

// MayWrite reports whether the actor may push to a branch that no rule protects, or to some branch if the name is empty.
func (a Actor) MayWrite(ctx context.Context, branch string) (bool, error) {
	if a.CanWrite() || a.Collaborates == nil {
		return a.CanWrite(), nil
	}
	may, err := a.Collaborates(ctx, branch)
	if err != nil {
		return false, fmt.Errorf("looking for merge requests that allow collaboration: %w", err)
	}
	return may, nil
}

func (a Actor) role() role.Role {
	if a.Admin {
		return role.Owner
	}
	return a.Role
}

// holds reports whether a grant covers the actor, who must be able to write.
func (a Actor) holds(ctx context.Context, g Grant) (bool, error) {
	switch {
	case g.DeployKeyID != 0 || a.DeployKey.ID != 0:
		return g.DeployKeyID == a.DeployKey.ID, nil
	case g.UserID != 0:
		return g.UserID == a.UserID, nil
	case g.GroupID != 0:
		if a.InGroup == nil {
			return false, nil
		}
		return a.InGroup(ctx, g.GroupID)
	case g.Role == role.None:
		return false, nil
	case g.Role == role.Admin:
		return a.Admin, nil
	default:
		return a.role() >= g.Role, nil
	}
}

func (a Actor) holdsAny(ctx context.Context, grants []Grant) (bool, error) {
	for _, g := range grants {
		if ok, err := a.holds(ctx, g); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// Via says how a change is made.
type Via int

// The ways to make a change: a Git push, the merge of a merge request (including the removal of its source branch), or any other REST
// request.
const (
	Push Via = iota
	Merge
	API
)

// Change is one requested ref update.
type Change struct {
	// Ref is the update. Its name has a valid form, unless it is deleted.
	update.Ref
	Via Via
	// Forced reports whether an update drops commits from the branch. It may be nil; Decide then fails if it needs it.
	Forced func(ctx context.Context) (bool, error)
	// OwnedPaths returns the changed paths that lack a code owner's approval. It may be nil; Decide then fails if it needs it.
	OwnedPaths func(ctx context.Context) ([]string, error)
}

// Verdict is the decision about a Change.
type Verdict struct {
	Allowed bool
	// Reason says why a change is refused, in sentences for the person who requested it. It has no control characters.
	Reason string
}
