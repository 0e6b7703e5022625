package auth

import (
	"context"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/protection"
)

// Collaborations knows the merge requests from forks that let those who can merge them push to the source branch. A mergerequest.Store is one.
type Collaborations interface {
	// Collaborations returns the targets of the open ones from a branch of a project, or from all branches if the name is empty.
	Collaborations(ctx context.Context, source types.UID, branch string) ([]mergerequest.Target, error)
}

// Collaborating sets the merge requests that give rights in forks. Without it, only roles do.
func (a *Authenticator) Collaborating(c Collaborations) *Authenticator {
	a.collaborations = c
	return a
}

// collaborator returns protection.Actor.Collaborates for a caller and a project. It asks about single branches only if the caller can push to
// some branch, which is rare.
func (a *Authenticator) collaborator(c Caller, source types.UID) func(ctx context.Context, branch string) (bool, error) {
	var once sync.Once
	var some bool
	var failed error
	return func(ctx context.Context, branch string) (bool, error) {
		once.Do(func() { some, failed = a.collaborates(ctx, c, source, "") })
		if branch == "" || !some || failed != nil {
			return some, failed
		}
		return a.collaborates(ctx, c, source, branch)
	}
}

// collaborates reports whether a caller can merge one of the merge requests that allow collaboration in a branch of a project, or in any
// branch if the name is empty.
func (a *Authenticator) collaborates(ctx context.Context, c Caller, source types.UID, branch string) (bool, error) {
	targets, err := a.collaborations.Collaborations(ctx, source, branch)
	if err != nil {
		return false, err
	}
	for _, t := range targets {
		may, err := a.merges(ctx, c, t)
		if catalog.IgnoreNotFound(err) != nil || may {
			return may, err
		}
	}
	return false, nil
}

// merges reports whether a caller can merge into a target. The error is catalog.ErrNotFound if the project is gone.
func (a *Authenticator) merges(ctx context.Context, c Caller, into mergerequest.Target) (bool, error) {
	s, err := ProjectNamed(ctx, a.catalog, strconv.FormatInt(into.In.ID, 10))
	if err == nil && s.Project.UID != into.In.UID {
		err = catalog.ErrNotFound
	}
	if err != nil {
		return false, reachable(err)
	}
	access, err := a.Access(ctx, c, s)
	if err != nil {
		return false, err
	}
	rules, err := a.Rules(ctx, s, []string{into.Branch})
	if err != nil {
		return false, err
	}
	verdict, err := protection.MayMerge(ctx, rules, a.Actor(c, access, s), "refs/heads/"+into.Branch)
	return verdict.Allowed, err
}
