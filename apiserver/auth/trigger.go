package auth

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/pipeline"
	"github.com/forgeplane/forgeplane/internal/tokenuse"
	"github.com/forgeplane/forgeplane/internal/triggertoken"
)

const (
	// hookHeader names the event of a webhook. pipelineHook is the event of a changed pipeline, which must not trigger another pipeline.
	hookHeader   = "X-Gitlab-Event"
	pipelineHook = "Pipeline Hook"
)

// caller identifies the caller of a request by the kind of credential that the endpoint takes.
func (g *Guard) caller(r *http.Request, e *endpoint.Endpoint, sent endpoint.Sent) (Caller, error) {
	if identity, ok := IdentityFrom(r.Context()); ok {
		audit.From(r.Context()).Identity(identity)
	}
	switch {
	case e.TakesCredential(endpoint.TriggerToken):
		return g.trigger(r, sent)
	case e.TakesCredential(endpoint.RunnerToken):
		return g.runner(r, sent)
	case e.TakesCredential(endpoint.RegistrationToken):
		return g.registration(r, sent)
	case e.TakesCredential(endpoint.JobToken) && !e.TakesCredential(endpoint.AccessToken):
		return g.job(r, e, sent)
	}
	if token := jobToken(r, sent); token != "" {
		takes, err := g.takesJobToken(r.Context(), e)
		if err != nil {
			return Caller{}, err
		}
		if takes {
			c, err := g.auth.Job(r.Context(), token)
			return c, refused(err, false)
		}
	}
	return g.identify(r, sent.Identity)
}

// trigger returns the owner of a trigger token, or the user of a job, as the caller. A job can send its token in its own header. The answer to a token that does not trigger pipelines of the
// project does not say why (API behaviour, section 2.18).
func (g *Guard) trigger(r *http.Request, sent endpoint.Sent) (Caller, error) {
	value, is := sent.Credentials[endpoint.TriggerToken]
	if header := r.Header.Get(jobHeader); !is && strings.HasPrefix(header, pipeline.TokenPrefix) {
		value, is = header, true
	}
	switch {
	case r.Header.Get(hookHeader) == pipelineHook:
		return Caller{}, endpoint.Forbidden("")
	case !is:
		return Caller{}, endpoint.Parameters("token is missing")
	case strings.TrimSpace(value) == "":
		return Caller{}, endpoint.Parameters("token is empty")
	}
	ctx := r.Context()
	scope, err := g.Project(ctx, sent.Path["id"])
	var c Caller
	switch {
	case err != nil:
	case strings.HasPrefix(value, pipeline.TokenPrefix):
		c, err = g.triggerOfJob(ctx, scope, value)
	default:
		c, err = g.triggerOfToken(ctx, scope, value)
	}
	if errors.Is(err, catalog.ErrNotFound) {
		err = endpoint.Message(http.StatusNotFound, "404 Not Found")
	}
	if err != nil {
		return Caller{}, err
	}
	audit.From(ctx).User(c.User)
	return c, nil
}

// triggerOfToken returns the owner of a trigger token of a project. The error is catalog.ErrNotFound if the project has no such token, or an answer.
func (g *Guard) triggerOfToken(ctx context.Context, s catalog.Scope, value string) (Caller, error) {
	t, err := triggertoken.ByValue(ctx, g.catalog, s.Project, value, g.auth.clock.Now())
	if err != nil {
		return Caller{}, err
	}
	if t.Spec.OwnerRef == nil {
		return Caller{}, endpoint.BadRequest("the trigger token has no owner with whose rights a pipeline can run: set spec.ownerRef of the TriggerToken " + t.Name)
	}
	u, err := g.catalog.User(ctx, *t.Spec.OwnerRef)
	if err == nil {
		err = refused(g.auth.usable(u), false)
	}
	if err != nil {
		return Caller{}, err
	}
	if g.auth.uses != nil {
		g.auth.uses.Note(database.Subject{Kind: tokenuse.KindTriggerToken, ID: t.RESTID(), UID: t.UID}, g.auth.clock.Now())
	}
	return Caller{User: u, Admin: u.Spec.Admin}, nil
}

// triggerOfJob returns the user of a job, if the job token scope of a project allows the project of the job. The error is catalog.ErrNotFound if it
// does not, or an answer.
func (g *Guard) triggerOfJob(ctx context.Context, s catalog.Scope, value string) (Caller, error) {
	c, err := g.auth.Job(ctx, value)
	switch {
	case errors.Is(err, ErrInvalidToken) && !errors.Is(err, ErrExpired):
		return Caller{}, catalog.ErrNotFound
	case err != nil:
		return Caller{}, refused(err, false)
	}
	as, _, err := g.auth.AccessOfJob(ctx, c, s)
	if err == nil && as.Job == nil {
		audit.From(ctx).Refuse()
		err = catalog.ErrNotFound // only the user of the job can trigger
	}
	return as, err
}
