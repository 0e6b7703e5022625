package auth

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/namespace"
	"github.com/forgeplane/forgeplane/apiserver/ratelimit"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/feature"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// Guard admits requests of the REST API: it identifies the caller, finds the project or group, and checks that the caller has the ability
// that the endpoint needs (API behaviour, section 1.2).
type Guard struct {
	auth         *Authenticator
	catalog      *catalog.Catalog
	repositories Repositories
	// projects and groups remember the scopes of ids and full paths.
	projects, groups *catalog.Memory[string, catalog.Scope]
	features         *feature.Flags
}

// Repositories knows which projects have a repository.
type Repositories interface {
	// Await waits for the repository of a project that was just created, and returns the project in its state at that time. The error is
	// repository.ErrPending if that takes too long.
	Await(ctx context.Context, p *v1alpha1.Project) (*v1alpha1.Project, error)
}

// maxScopes is the maximum number of remembered projects, and of remembered groups.
const maxScopes = 16384

// NewGuard returns a guard.
func NewGuard(a *Authenticator, cat *catalog.Catalog, r Repositories) *Guard {
	scopes := func() *catalog.Memory[string, catalog.Scope] {
		return catalog.NewMemory[string, catalog.Scope](
			cat, maxScopes, &v1alpha1.Project{}, &v1alpha1.Group{}, &v1alpha1.User{}, &corev1.Namespace{})
	}
	return &Guard{auth: a, catalog: cat, repositories: r, projects: scopes(), groups: scopes()}
}

// Featuring sets the feature flags of the guard. Without it, only the features that are on by default are on.
func (g *Guard) Featuring(f *feature.Flags) *Guard {
	g.features = f
	return g
}

var _ endpoint.Guard = (*Guard)(nil)

// Admit identifies the caller, finds the subject, and then checks the ability that the endpoint needs. A subject that the caller may not
// see is not found (404). An action that they may not perform on a visible subject is forbidden (403).
func (g *Guard) Admit(r *http.Request, e *endpoint.Endpoint, sent endpoint.Sent) (context.Context, any, error) {
	caller, err := g.caller(r, e, sent)
	// An invalid token counts as no token: then the address counts.
	ctx := caller.keyed(r.Context())
	if limited := ratelimit.Count(ctx); limited != nil {
		return nil, nil, limited
	}
	for _, l := range e.LimitsBy() {
		if limited := caller.count(ctx, r, l); limited != nil {
			return nil, nil, limited
		}
	}
	if err != nil {
		return nil, nil, err
	}
	s := Subject{Caller: caller, endpoint: e}
	for _, name := range e.Located() {
		s.named = append(s.named, sent.Path[name])
	}
	form, record, err := g.admit(ctx, &s)
	if err != nil {
		return nil, nil, err
	}
	if err := ratelimit.CountEndpoint(ctx, e, s.Scope.Path); err != nil {
		return nil, nil, err
	}
	if err := g.await(ctx, &s, e.Ability()); err != nil {
		return nil, nil, err
	}
	return ctx, form.of(s, record), nil
}

// pageScopes are the scopes of tokens with which a page can be read.
var pageScopes = []string{string(v1alpha1.ScopeAPI), string(v1alpha1.ScopeReadAPI)}

// Identify returns the caller of a request for a page, which is not an endpoint, and a context for what is done for the caller. It counts
// the request against the same limits. The error is an *endpoint.Error if the caller cannot be identified, or sends too many requests.
func (g *Guard) Identify(r *http.Request) (context.Context, Caller, error) {
	caller, err := g.identify(r, nil)
	ctx := caller.keyed(r.Context())
	if limited := ratelimit.Count(ctx); limited != nil {
		return nil, Caller{}, limited
	}
	if err == nil && !caller.allows(pageScopes) {
		err = endpoint.InsufficientScope(pageScopes)
	}
	return ctx, caller, err
}

// count counts a request against a limit of its endpoint. Requests of Kubernetes identities come from the address of kube-apiserver, so
// they count by identity instead of by address.
func (c Caller) count(ctx context.Context, r *http.Request, l endpoint.LimitBy) error {
	caller, credential := fair.From(ctx), ""
	if _, passed := IdentityFrom(ctx); l.By == endpoint.ByAddress && !passed {
		caller = fair.From(r.Context())
	}
	if l.By == endpoint.ByCredential && c.Token != nil {
		credential = string(c.Token.GetUID())
	}
	return ratelimit.CountBy(ctx, l, caller, credential)
}

// await waits until the controller of a project that was just created has made the objects that an ability needs. Requests wait here,
// before their body is read, so that they hold no resources meanwhile.
func (g *Guard) await(ctx context.Context, s *Subject, what endpoint.Ability) error {
	if !rules[what].repository || s.Scope.Project == nil {
		return nil
	}
	p, err := g.Repository(ctx, s.Scope.Project)
	if err != nil {
		return err
	}
	s.Scope.Project = p
	return nil
}

// Repository waits until a project that was just created has its repository, and returns the project in its state at that time. Nothing is waited
// for if the project was not just created. The error is an answer.
func (g *Guard) Repository(ctx context.Context, p *v1alpha1.Project) (*v1alpha1.Project, error) {
	if g.repositories == nil {
		return p, nil
	}
	p, err := g.repositories.Await(ctx, p)
	switch {
	case errors.Is(err, catalog.ErrNotFound):
		err = endpoint.NotFound("Project")
	case errors.Is(err, repository.ErrPending):
		err = endpoint.Unavailable("The repository of this project is still being created. Please try again later.")
	}
	return p, err
}

// admit decides whether a caller may make a request, and returns the form of its subject, and the record if the subject is one.
func (g *Guard) admit(ctx context.Context, s *Subject) (f form, record any, err error) {
	e := s.endpoint
	if err := g.there(ctx, e); err != nil {
		return f, nil, err
	}
	c := s.Caller
	anonymous := c.Anonymous() && c.Runner == nil && c.Registration == nil && c.Job == nil
	if anonymous && e.ForAnonymous() == endpoint.Refused {
		return f, nil, endpoint.Unauthorized("").Describe(signIn)
	}
	if !anonymous && !s.Caller.allows(e.RequiredScopes()) {
		return f, nil, endpoint.InsufficientScope(e.RequiredScopes())
	}
	f, known := formOf(e)
	if !known {
		return f, nil, g.Check(e)
	}
	if err := g.locate(ctx, s, f.about, s.Named()); err != nil {
		return f, nil, err
	}
	if f.find != nil {
		record, err = g.record(ctx, s, f)
		return f, record, err
	}
	if may, err := g.may(ctx, s); err != nil || !may {
		return f, nil, cmp.Or(err, error(s.denial()))
	}
	return f, nil, nil
}

// may is Subject.may, and also true for an ability that collaboration in merge requests gives.
func (g *Guard) may(ctx context.Context, s *Subject) (bool, error) {
	if s.may() || !rules[s.endpoint.Ability()].collaboration || s.challenged() {
		return s.may(), nil
	}
	return g.Actor(*s).MayWrite(ctx, "")
}

// there returns 404 for an endpoint whose feature is off, for every caller.
func (g *Guard) there(ctx context.Context, e *endpoint.Endpoint) error {
	name := e.RequiredFeature()
	if name == "" {
		return nil
	}
	on, err := g.features.Enabled(ctx, name)
	if err == nil && !on {
		err = endpoint.Message(http.StatusNotFound, "404 Not Found")
	}
	return err
}

// Again decides again about a request that is about a project, with the current token, user, roles and rules. Use it for writes that take
// long between Admit and the change.
func (g *Guard) Again(ctx context.Context, was Project) (Project, error) {
	caller, err := g.auth.Again(ctx, was.Caller)
	if err != nil {
		return Project{}, refused(err, false)
	}
	// By id it is the same project even if it was renamed meanwhile.
	named := append([]string{strconv.FormatInt(was.Scope.Project.RESTID(), 10)}, was.named[1:]...)
	s := Subject{Caller: caller, endpoint: was.endpoint, named: named}
	_, _, err = g.admit(ctx, &s)
	return Project{s}, err
}

// Count counts a request about a project or group for its caller, against a limit that applies only to some answers of its endpoint. The
// error is the answer if there were too many requests in a minute.
func (s Subject) Count(ctx context.Context, perMinute int, what string) error {
	return ratelimit.CountThing(ctx, perMinute, what, s.Scope.Path)
}

// locate finds the project or group that an id or full path in the request's path names.
func (g *Guard) locate(ctx context.Context, s *Subject, about subject, id string) (err error) {
	switch about {
	case aboutProject:
		s.Scope, err = g.Project(ctx, id)
	case aboutGroup, aboutNamespace:
		s.Scope, err = g.Group(ctx, id)
		// Clients distinguish users from groups by the answer that a username is not a group.
		if about == aboutGroup && err == nil && namespace.Personal(s.Scope.Groups[0]) {
			err = catalog.ErrNotFound
		}
	default:
		s.Access.Admin = s.Caller.Admin
		return nil
	}
	name := "Group"
	if about == aboutProject {
		name = "Project"
	}
	if errors.Is(err, catalog.ErrNotFound) {
		return endpoint.NotFound(name)
	}
	if err != nil {
		return err
	}
	tell(ctx, s.Scope)
	if s.Caller.Job != nil {
		s.Caller, s.Access, err = g.accessOfJob(ctx, s)
		if errors.Is(err, catalog.ErrNotFound) {
			err = endpoint.NotFound(name)
		}
		return err
	}
	if s.Access, err = g.auth.Access(ctx, s.Caller, s.Scope); err == nil && !s.Access.Sees() {
		return endpoint.NotFound(name)
	}
	return err
}

// tell adds the subject of a request to its audit event, even if the request is refused.
func tell(ctx context.Context, s catalog.Scope) {
	if record := audit.From(ctx); record != nil {
		record.About(s.Target(), s.Path())
	}
}

// Locate returns the group or project with an id that a parameter names, if the caller has an ability on it. The endpoint must declare the ability
// with Asks.
func (g *Guard) Locate(ctx context.Context, of Subject, what endpoint.Ability, id int64) (catalog.Scope, error) {
	return g.LocateNamed(ctx, of, what, strconv.FormatInt(id, 10))
}

// LocateNamed is Locate for an id or a full path.
func (g *Guard) LocateNamed(ctx context.Context, of Subject, what endpoint.Ability, id string) (catalog.Scope, error) {
	s := Subject{Caller: of.Caller, endpoint: of.endpoint}
	if err := g.locate(ctx, &s, rules[what].about, id); err != nil {
		return catalog.Scope{}, err
	}
	if !s.Has(s.Access, what) {
		return catalog.Scope{}, s.Denied(what)
	}
	return s.Scope, nil
}

// Access returns the permissions of a caller on a project or group.
func (g *Guard) Access(ctx context.Context, c Caller, s catalog.Scope) (Access, error) {
	return g.auth.Access(ctx, c, s)
}

// Visible is Access on a project or group that the caller must be able to see. Otherwise the error is catalog.ErrNotFound.
func (g *Guard) Visible(ctx context.Context, c Caller, s catalog.Scope) (Access, error) {
	access, err := g.Access(ctx, c, s)
	if err == nil && !access.Sees() {
		err = catalog.ErrNotFound
	}
	return access, err
}

// Project returns the scope of the project that an id or full path names. A number is an id. The project's place in the tree is remembered;
// the project itself is current.
func (g *Guard) Project(ctx context.Context, id string) (catalog.Scope, error) {
	s, err := g.projects.Recall(id, time.Time{}, func(c *catalog.Catalog) (catalog.Scope, time.Time, error) {
		s, err := ProjectNamed(ctx, c, id)
		return s, time.Time{}, reachable(err)
	})
	if err != nil {
		return s, err
	}
	now, err := g.catalog.Current(ctx, s.Project)
	if err == nil && now.Generation == s.Project.Generation {
		s.Project = now
		return s, nil
	}
	// It has just changed.
	s, err = ProjectNamed(ctx, g.catalog, id)
	return s, reachable(err)
}

// reachable converts the error of looking up something that may have no place in the tree: it counts as not found then.
func reachable(err error) error {
	if catalog.Misplaced(err) {
		return catalog.ErrNotFound
	}
	return err
}

// ProjectNamed returns the project with an id or a full path. The error is catalog.ErrNotFound if the project is being deleted, does not hold
// its path, or has no id yet.
func ProjectNamed(ctx context.Context, c *catalog.Catalog, id string) (catalog.Scope, error) {
	var p *v1alpha1.Project
	var err error
	if n, numeric := number(id); numeric {
		p, err = catalog.ByID[*v1alpha1.Project](ctx, c, n)
	} else {
		p, err = c.ProjectByPath(ctx, id)
	}
	if err == nil && !p.DeletionTimestamp.IsZero() {
		err = catalog.ErrNotFound
	}
	if err != nil {
		return catalog.Scope{}, err
	}
	s, err := c.ProjectScope(ctx, p)
	if err != nil {
		return catalog.Scope{}, err
	}
	return inPlace(ctx, c, s)
}

// inPlace returns the scope of an object that holds its full path and has an id. An object that does not hold its path has no effect, and
// is not served under its id either. An object without an id is not visible in the API yet, which would otherwise show an id that leads
// nowhere.
func inPlace(ctx context.Context, c *catalog.Catalog, s catalog.Scope) (catalog.Scope, error) {
	if s.RESTID() == 0 {
		return catalog.Scope{}, catalog.ErrNotFound
	}
	holder, err := c.HolderAt(ctx, s)
	if err == nil && holder.GetUID() != s.Target().GetUID() {
		err = catalog.ErrNotFound
	}
	if err != nil {
		return catalog.Scope{}, err
	}
	return s, nil
}

// Group returns the scope of the group that an id or full path names. The group can be a user's own namespace.
func (g *Guard) Group(ctx context.Context, id string) (catalog.Scope, error) {
	return g.groups.Recall(id, time.Time{}, func(c *catalog.Catalog) (catalog.Scope, time.Time, error) {
		s, err := groupNamed(ctx, c, id)
		return s, time.Time{}, reachable(err)
	})
}

// GroupAt is Group for a full path, which can be a number.
func (g *Guard) GroupAt(ctx context.Context, path string) (catalog.Scope, error) {
	group, err := g.catalog.GroupByPath(ctx, path)
	s, err := groupScope(ctx, g.catalog, group, err)
	return s, reachable(err)
}

func groupNamed(ctx context.Context, c *catalog.Catalog, id string) (catalog.Scope, error) {
	if n, numeric := number(id); numeric {
		group, err := catalog.ByID[*v1alpha1.Group](ctx, c, n)
		return groupScope(ctx, c, group, err)
	}
	group, err := c.GroupByPath(ctx, id)
	return groupScope(ctx, c, group, err)
}

// groupScope returns the scope of a group that a lookup has found.
func groupScope(ctx context.Context, c *catalog.Catalog, group *v1alpha1.Group, err error) (catalog.Scope, error) {
	if err == nil && !group.DeletionTimestamp.IsZero() {
		err = catalog.ErrNotFound
	}
	if err != nil {
		return catalog.Scope{}, err
	}
	chain, err := c.Ancestors(ctx, group)
	if err != nil {
		return catalog.Scope{}, err
	}
	return inPlace(ctx, c, catalog.Scope{Groups: chain})
}

// User returns the user that an id or username names, or catalog.ErrNotFound. A number is an id.
func (g *Guard) User(ctx context.Context, id string) (*v1alpha1.User, error) {
	if n, numeric := number(id); numeric {
		return g.catalog.User(ctx, v1alpha1.Reference{ID: n})
	}
	return g.UserNamed(ctx, id)
}

// UserNamed is User for a username, which can be a number.
func (g *Guard) UserNamed(ctx context.Context, username string) (*v1alpha1.User, error) {
	return g.catalog.User(ctx, v1alpha1.Reference{Path: username})
}

func number(id string) (int64, bool) {
	if id == "" || strings.Trim(id, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		// More digits than an int64 holds are still an id, but no object has it.
		return 0, true
	}
	return n, true
}

// identify returns the caller of the first token that the request carries; body has what its body says about the caller. An invalid token
// is an error; the caller does not become anonymous.
func (g *Guard) identify(r *http.Request, body map[string]string) (Caller, error) {
	value, bearer := token(r)
	if value == "" {
		value, bearer = tokenIn(body)
	}
	as := sudoer(r, body)
	if value == "" {
		if identity, ok := IdentityFrom(r.Context()); ok {
			c, err := g.auth.Kubernetes(r.Context(), identity)
			if err == nil && as != "" {
				return Caller{}, endpoint.Forbidden("Must be authenticated using an OAuth or personal access token to use sudo")
			}
			return c, refused(err, false)
		}
		return Caller{}, nil
	}
	c, err := g.auth.Token(r.Context(), value)
	if err == nil {
		return g.sudo(r.Context(), c, as)
	}
	return Caller{}, refused(err, bearer)
}

// refused returns the answer for a caller who could not be identified.
func refused(err error, bearer bool) error {
	switch {
	case errors.Is(err, ErrDeactivated):
		return endpoint.Forbidden("Your account has been deactivated by your administrator.")
	case errors.Is(err, ErrBlocked):
		return endpoint.Forbidden("Your account has been blocked.")
	case errors.Is(err, ErrRevoked):
		return endpoint.InvalidToken("Token was revoked. You have to re-authorize from the user.")
	case errors.Is(err, ErrExpired):
		return endpoint.InvalidToken("Token is expired. You can either do re-authorization or token refresh.")
	case errors.Is(err, ErrInvalidToken):
		return unknown(bearer)
	default:
		return err
	}
}

// unknown returns the answer for an unknown token. It depends on how the token was sent.
func unknown(bearer bool) error {
	e := endpoint.Unauthorized("").Describe("The access token is not valid: it may be unknown, expired or revoked.")
	if bearer {
		e.Header = http.Header{"WWW-Authenticate": {`Bearer realm="Protected by OAuth 2.0", error="invalid_token"`}}
	}
	return e
}

// sudoer returns the name of the user that an administrator wants to act as, or "". The body takes precedence over the query, and the last
// one in a query counts, as for every parameter.
func sudoer(r *http.Request, body map[string]string) string {
	if as := cmp.Or(r.Header.Get("Sudo"), body[sudoParameter]); as != "" {
		return as
	}
	// The query is parsed just for this, so only if it may contain sudo: the name can be escaped.
	if q := r.URL.RawQuery; !strings.Contains(q, "sudo") && !strings.Contains(q, "%") {
		return ""
	}
	sent := r.URL.Query()["sudo"]
	if len(sent) == 0 {
		return ""
	}
	return sent[len(sent)-1]
}

// sudo returns the caller for an administrator who acts as another user.
func (g *Guard) sudo(ctx context.Context, c Caller, as string) (Caller, error) {
	if as == "" {
		return c, nil
	}
	if !c.Admin {
		return Caller{}, endpoint.Forbidden("Must be admin to use sudo")
	}
	if !c.HasScope(v1alpha1.ScopeSudo) {
		return Caller{}, endpoint.InsufficientScope([]string{string(v1alpha1.ScopeSudo)})
	}
	u, err := g.User(ctx, as)
	if errors.Is(err, catalog.ErrNotFound) {
		return Caller{}, endpoint.NotFound("User with ID or username '" + as + "'")
	}
	if err != nil {
		return Caller{}, err
	}
	if err := g.auth.usable(u); err != nil {
		return Caller{}, refused(err, false)
	}
	c.User, c.Admin = u, u.Spec.Admin
	audit.From(ctx).Sudo(u)
	return c, nil
}

// allows reports whether the caller may use an endpoint that needs one of the scopes.
func (c Caller) allows(scopes []string) bool {
	if c.Token == nil {
		return true
	}
	for _, s := range scopes {
		if c.HasScope(v1alpha1.TokenScope(s)) {
			return true
		}
	}
	return false
}
