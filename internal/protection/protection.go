// Package protection decides who may do what to a ref. It is the only place where that is decided: pushes, merges and
// commits made through the API all ask Decide.
//
// Decide does no input or output of its own. What is dear to find out (is this push a fast-forward, does it touch
// owned files) comes as functions, which are called only when the answer depends on them.
package protection

import (
	"context"

	"github.com/forgeplane/forgeplane/internal/role"
)

// Rule protects the branches that its name matches.
type Rule struct {
	// Name is a branch name, or a wildcard as Match understands it.
	Name string
	// Source is the object that declares the rule, as "namespace/name". It only appears in messages.
	Source string
	// Push, Merge and Unprotect list who may push to, merge into, and unprotect or delete a matching branch.
	// Any one grant suffices. An empty list grants nothing, except that an empty Unprotect stands for the Maintainers.
	Push, Merge, Unprotect []Grant
	// AllowForcePush lets those who may push rewrite history too.
	AllowForcePush bool
	// CodeOwnerApprovalRequired refuses pushes that change files which have code owners: those must be merged.
	CodeOwnerApprovalRequired bool
}

// Grant says who may do something: everybody with at least a role, one user, the members of one group, or one deploy key.
// At most one of the fields but Title is set. The zero Grant is "No one": it lets nobody do anything, administrators
// included, and takes nothing away from the grants beside it.
type Grant struct {
	// Role is Developer, Maintainer or Admin. An administrator counts as Owner, so only Admin singles them out.
	Role role.Role
	// UserID, GroupID and DeployKeyID are REST ids. A user, or a member of the group, also needs the Developer role in
	// the project, and a deploy key must have write access.
	UserID, GroupID, DeployKeyID int64
	// Title names the user, group or deploy key in messages.
	Title string
}

// Actor is who wants to make a change.
type Actor struct {
	// UserID is the REST id of the user, 0 for nobody.
	UserID int64
	// Role is the effective role in the project.
	Role role.Role
	// Admin is true for administrators of the instance.
	Admin bool
	// InGroup reports whether the user is a member of the group with a REST id. It may be nil: a member of none.
	InGroup func(ctx context.Context, groupID int64) (bool, error)
	// DeployKey is set when a deploy key acts. Then nothing of the above counts: a key is not the person who made it.
	DeployKey DeployKey
}

// DeployKey is a key that acts for itself. The zero DeployKey is none.
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

func (a Actor) role() role.Role {
	if a.Admin {
		return role.Owner
	}
	return a.Role
}

// holds reports whether a grant covers the actor, who CanWrite.
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

// Kind is what happens to a ref.
type Kind int

// The kinds of change.
const (
	Update Kind = iota
	Create
	Delete
)

// Via is the way by which a change comes.
type Via int

// The ways: a Git push, the merge of a merge request (its source branch removal included), or any other REST request.
const (
	Push Via = iota
	Merge
	API
)

// Change is one ref update that somebody asks for.
type Change struct {
	// Ref is the full name, such as "refs/heads/main", of valid form.
	Ref  string
	Kind Kind
	Via  Via
	// Forced reports whether an update drops commits from the branch. Decide fails if it needs Forced and it is nil.
	Forced func(ctx context.Context) (bool, error)
	// OwnedPaths returns the changed paths that need a code owner's approval.
	// Decide fails if it needs OwnedPaths and it is nil.
	OwnedPaths func(ctx context.Context) ([]string, error)
}

// Verdict is the decision about a Change.
type Verdict struct {
	Allowed bool
	// Reason says why a change is refused, in sentences for the person who asked. It has no control characters.
	Reason string
}
