package ref

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/internal/protection"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// Updater changes refs for callers. It permits what a push permits.
type Updater struct {
	guard        *auth.Guard
	catalog      *catalog.Catalog
	repositories *repository.Repositories
	pushed       func(project types.NamespacedName)
}

// NewUpdater returns an Updater. It calls pushed for each project whose refs have changed.
func NewUpdater(
	guard *auth.Guard, cat *catalog.Catalog, r *repository.Repositories, pushed func(project types.NamespacedName),
) *Updater {
	return &Updater{guard: guard, catalog: cat, repositories: r, pushed: pushed}
}

// RefusedError says why the caller may not make an update.
type RefusedError struct {
	// Ref is the full name.
	Ref string
	// Reason is for the person who asked.
	Reason string
	// Description says what Reason leaves open, such as the protection and the role. It can be empty.
	Description string
}

func (r *RefusedError) Error() string { return r.Reason }

// Answer is 403 with the reason.
func (r *RefusedError) Answer() *endpoint.Error {
	return endpoint.Message(http.StatusForbidden, "%s", r.Reason).Describe("%s", r.Description)
}

// ErrDefaultBranch is returned where the default branch would be deleted.
var ErrDefaultBranch = errors.New("the default branch of a project cannot be deleted")

const (
	archived = "The project is archived"
	readOnly = "The repository is temporarily read-only. Please try again later."
)

// updateTimeout is how long a change may take that has begun, even when its client goes away.
const updateTimeout = time.Minute

// Update makes all updates in the repository of the project that a request is about, or none. They are decided on as a push is,
// with the project as it is then. The error is RefusedError for what the caller may not do, ErrDefaultBranch, an answer for projects that
// take no changes, or one of refs.Apply.
func (u *Updater) Update(ctx context.Context, s auth.Project, repo *git.Repository, updates ...update.Ref) error {
	return u.Write(ctx, s, repo, func(context.Context) ([]update.Ref, error) { return updates, nil })
}

// Write is Update with a prepare function that writes objects before the refs are changed. If the project takes no changes, prepare is not
// called.
func (u *Updater) Write(ctx context.Context, s auth.Project, repo *git.Repository, prepare func(ctx context.Context) ([]update.Ref, error)) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), updateTimeout)
	defer cancel()
	// From here on, closing the repository waits for this write, or this write finds it closed.
	ctx, end, err := repo.BeginWrite(ctx)
	switch {
	case errors.Is(err, git.ErrClosed):
		return endpoint.Forbidden(readOnly)
	case err != nil:
		return err
	}
	defer end()
	if err := u.writable(ctx, s, repo); err != nil {
		return err
	}
	updates, err := prepare(ctx)
	if err != nil {
		return err
	}
	defer func() { tell(ctx, updates, err) }()
	// That may have taken its time, and a token or a role have ended.
	if s, err = u.guard.Again(ctx, s); err != nil {
		return err
	}
	if err := u.writable(ctx, s, repo); err != nil {
		return err
	}
	if err := u.check(ctx, s, repo, updates); err != nil {
		return err
	}
	if err := refs.Apply(ctx, repo, updates...); err != nil {
		return err
	}
	u.pushed(client.ObjectKeyFromObject(s.Scope.Project))
	return nil
}

// tell adds to the audit event which refs were requested to change, and the result.
func tell(ctx context.Context, updates []update.Ref, err error) {
	result := audit.Done
	switch refused := (*RefusedError)(nil); {
	case errors.As(err, &refused), errors.Is(err, ErrDefaultBranch):
		result = audit.Refused
	case err != nil:
		result = audit.Failed
	}
	audit.From(ctx).Updates(updates, result, nil)
}

// writable says why the project takes no changes, as it is now.
func (u *Updater) writable(ctx context.Context, s auth.Project, repo *git.Repository) error {
	p, err := catalog.ByID[*v1alpha1.Project](ctx, u.catalog, s.Scope.Project.RESTID())
	if errors.Is(err, catalog.ErrNotFound) {
		return endpoint.NotFound("Project")
	} else if err != nil {
		return err
	}
	switch is, err := u.repositories.Of(ctx, p); {
	case p.Spec.Archived:
		return endpoint.Forbidden(archived)
	case p.Spec.ReadOnly:
		return endpoint.Forbidden(readOnly)
	case err != nil:
		return err
	case is.Dir() != repo.Dir(): // it was moved meanwhile
		return endpoint.Forbidden(readOnly)
	}
	return nil
}

// check returns the reason why the updates must not be made.
func (u *Updater) check(ctx context.Context, s auth.Project, repo *git.Repository, updates []update.Ref) error {
	named := make([]string, len(updates))
	for i, u := range updates {
		named[i] = u.Name
	}
	head, err := refs.ReadHead(ctx, repo)
	if err != nil {
		return err
	}
	rules, err := u.rules(ctx, s, named...)
	if err != nil {
		return err
	}
	actor := u.guard.Actor(s.Subject)
	for _, u := range updates {
		if u.Deletes() && u.Name == Branches+head.Branch {
			return ErrDefaultBranch
		}
		reason, err := change.Request{Ref: u, Via: protection.API, Repository: repo}.Refused(ctx, rules, actor)
		if err != nil {
			return err
		}
		if reason != "" {
			return &RefusedError{Ref: u.Name, Reason: reason}
		}
	}
	return nil
}

// rules are the protections that count for refs.
func (u *Updater) rules(ctx context.Context, s auth.Project, named ...string) ([]protection.Rule, error) {
	var branches []string
	for _, r := range named {
		if name, ok := protection.Branch(r); ok {
			branches = append(branches, name)
		}
	}
	rules, err := u.guard.Rules(ctx, s, branches)
	if err != nil {
		return nil, fmt.Errorf("finding the protections: %w", err)
	}
	return rules, nil
}

// MayPush is the function MayPush for the caller and the project that the request is about.
func (u *Updater) MayPush(ctx context.Context, s auth.Project, ref string) (protection.Verdict, error) {
	rules, err := u.rules(ctx, s, ref)
	if err != nil {
		return protection.Verdict{}, err
	}
	return MayPush(ctx, rules, u.guard.Actor(s.Subject), ref)
}

// MayPush decides whether an actor may push to a ref something that rewrites no history and has no owners.
func MayPush(ctx context.Context, rules []protection.Rule, actor protection.Actor, ref string) (protection.Verdict, error) {
	return protection.Decide(ctx, rules, actor, protection.Change{
		Ref: update.Ref{Name: ref, Old: "1", New: "2"}, Via: protection.Push, // the rules do not depend on the ids
		Forced:     func(context.Context) (bool, error) { return false, nil },
		OwnedPaths: func(context.Context) ([]string, error) { return nil, nil },
	})
}
