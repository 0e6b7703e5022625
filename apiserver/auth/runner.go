package auth

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/bottoken"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/feature"
	"github.com/forgeplane/forgeplane/internal/jobtoken"
	"github.com/forgeplane/forgeplane/internal/pipeline"
	"github.com/forgeplane/forgeplane/internal/runner"
)

// The headers in which runners send their own token, and the token of a job.
const (
	runnerHeader = "RUNNER-TOKEN"
	jobHeader    = "JOB-TOKEN"
)

// Runners finds runners by their authentication tokens, and what registration tokens are about. A runner.Store implements it.
type Runners interface {
	ByToken(ctx context.Context, token string) (runner.Runner, error)
	ByRegistrationToken(ctx context.Context, token string) (runner.Registration, error)
}

// Jobs finds jobs by the digests of their tokens. A pipeline.Store implements it.
type Jobs interface {
	ByDigest(ctx context.Context, digest string) (pipeline.Job, error)
}

// Executing sets the stores of runners and jobs. Without it, the tokens of runners and jobs are unknown.
func (a *Authenticator) Executing(r Runners, j Jobs) *Authenticator {
	a.runners, a.jobs = r, j
	return a
}

// Runner is the form of endpoints for runners.
type Runner struct {
	Subject
	Runner runner.Runner
}

func (Runner) form() form {
	return form{about: aboutInstance, of: func(s Subject, _ any) any { return Runner{s, *s.Caller.Runner} }}
}

// Registration is the form of the endpoint with which a program registers itself as a runner.
type Registration struct {
	Subject
	Registration runner.Registration
}

func (Registration) form() form {
	return form{about: aboutInstance, of: func(s Subject, _ any) any { return Registration{s, *s.Caller.Registration} }}
}

// Job is the form of endpoints for a runner that executes a job. The job can have ended.
type Job struct {
	Subject
	Job pipeline.Job
}

// Parameters implements endpoint.Located.
func (Job) Parameters() []endpoint.Parameter {
	return []endpoint.Parameter{{Doc: "Id of the job.", Integer: true}}
}

func (Job) form() form {
	return form{about: aboutInstance, of: func(s Subject, _ any) any { return Job{s, *s.Caller.Job} }}
}

// OtherJob is the form of endpoints for a runner that executes a job and reads what another job has left.
type OtherJob struct {
	Subject
	// Job is the running job, and ID that of the other one.
	Job pipeline.Job
	ID  int64
}

// Parameters implements endpoint.Located.
func (OtherJob) Parameters() []endpoint.Parameter {
	return []endpoint.Parameter{{Doc: "Id of the other job.", Integer: true}}
}

func (OtherJob) form() form {
	return form{about: aboutInstance, of: func(s Subject, _ any) any {
		id, _ := strconv.ParseInt(s.Named(), 10, 64) // no job has the id 0
		return OtherJob{s, *s.Caller.Job, id}
	}}
}

// takes reports whether callers of endpoints with a form can have a kind of credential.
func (f form) takes(e *endpoint.Endpoint, c endpoint.Credential) bool {
	switch c {
	case endpoint.AccessToken:
		return true
	case endpoint.TriggerToken:
		return f.about == aboutProject
	case endpoint.RunnerToken:
		_, is := e.Subject().(Runner)
		return is
	case endpoint.RegistrationToken:
		_, is := e.Subject().(Registration)
		return is
	case endpoint.JobToken:
		_, own := e.Subject().(Job)
		_, other := e.Subject().(OtherJob)
		inProject := f.about == aboutProject || f.missing != nil
		return own || other || inProject && (e.TakesCredential(endpoint.AccessToken) || e.TakesCredential(endpoint.TriggerToken))
	default:
		return false
	}
}

// runner returns the runner that sends a request as the caller.
func (g *Guard) runner(r *http.Request, sent endpoint.Sent) (Caller, error) {
	token := cmp.Or(r.Header.Get(runnerHeader), sent.Credentials[endpoint.RunnerToken])
	if token == "" {
		return Caller{}, endpoint.Parameters("token is missing")
	}
	found, err := g.auth.runners.ByToken(r.Context(), token)
	if errors.Is(err, runner.ErrNotFound) {
		err = endpoint.Forbidden("").Describe("The token of the runner is not valid: it may be unknown, replaced or that of a deleted runner.")
	}
	if err != nil {
		return Caller{}, err
	}
	return Caller{Runner: &found}, nil
}

// registration returns the program that registers itself as the caller.
func (g *Guard) registration(r *http.Request, sent endpoint.Sent) (Caller, error) {
	token := sent.Credentials[endpoint.RegistrationToken]
	if token == "" {
		return Caller{}, endpoint.Parameters("token is missing")
	}
	found, err := g.auth.runners.ByRegistrationToken(r.Context(), token)
	if errors.Is(err, runner.ErrNoRegistration) {
		err = endpoint.Forbidden("").Describe("The registration token is not valid: it may be unknown or replaced. Runners that users have created need not be registered.")
	}
	if err != nil {
		return Caller{}, err
	}
	return Caller{Registration: &found}, nil
}

// jobToken returns the job token of a request, or an empty text.
func jobToken(r *http.Request, sent endpoint.Sent) string {
	return cmp.Or(r.Header.Get(jobHeader), sent.Credentials[endpoint.JobToken])
}

// takesJobToken reports whether an endpoint accepts job tokens now.
func (g *Guard) takesJobToken(ctx context.Context, e *endpoint.Endpoint) (bool, error) {
	name := e.CredentialFeature(endpoint.JobToken)
	if name == "" {
		return e.TakesCredential(endpoint.JobToken), nil
	}
	return g.features.Enabled(ctx, name)
}

// accessOfJob is AccessOfJob for the project of a request. It returns catalog.ErrNotFound for the container registry of another project
// ("Authentication" of the core interface document).
func (g *Guard) accessOfJob(ctx context.Context, s *Subject) (Caller, Access, error) {
	c, access, err := g.auth.AccessOfJob(ctx, s.Caller, s.Scope)
	ownOnly := s.endpoint.CredentialFeature(endpoint.JobToken) == feature.JobTokenRegistry
	if err == nil && ownOnly && s.Caller.Job.In.UID != s.Scope.Project.UID {
		restrict(ctx, s.Scope, "over REST, a job token opens only the container registry of its own project", true)
		err = catalog.ErrNotFound
	}
	return c, access, err
}

// job returns the job whose runner sends a request as the caller.
func (g *Guard) job(r *http.Request, e *endpoint.Endpoint, sent endpoint.Sent) (Caller, error) {
	found, err := g.auth.jobs.ByDigest(r.Context(), credential.Digest(jobToken(r, sent)))
	_, other := e.Subject().(OtherJob)
	if errors.Is(err, pipeline.ErrNotFound) || err == nil && !other && sent.Path["job_id"] != strconv.FormatInt(found.ID, 10) {
		err = endpoint.Forbidden("").Describe("The job token is not valid, or belongs to another job.")
	}
	if err != nil {
		return Caller{}, err
	}
	audit.From(r.Context()).Job(found.ID)
	return Caller{Job: &found}, nil
}

// Job returns the user of a job that is running, for the token of the job. The error is ErrInvalidToken, ErrExpired or ErrBlocked, or the error of a
// lookup.
func (a *Authenticator) Job(ctx context.Context, token string) (Caller, error) {
	return a.jobByDigest(ctx, credential.Digest(token))
}

// jobScopes are the scopes of job tokens.
var jobScopes = []v1alpha1.TokenScope{v1alpha1.ScopeReadRepository, v1alpha1.ScopeReadRegistry, v1alpha1.ScopeWriteRegistry}

// jobByDigest is Job with the digest of the token.
func (a *Authenticator) jobByDigest(ctx context.Context, digest string) (Caller, error) {
	if a.jobs == nil {
		return Caller{}, ErrInvalidToken
	}
	j, err := a.jobs.ByDigest(ctx, digest)
	switch {
	case errors.Is(err, pipeline.ErrNotFound):
		return Caller{}, ErrInvalidToken
	case err != nil:
		return Caller{}, err
	}
	record := audit.From(ctx)
	record.Job(j.ID)
	if j.Status != pipeline.Running {
		return Caller{}, ErrExpired
	}
	c, err := a.Known(ctx, j.User)
	record.User(c.User)
	if errors.Is(err, catalog.ErrNotFound) {
		err = ErrInvalidToken
	}
	c.Job, c.Scopes = &j, jobScopes
	return c, err
}

// Known returns a user or bot as a caller. The error is catalog.ErrNotFound if it is gone, or ErrBlocked.
func (a *Authenticator) Known(ctx context.Context, who database.User) (Caller, error) {
	u, err := a.catalog.User(ctx, v1alpha1.Reference{ID: who.ID})
	if err == nil && u.UID == who.UID {
		return Caller{User: u, Admin: u.Spec.Admin}, a.usable(u)
	}
	if err != nil && !errors.Is(err, catalog.ErrNotFound) {
		return Caller{}, err
	}
	bot, err := bottoken.ByUserID(ctx, a.catalog, who.ID)
	if err == nil && bot.User.UID != who.UID {
		err = catalog.ErrNotFound
	}
	if err != nil {
		return Caller{}, err
	}
	return Caller{User: bot.User, Bot: &bot}, nil
}

// AccessOfJob returns the permissions of a job token on a project, and their caller. The caller is the user of the job. If the job token scope of the
// project does not allow the project of the job, the caller is anonymous, or the error is catalog.ErrNotFound if anonymous callers cannot see the
// project.
func (a *Authenticator) AccessOfJob(ctx context.Context, c Caller, target catalog.Scope) (Caller, Access, error) {
	source, err := catalog.ByID[*v1alpha1.Project](ctx, a.catalog, c.Job.In.ID)
	if err == nil && source.UID != c.Job.In.UID {
		err = catalog.ErrNotFound
	}
	if errors.Is(err, catalog.ErrNotFound) {
		restrict(ctx, target, "the project of the job does not exist any more", true)
	}
	if err != nil {
		return c, Access{}, err
	}
	user, err := a.Access(ctx, c, target)
	if err != nil {
		return c, Access{}, err
	}
	anybody, err := a.Access(ctx, Caller{}, target)
	if err != nil {
		return c, Access{}, err
	}
	outcome, err := jobtoken.NewScopes(a.catalog).Decide(ctx, source, target, jobtoken.Rights{User: user.Sees(), Anybody: anybody.Sees()})
	if err != nil {
		return c, Access{}, err
	}
	restrict(ctx, target, restriction(outcome, user.Sees()), outcome == jobtoken.Refused)
	switch outcome {
	case jobtoken.AsUser:
		return c, user, nil
	case jobtoken.AsAnybody:
		return Caller{}, anybody, nil
	default:
		return c, Access{}, catalog.ErrNotFound
	}
}

// restriction returns the reason why a job token does not have the access of its user, who sees the project or not; "" if it has that access.
func restriction(o jobtoken.Outcome, sees bool) string {
	switch {
	case o == jobtoken.AsUser:
		return ""
	case !sees:
		return "the user of the job cannot see the project"
	default:
		return "the job token scope of the project does not allow the project of the job"
	}
}

// restrict adds the reason why a job token may be refused to the audit event of a request.
func restrict(ctx context.Context, target catalog.Scope, reason string, hides bool) {
	if record := audit.From(ctx); record != nil {
		record.Restrict(target.Target(), target.Path(), reason, hides)
	}
}
