package ref

import (
	"context"
	"errors"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/internal/protection"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// Updater changes refs for callers. It permits what a push permits.
type Updater struct {
	guard        *auth.Guard
	repositories *repository.Repositories
	written      func(change.Event)
}

// NewUpdater returns an Updater. It calls written after each write.
func NewUpdater(guard *auth.Guard, r *repository.Repositories, written func(change.Event)) *Updater {
	return &Updater{guard: guard, repositories: r, written: written}
}

// RefusedError says why the caller may not make an update.
type RefusedError struct {
	change.Refusal
	// Description says what Reason leaves open, such as the protection and the role. It can be empty.
	Description string
}

func (r *RefusedError) Error() string { return r.Reason }

// Answer is 403 with the reason.
func (r *RefusedError) Answer() *endpoint.Error {
	return endpoint.Message(http.StatusForbidden, "%s", r.Reason).Describe("%s", r.Description)
}

const (
	archived = "The project is archived"
	readOnly = "The repository is temporarily read-only. Please try again later."
)

// Update applies all updates in the repository of the project that a request is about, or none. They are decided on like those of a push.
// The error is a *RefusedError, change.ErrDefaultBranch, an answer for a project that takes no changes, or one of refs.Apply.
func (u *Updater) Update(ctx context.Context, s auth.Project, repo *git.Repository, updates ...update.Ref) error {
	return u.Write(ctx, s, repo, func(context.Context) ([]update.Ref, error) { return updates, nil })
}

// Write is Update with a prepare function that writes objects before the refs are changed. If the project takes no changes, prepare is not
// called.
func (u *Updater) Write(ctx context.Context, s auth.Project, repo *git.Repository, prepare func(ctx context.Context) ([]update.Ref, error)) error {
	return u.write(ctx, s, change.Write{Repository: repo, Via: protection.API}, prepare)
}

// OwnerApprovals counts the users who have approved a merge request and are among these owners of a CODEOWNERS file.
type OwnerApprovals func(ctx context.Context, owners []string) (int, error)

// Merge is Write for the merge of a merge request: it permits what a merge may do that has these approvals.
func (u *Updater) Merge(
	ctx context.Context, s auth.Project, repo *git.Repository, approvals OwnerApprovals, prepare func(ctx context.Context) ([]update.Ref, error),
) error {
	return u.write(ctx, s, change.Write{Repository: repo, Via: protection.Merge, OwnerApprovals: approvals}, prepare)
}

// write completes and applies w.
func (u *Updater) write(ctx context.Context, s auth.Project, w change.Write, prepare func(ctx context.Context) ([]update.Ref, error)) error {
	w.Project, w.Written = client.ObjectKeyFromObject(s.Scope.Project), u.written
	w.Authorize = func(ctx context.Context, branches []string) (protection.Actor, []protection.Rule, error) {
		return u.authorize(ctx, s, w.Repository, branches)
	}
	if u := s.Caller.User; u != nil {
		w.By = database.User{ID: u.RESTID(), UID: u.UID}
	}
	return converted(w.Apply(ctx, prepare))
}

// converted converts an error of change.Write.Apply.
func converted(err error) error {
	switch refused := (*change.RefusedError)(nil); {
	case errors.Is(err, git.ErrClosed):
		return endpoint.Forbidden(readOnly)
	case errors.As(err, &refused):
		return &RefusedError{Refusal: refused.Refusals[0]}
	}
	return err
}

// authorize admits a request again, because the token, the role and the project may have changed since it was admitted.
func (u *Updater) authorize(ctx context.Context, s auth.Project, repo *git.Repository, branches []string) (actor protection.Actor, rules []protection.Rule, err error) {
	if s, err = u.guard.Again(ctx, s); err != nil {
		return actor, nil, err
	}
	if err := u.writable(ctx, s.Scope.Project, repo); err != nil {
		return actor, nil, err
	}
	rules, err = u.guard.Rules(ctx, s, branches)
	return u.guard.Actor(s.Subject), rules, err
}

// writable returns an error if the project takes no changes.
func (u *Updater) writable(ctx context.Context, p *v1alpha1.Project, repo *git.Repository) error {
	switch is, err := u.repositories.Of(ctx, p); {
	case p.Spec.Archived:
		return endpoint.Forbidden(archived)
	case p.Spec.ReadOnly:
		return endpoint.Forbidden(readOnly)
	case err != nil:
		return err
	case is.Dir() != repo.Dir(): // it has been moved
		return endpoint.Forbidden(readOnly)
	}
	return nil
}

// MayPush is protection.MayPush for the caller and the project that the request is about.
func (u *Updater) MayPush(ctx context.Context, s auth.Project, ref string) (protection.Verdict, error) {
	branch, _ := protection.Branch(ref)
	rules, err := u.guard.Rules(ctx, s, []string{branch})
	if err != nil {
		return protection.Verdict{}, err
	}
	return protection.MayPush(ctx, rules, u.guard.Actor(s.Subject), ref)
}
