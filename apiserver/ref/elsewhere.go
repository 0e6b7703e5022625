package ref

import (
	"context"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/internal/protection"
)

// Requester returns the current state of the user who writes refs. Guard.Current and Guard.Requester of package auth implement it.
type Requester func(ctx context.Context) (auth.Caller, error)

// DeleteSource deletes the source branch of a merge request that was merged with a head, in whichever project it is. The branch must not be
// protected, and must have the head. It returns the errors of Update, and catalog.ErrNotFound if the project is gone.
func (u *Updater) DeleteSource(ctx context.Context, who Requester, in database.Subject, branch, head string) error {
	repo, err := u.elsewhere(ctx, in)
	if err != nil {
		return err
	}
	w := change.Write{Repository: repo, Via: protection.API, Written: u.written}
	w.Authorize = func(ctx context.Context, branches []string) (protection.Actor, []protection.Rule, error) {
		actor, rules, err := u.authorizeElsewhere(ctx, &w, who, in, branches)
		if err == nil && len(rules) > 0 {
			err = endpoint.Forbidden("The source branch is protected")
		}
		return actor, rules, err
	}
	return converted(w.Apply(ctx, func(context.Context) ([]update.Ref, error) {
		return []update.Ref{{Name: Branches + branch, Old: head}}, nil
	}))
}

// WriteSource is Write for the source branch of a merge request in a fork, which has the repository repo.
func (u *Updater) WriteSource(
	ctx context.Context, who Requester, in database.Subject, branch string, repo *git.Repository, prepare func(ctx context.Context) ([]update.Ref, error),
) error {
	w := change.Write{Repository: repo, Via: protection.API, Written: u.written}
	w.Authorize = func(ctx context.Context, branches []string) (protection.Actor, []protection.Rule, error) {
		actor, rules, err := u.authorizeElsewhere(ctx, &w, who, in, branches)
		if err != nil {
			return actor, nil, err
		}
		if may, err := actor.MayWrite(ctx, branch); err != nil {
			return actor, nil, err
		} else if !may {
			return actor, nil, endpoint.Forbidden("Cannot push to source branch")
		}
		return actor, rules, nil
	}
	return converted(w.Apply(ctx, prepare))
}

// elsewhere returns the repository of a project that a request is not about.
func (u *Updater) elsewhere(ctx context.Context, in database.Subject) (*git.Repository, error) {
	s, err := u.scope(ctx, in)
	if err != nil {
		return nil, err
	}
	return u.repositories.Content(ctx, s.Project)
}

func (u *Updater) scope(ctx context.Context, in database.Subject) (catalog.Scope, error) {
	s, err := u.guard.Project(ctx, strconv.FormatInt(in.ID, 10))
	if err == nil && s.Project.UID != in.UID {
		err = catalog.ErrNotFound
	}
	return s, err
}

// authorizeElsewhere is authorize for a project that a request is not about. It completes w.
func (u *Updater) authorizeElsewhere(
	ctx context.Context, w *change.Write, who Requester, in database.Subject, branches []string,
) (actor protection.Actor, rules []protection.Rule, err error) {
	s := auth.Subject{}
	if s.Caller, err = who(ctx); err != nil {
		return actor, nil, err
	}
	if s.Scope, err = u.scope(ctx, in); err != nil {
		return actor, nil, err
	}
	record := audit.From(ctx)
	record.User(s.Caller.User)
	record.About(s.Scope.Project, s.Scope.Path())
	if s.Access, err = u.guard.Access(ctx, s.Caller, s.Scope); err != nil {
		return actor, nil, err
	}
	if err := u.writable(ctx, s.Scope.Project, w.Repository); err != nil {
		return actor, nil, err
	}
	w.Project, w.By = client.ObjectKeyFromObject(s.Scope.Project), database.User{ID: s.Caller.User.RESTID(), UID: s.Caller.User.UID}
	rules, err = u.guard.Rules(ctx, auth.Project{Subject: s}, branches)
	return u.guard.Actor(s), rules, err
}
