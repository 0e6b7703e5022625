// Package runners is the family of the runners that execute jobs.
package runners

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/runner"
)

// Family serves runners.
type Family struct{ family.Kit }

// New returns the family.
func New(k family.Kit) *Family { return &Family{k} }

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	return append(f.own(), endpoint.Table{
		endpoint.Post("/user/runners", f.create).Anybody().Asks(auth.AdminRunners, auth.AdminGroupRunners).
			Doc("Create a runner of the installation, a group or a project."),
		endpoint.Get("/runners", f.list).Asks(auth.AdminRunners, auth.AdminGroupRunners).
			Doc("List the runners of the projects and groups that the caller manages."),
		endpoint.Get("/runners/all", f.listAll).Needs(auth.AdminInstance).
			Doc("List all runners. Only for administrators."),
		endpoint.Get("/runners/{id}", f.get).Asks(auth.AdminRunners, auth.AdminGroupRunners).
			Doc("Get a runner."),
		endpoint.Put("/runners/{id}", f.update).Anybody().Asks(auth.AdminRunners, auth.AdminGroupRunners).
			Doc("Update a runner."),
		endpoint.Delete("/runners/{id}", f.remove).Anybody().Asks(auth.AdminRunners, auth.AdminGroupRunners).
			Doc("Delete a runner."),
		endpoint.Post("/runners/{id}/reset_authentication_token", f.reset).Anybody().Asks(auth.AdminRunners, auth.AdminGroupRunners).
			Doc("Reset the authentication token of a runner."),
		endpoint.Post("/runners/reset_registration_token", f.resetOfInstance).Needs(auth.AdminInstance).
			Doc("Reset the registration token of the installation. Only for administrators."),
		endpoint.Post("/projects/{id}/runners/reset_registration_token", f.resetOfProject).Needs(auth.AdminRunners).
			Doc("Reset the registration token of a project."),
		endpoint.Post("/groups/{id}/runners/reset_registration_token", f.resetOfGroup).Needs(auth.AdminGroupRunners).
			Doc("Reset the registration token of a group."),
		endpoint.Get("/projects/{id}/runners", f.listOfProject).Needs(auth.AdminRunners).
			Doc("List the runners that can execute the jobs of a project."),
		endpoint.Post("/projects/{id}/runners", f.assign).Needs(auth.AdminRunners).Asks(auth.AdminGroupRunners).
			Doc("Enable a runner of another project for a project."),
		endpoint.Delete("/projects/{id}/runners/{runner_id}", f.unassign).Needs(auth.AdminRunners).
			Doc("Disable a runner of several projects for a project."),
		endpoint.Get("/groups/{id}/runners", f.listOfGroup).Needs(auth.AdminGroupRunners).
			Doc("List the runners that can execute the jobs of the projects of a group."),
	}...)
}

// own are the endpoints that runners call with their own token.
func (f *Family) own() endpoint.Table {
	of := func(e *endpoint.Endpoint) *endpoint.Endpoint {
		return e.Takes(endpoint.RunnerToken).Carries(endpoint.RunnerToken, "token").Anybody()
	}
	return endpoint.Table{
		endpoint.Post("/runners", f.register).Takes(endpoint.RegistrationToken).Carries(endpoint.RegistrationToken, "token").Anybody().
			Doc("Create a runner with a registration token."),
		of(endpoint.Post("/runners/verify", f.verify)).Status(http.StatusOK).
			Doc("Verify the authentication token of a runner. Only for runners."),
		of(endpoint.Delete("/runners", f.unregister)).
			Doc("Delete a runner. Only for runners."),
		of(endpoint.Delete("/runners/managers", f.leave)).
			Doc("Delete a machine of a runner. The runner stays. Only for runners."),
		of(endpoint.Post("/runners/reset_authentication_token", f.resetOwn)).
			Doc("Reset the authentication token of a runner. Only for runners."),
	}
}

type ownRequest struct {
	Token string `param:"token" required:"" example:"glrt-0f7c2b" doc:"Token of the runner."`
}

// Registration is the answer to a runner that was created or has shown its token.
type Registration struct {
	ID      int64         `json:"id"`
	Token   string        `json:"token" doc:"The authentication token."`
	Expires endpoint.Time `json:"token_expires_at" doc:"Always null."`
}

func (f *Family) verify(ctx context.Context, s auth.Runner, r *ownRequest) (Registration, error) {
	audit.From(ctx).Skip() // a contact is not a change
	return Registration{ID: s.Runner.ID, Token: r.Token}, f.Activity.Runners.Contact(ctx, s.Runner, s.Runner.Program)
}

func (f *Family) unregister(ctx context.Context, s auth.Runner, _ *ownRequest) (endpoint.None, error) {
	err := answer(f.Activity.Runners.Delete(ctx, s.Runner.ID))
	if err == nil {
		did(ctx, "delete", s.Runner)
	}
	return endpoint.None{}, err
}

func (f *Family) leave(ctx context.Context, _ auth.Runner, _ *ownRequest) (endpoint.None, error) {
	audit.From(ctx).Skip() // the machines of a runner are not told apart
	return endpoint.None{}, nil
}

// Token is a new authentication token.
type Token struct {
	Token   string        `json:"token"`
	Expires endpoint.Time `json:"token_expires_at" doc:"Always null."`
}

func (f *Family) resetOwn(ctx context.Context, s auth.Runner, _ *ownRequest) (Token, error) {
	return f.rotate(ctx, s.Runner)
}

type oneRequest struct {
	ID int64 `param:"id" doc:"Id of the runner."`
}

func (f *Family) get(ctx context.Context, s auth.Instance, r *oneRequest) (Detailed, error) {
	found, places, err := f.managed(ctx, s.Subject, r.ID)
	if err != nil {
		return Detailed{}, err
	}
	return f.detail(ctx, found, places)
}

func (f *Family) remove(ctx context.Context, s auth.Instance, r *oneRequest) (endpoint.None, error) {
	found, _, err := f.managed(ctx, s.Subject, r.ID)
	if err == nil {
		err = answer(f.Activity.Runners.Delete(ctx, found.ID))
	}
	if err == nil {
		did(ctx, "delete", found)
	}
	return endpoint.None{}, err
}

func (f *Family) reset(ctx context.Context, s auth.Instance, r *oneRequest) (Token, error) {
	found, _, err := f.managed(ctx, s.Subject, r.ID)
	if err != nil {
		return Token{}, err
	}
	return f.rotate(ctx, found)
}

// rotate replaces the authentication token of a runner.
func (f *Family) rotate(ctx context.Context, r runner.Runner) (Token, error) {
	token := runner.NewToken()
	if err := f.Activity.Runners.Reset(ctx, r.ID, token); err != nil {
		return Token{}, answer(err)
	}
	did(ctx, "rotate", r)
	return Token{Token: token}, nil
}

// managed returns a runner that the caller manages, with its places: an administrator all, a Maintainer those of a project, and an Owner those of a
// group. Others learn that a runner exists, but not more.
func (f *Family) managed(ctx context.Context, s auth.Subject, id int64) (runner.Runner, []database.Subject, error) {
	found, err := f.Activity.Runners.Get(ctx, id)
	if err != nil {
		return found, nil, answer(err)
	}
	places, err := f.Activity.Runners.Places(ctx, id)
	if err != nil || s.Caller.Admin {
		return found, places, err
	}
	for _, in := range places {
		what := auth.AdminRunners
		if in.Kind == database.KindGroup {
			what = auth.AdminGroupRunners
		}
		scope, err := f.Guard.Locate(ctx, s, what, in.ID)
		if err == nil && scope.Target().GetUID() == in.UID {
			return found, places, nil
		}
		if err != nil && !errors.As(err, new(*endpoint.Error)) {
			return found, nil, err
		}
	}
	return found, nil, endpoint.Forbidden("")
}

// answer converts an error of the store that callers can know.
func answer(err error) error {
	if errors.Is(err, runner.ErrNotFound) {
		return endpoint.NotFound("")
	}
	return err
}

const (
	// online is the time after its last request during which a runner is online, and stale the time after which it is stale.
	online, stale = 2 * time.Hour, 90 * 24 * time.Hour
)

// status returns whether a runner is alive.
func (f *Family) status(r runner.Runner) string {
	switch silent := f.Clock.Since(r.Contacted); {
	case r.Contacted.IsZero():
		return "never_contacted"
	case silent <= online:
		return "online"
	case silent > stale:
		return "stale"
	default:
		return "offline"
	}
}
