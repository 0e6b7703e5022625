package apiserver

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/avatar"
	"github.com/forgeplane/forgeplane/apiserver/docs"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/landing"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/apiserver/v4/accesstokens"
	"github.com/forgeplane/forgeplane/apiserver/v4/badges"
	"github.com/forgeplane/forgeplane/apiserver/v4/bottokens"
	"github.com/forgeplane/forgeplane/apiserver/v4/branches"
	"github.com/forgeplane/forgeplane/apiserver/v4/commits"
	"github.com/forgeplane/forgeplane/apiserver/v4/containers"
	"github.com/forgeplane/forgeplane/apiserver/v4/deploykeys"
	"github.com/forgeplane/forgeplane/apiserver/v4/features"
	"github.com/forgeplane/forgeplane/apiserver/v4/files"
	"github.com/forgeplane/forgeplane/apiserver/v4/groups"
	"github.com/forgeplane/forgeplane/apiserver/v4/housekeeping"
	"github.com/forgeplane/forgeplane/apiserver/v4/instance"
	"github.com/forgeplane/forgeplane/apiserver/v4/jobtokenscopes"
	"github.com/forgeplane/forgeplane/apiserver/v4/labels"
	"github.com/forgeplane/forgeplane/apiserver/v4/markdown"
	"github.com/forgeplane/forgeplane/apiserver/v4/members"
	"github.com/forgeplane/forgeplane/apiserver/v4/projects"
	"github.com/forgeplane/forgeplane/apiserver/v4/protectedbranches"
	"github.com/forgeplane/forgeplane/apiserver/v4/remotemirrors"
	"github.com/forgeplane/forgeplane/apiserver/v4/repositories"
	"github.com/forgeplane/forgeplane/apiserver/v4/settings"
	"github.com/forgeplane/forgeplane/apiserver/v4/storagemoves"
	"github.com/forgeplane/forgeplane/apiserver/v4/tags"
	"github.com/forgeplane/forgeplane/apiserver/v4/triggertokens"
	"github.com/forgeplane/forgeplane/apiserver/v4/users"
	"github.com/forgeplane/forgeplane/internal/accesslevel"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/egress"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/feature"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/quota"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/internal/tokenuse"
)

const (
	// restPrefix is where the REST API is on the forge's own listener.
	restPrefix = "/api/v4"
	// retiredPrefix is where clients that are too old look for it.
	retiredPrefix = "/api/v3"
)

// retired returns the answer to requests below retiredPrefix.
func retired() *endpoint.Error {
	return endpoint.Gone("API V3 is no longer supported. Use API V4 instead.")
}

// restOptions are what the families work with.
type restOptions struct {
	external *url.URL
	version  string
	guard    *auth.Guard
	catalog  *catalog.Catalog
	writer   store.Backend
	ids      accesslevel.Allocator
	// subscriptions, uses and moves are in the activity database.
	subscriptions labels.Subscriptions
	uses          tokenuse.Reader
	moves         storagemoves.History
	// moveTasks has the work of moving all projects of a shard.
	moveTasks storagemoves.Tasks
	// images has the container registry, and deletions the work of deleting its repositories.
	images    RegistryOptions
	deletions registry.Tasks
	clock     clock.PassiveClock
	repos     *repository.Repositories
	// pushed is told of each project whose refs have changed.
	pushed func(project types.NamespacedName)
	// maintain schedules the maintenance of the repository of a project, and reports false if maintenance is turned off.
	maintain func(project types.NamespacedName) bool
	log      logr.Logger
	observe  func(e *endpoint.Endpoint, status int, took time.Duration)
	// quotas limit what users create.
	quotas quota.Limits
	// memory limits what is held for callers, and disk what they upload; nil means no limit.
	memory, disk *fair.Memory
	// uploads is the directory of uploaded files.
	uploads string
	// stopping is closed when the server begins to stop.
	stopping <-chan struct{}
	// outdated is endpoint.Options.Outdated.
	outdated func(ctx context.Context) (bool, error)
	// credentials are those that REST receives or generates for objects of tenants.
	credentials *credential.Store
	// namespace is the namespace of Forgeplane.
	namespace string
	// home is the namespace of objects that are created over REST and have no other namespace.
	home string
	// targets says which hosts outside users may name.
	targets *egress.Policy
	// avatars holds the pictures of projects, groups and users.
	avatars *avatar.Avatars
	// features are those that are on; nil for those that are on by default.
	features *feature.Flags
}

// newREST returns the tree of the REST API, which both doors serve.
func newREST(o restOptions) *endpoint.Handler { return newHandler(o, families(o)) }

// newHandler returns a handler of the tables.
func newHandler(o restOptions, tables []endpoint.Table) *endpoint.Handler {
	return endpoint.NewHandler(endpoint.Options{
		Guard: o.guard, Log: o.log, Observe: o.observe, Outdated: told(o.outdated), Routed: routed, Failed: failed,
		Refused: store.AnswerLimit, Memory: o.memory, Exceeded: git.LimitReached,
		Spool: o.uploads, Disk: o.disk, Stopping: o.stopping,
		Info:    endpoint.Info{Title: "Forgeplane", Version: o.version, Server: "../v4", Try: "/projects?per_page=2"},
		BaseURL: o.external.JoinPath(restPrefix), Reference: o.external.JoinPath(docs.Path).String(),
	}, tables...)
}

// families returns the tables of all families. Add new families here.
func families(o restOptions) []endpoint.Table {
	webURL := strings.TrimSuffix(o.external.String(), "/")
	refs := ref.NewUpdater(o.guard, o.catalog, o.repos, o.pushed)
	return []endpoint.Table{
		instance.New(o.version).Table().Named("Instance"),
		features.New(o.features, o.writer).Table().Named("Features"),
		settings.New(o.features, o.writer, o.quotas).Table().Named("Settings"),
		users.New(o.catalog, o.guard, o.writer, webURL, o.home).Within(o.quotas).Defaulting(o.features).Picturing(o.avatars).Table().Named("Users"),
		accesstokens.New(o.catalog, o.writer, o.uses, o.clock).Table().Named("Personal access tokens"),
		groups.New(o.catalog, o.guard, o.writer, o.clock, webURL, o.home).Picturing(o.avatars).Table().Named("Groups"),
		projects.New(o.catalog, o.guard, o.writer, refs, o.clock, webURL, o.home).Picturing(o.avatars).Counting(o.images.Registry).Table().Named("Projects"),
		members.New(o.catalog, o.guard, o.writer, o.clock, webURL).Table().Named("Members"),
		deploykeys.New(o.catalog, o.writer, o.guard).Table().Named("Deploy keys"),
		protectedbranches.New(o.catalog, o.writer, o.ids, o.guard, o.clock).Table().Named("Protected branches"),
		triggertokens.New(o.catalog, o.writer, o.credentials, o.uses, webURL).Table().Named("Pipeline triggers"),
		bottokens.New(o.catalog, o.writer, o.uses, o.clock).Table().Named("Project and group access tokens"),
		badges.New(o.catalog, o.guard, o.writer, o.repos).Table().Named("Badges"),
		jobtokenscopes.New(o.catalog, o.writer, o.guard, webURL).Table().Named("Job token scope"),
		remotemirrors.New(o.catalog, o.writer, o.credentials, o.clock, o.targets).Table().Named("Remote mirrors"),
		labels.New(o.catalog, o.guard, o.writer, o.subscriptions, labels.Nothing{}, o.clock).Table().Named("Labels"),
		repositories.New(o.repos, o.catalog, o.guard, refs, repositories.NoMergeRequests{}, o.features, o.clock, webURL).Table().Named("Repository"),
		branches.New(o.repos, o.guard, refs, webURL).Table().Named("Branches"),
		tags.New(o.repos, refs, o.clock, webURL).Table().Named("Tags"),
		commits.New(o.repos, o.catalog, o.guard, refs, o.clock, webURL).Table().Named("Commits"),
		files.New(o.repos, refs, o.clock).Table().Named("Files"),
		storagemoves.New(o.catalog, o.guard, o.writer, o.moves, o.moveTasks, o.namespace).Table().Named("Repository storage moves"),
		containers.New(o.catalog, o.writer, o.images.Registry, o.images.host(), o.deletions, o.clock).Table().Named("Container registry"),
		housekeeping.New(o.maintain).Table().Named("Housekeeping"),
		markdown.New(o.guard).Table().Named("Markdown"),
	}
}

// told wraps outdated, and records in the audit log that a request is served again. It returns nil for nil.
func told(outdated func(ctx context.Context) (bool, error)) func(ctx context.Context) (bool, error) {
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

// routed notes for the audit which endpoint a request is for.
func routed(r *http.Request, e *endpoint.Endpoint) {
	if record := audit.From(r.Context()); record != nil {
		record.Action(e.String(), r.URL.EscapedPath())
	}
}

// failed notes for the audit why a write failed.
func failed(r *http.Request, text string) { audit.From(r.Context()).Otherwise(audit.Failed, text) }

// newReference returns the page of the REST API.
func newReference() (http.Handler, error) {
	return docs.New("Forgeplane", ".."+restPrefix+"/openapi.json")
}

// split sends what is below restPrefix, and avatars, to the REST API, the reference of it and the pages of projects to the reader, and all
// else to Git. The path goes on as it was sent.
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
	// The escaped path is a part of a path that was unescaped before.
	inner.Path, _ = url.PathUnescape(escaped)
	return &inner
}

// Costly returns the names of the limits that single endpoints have, of five requests a minute for every caller. ratelimit.Options takes
// them.
func Costly() []string { return []string{"archive", "blob", "changelog", "file", "housekeeping"} }
