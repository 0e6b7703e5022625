package apiserver

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/forgeplane/forgeplane/apiserver/docs"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/landing"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/apiserver/v4/accesstokens"
	"github.com/forgeplane/forgeplane/apiserver/v4/badges"
	"github.com/forgeplane/forgeplane/apiserver/v4/bottokens"
	"github.com/forgeplane/forgeplane/apiserver/v4/branches"
	"github.com/forgeplane/forgeplane/apiserver/v4/cilint"
	"github.com/forgeplane/forgeplane/apiserver/v4/commits"
	"github.com/forgeplane/forgeplane/apiserver/v4/containers"
	"github.com/forgeplane/forgeplane/apiserver/v4/deploykeys"
	"github.com/forgeplane/forgeplane/apiserver/v4/draftnotes"
	"github.com/forgeplane/forgeplane/apiserver/v4/epics"
	"github.com/forgeplane/forgeplane/apiserver/v4/features"
	"github.com/forgeplane/forgeplane/apiserver/v4/files"
	"github.com/forgeplane/forgeplane/apiserver/v4/groups"
	"github.com/forgeplane/forgeplane/apiserver/v4/housekeeping"
	"github.com/forgeplane/forgeplane/apiserver/v4/instance"
	"github.com/forgeplane/forgeplane/apiserver/v4/issues"
	"github.com/forgeplane/forgeplane/apiserver/v4/jobtokenscopes"
	"github.com/forgeplane/forgeplane/apiserver/v4/labels"
	"github.com/forgeplane/forgeplane/apiserver/v4/markdown"
	"github.com/forgeplane/forgeplane/apiserver/v4/members"
	"github.com/forgeplane/forgeplane/apiserver/v4/mergerequests"
	"github.com/forgeplane/forgeplane/apiserver/v4/milestones"
	"github.com/forgeplane/forgeplane/apiserver/v4/notes"
	"github.com/forgeplane/forgeplane/apiserver/v4/pipelines"
	"github.com/forgeplane/forgeplane/apiserver/v4/projects"
	"github.com/forgeplane/forgeplane/apiserver/v4/protectedbranches"
	"github.com/forgeplane/forgeplane/apiserver/v4/reactions"
	"github.com/forgeplane/forgeplane/apiserver/v4/remotemirrors"
	"github.com/forgeplane/forgeplane/apiserver/v4/repositories"
	"github.com/forgeplane/forgeplane/apiserver/v4/runnerjobs"
	"github.com/forgeplane/forgeplane/apiserver/v4/runners"
	"github.com/forgeplane/forgeplane/apiserver/v4/schedules"
	"github.com/forgeplane/forgeplane/apiserver/v4/settings"
	"github.com/forgeplane/forgeplane/apiserver/v4/stateevents"
	"github.com/forgeplane/forgeplane/apiserver/v4/storagemoves"
	"github.com/forgeplane/forgeplane/apiserver/v4/tags"
	"github.com/forgeplane/forgeplane/apiserver/v4/triggertokens"
	"github.com/forgeplane/forgeplane/apiserver/v4/users"
	"github.com/forgeplane/forgeplane/apiserver/v4/variables"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/git"
)

const (
	// restPrefix is the path of the REST API on Forgeplane's own listener.
	restPrefix = "/api/v4"
	// retiredPrefix is the path of the previous version, which old clients use.
	retiredPrefix = "/api/v3"
)

// retired returns the handler of requests below retiredPrefix.
func retired() *endpoint.Error {
	return endpoint.Gone("API V3 is no longer supported. Use API V4 instead.")
}

// newREST returns the handler of the REST API, which both doors serve. It completes the options.
func newREST(k family.Kit, external *url.URL, o endpoint.Options, tables []endpoint.Table) *endpoint.Handler {
	o.Guard, o.Outdated, o.Routed, o.Failed, o.Refused, o.Exceeded = k.Guard, withAudit(o.Outdated), routed, failed, store.AnswerLimit, git.LimitReached
	o.Info = endpoint.Info{Title: "Forgeplane", Version: k.Version, Server: "../v4", Try: "/projects?per_page=2"}
	o.BaseURL, o.Reference = external.JoinPath(restPrefix), external.JoinPath(docs.Path).String()
	return endpoint.NewHandler(o, tables...)
}

// families returns the tables of all families. Add new families here.
func families(k family.Kit) []endpoint.Table {
	return []endpoint.Table{
		instance.New(k).Table().Named("Instance"),
		features.New(k).Table().Named("Features"),
		settings.New(k).Table().Named("Settings"),
		users.New(k).Table().Named("Users"),
		accesstokens.New(k).Table().Named("Personal access tokens"),
		groups.New(k).Table().Named("Groups"),
		projects.New(k).Table().Named("Projects"),
		members.New(k).Table().Named("Members"),
		deploykeys.New(k).Table().Named("Deploy keys"),
		protectedbranches.New(k).Table().Named("Protected branches"),
		triggertokens.New(k).Table().Named("Pipeline triggers"),
		bottokens.New(k).Table().Named("Project and group access tokens"),
		badges.New(k).Table().Named("Badges"),
		jobtokenscopes.New(k).Table().Named("Job token scope"),
		remotemirrors.New(k).Table().Named("Remote mirrors"),
		labels.New(k).Table().Named("Labels"),
		repositories.New(k).Table().Named("Repository"),
		branches.New(k).Table().Named("Branches"),
		tags.New(k).Table().Named("Tags"),
		commits.New(k).Table().Named("Commits"),
		files.New(k).Table().Named("Files"),
		cilint.New(k).Table().Named("CI configuration"),
		pipelines.New(k).Table().Named("Pipelines and jobs"),
		schedules.New(k).Table().Named("Pipeline schedules"),
		runners.New(k).Table().Named("Runners"),
		runnerjobs.New(k).Table().Named("Jobs of runners"),
		variables.New(k).Table().Named("CI variables"),
		reactions.New(k).Table().Named("Emoji reactions"),
		stateevents.New(k).Table().Named("Resource state events"),
		notes.New(k).Table().Named("Notes and discussions"),
		draftnotes.New(k).Table().Named("Draft notes"),
		storagemoves.New(k).Table().Named("Repository storage moves"),
		containers.New(k).Table().Named("Container registry"),
		housekeeping.New(k).Table().Named("Housekeeping"),
		markdown.New(k).Table().Named("Markdown"),
		milestones.New(k).Table().Named("Milestones"),
		epics.New(k).Table().Named("Epics"),
		issues.New(k).Table().Named("Issues"),
		mergerequests.New(k).Table().Named("Merge requests"),
	}
}

// withAudit wraps outdated: it records in the audit log that the request is served again. It returns nil for nil.
func withAudit(outdated func(ctx context.Context) (bool, error)) func(ctx context.Context) (bool, error) {
	if outdated == nil {
		return nil
	}
	return func(ctx context.Context) (bool, error) {
		again, err := outdated(ctx)
		if again {
			audit.From(ctx).Again()
		}
		return again, err
	}
}

// routed records the endpoint of a request in the audit log.
func routed(r *http.Request, e *endpoint.Endpoint) {
	if record := audit.From(r.Context()); record != nil {
		record.Action(e.String(), r.URL.EscapedPath())
	}
}

// failed records the reason for the failure of a write in the audit log.
func failed(r *http.Request, text string) { audit.From(r.Context()).Otherwise(audit.Failed, text) }

// newReference returns the page of the REST API.
func newReference() (http.Handler, error) {
	return docs.New("Forgeplane", ".."+restPrefix+"/openapi.json")
}

// split passes avatars and requests below restPrefix to the REST API, the reference and the pages of projects to the reader, and all other
// requests to Git. It does not change the path.
func split(rest, retired, reference, pages, gitServer http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		escaped := r.URL.EscapedPath()
		if path, below := strings.CutPrefix(escaped, restPrefix+"/"); below {
			inner := *r
			inner.URL = cloneWithPath(r.URL, "/"+path)
			rest.ServeHTTP(w, &inner)
			return
		}
		if path, is := entity.AvatarEndpoint(escaped); is {
			inner := *r
			inner.URL = cloneWithPath(r.URL, path)
			rest.ServeHTTP(w, &inner)
			return
		}
		if strings.HasPrefix(escaped, retiredPrefix+"/") {
			retired.ServeHTTP(w, r)
			return
		}
		if escaped == docs.Path || strings.HasPrefix(escaped, docs.Path+"/") {
			reference.ServeHTTP(w, r)
			return
		}
		if landing.Serves(r) {
			pages.ServeHTTP(w, r)
			return
		}
		gitServer.ServeHTTP(w, r)
	})
}

// cloneWithPath returns u with another escaped path.
func cloneWithPath(u *url.URL, escaped string) *url.URL {
	inner := *u
	inner.RawPath = escaped
	// This cannot fail: the escaped path is part of a path that was unescaped before.
	inner.Path, _ = url.PathUnescape(escaped)
	return &inner
}

// Costly returns the names of the limits of single endpoints, which allow each caller or address some requests per minute. They are for
// ratelimit.Options.
func Costly() []string {
	return []string{"archive", "blob", "changelog", "ci_lint", "file", "housekeeping", "trigger"}
}
