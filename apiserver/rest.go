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
	"github.com/forgeplane/forgeplane/apiserver/docs"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/apiserver/refusal"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/apiserver/v4/accesstokens"
	"github.com/forgeplane/forgeplane/apiserver/v4/badges"
	"github.com/forgeplane/forgeplane/apiserver/v4/branches"
	"github.com/forgeplane/forgeplane/apiserver/v4/commits"
	"github.com/forgeplane/forgeplane/apiserver/v4/deploykeys"
	"github.com/forgeplane/forgeplane/apiserver/v4/features"
	"github.com/forgeplane/forgeplane/apiserver/v4/files"
	"github.com/forgeplane/forgeplane/apiserver/v4/groups"
	"github.com/forgeplane/forgeplane/apiserver/v4/instance"
	"github.com/forgeplane/forgeplane/apiserver/v4/jobtokenscopes"
	"github.com/forgeplane/forgeplane/apiserver/v4/labels"
	"github.com/forgeplane/forgeplane/apiserver/v4/members"
	"github.com/forgeplane/forgeplane/apiserver/v4/projects"
	"github.com/forgeplane/forgeplane/apiserver/v4/protectedbranches"
	"github.com/forgeplane/forgeplane/apiserver/v4/remotemirrors"
	"github.com/forgeplane/forgeplane/apiserver/v4/repositories"
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
	"github.com/forgeplane/forgeplane/internal/repository"
)

const (
	// restPrefix is where the REST API is on the forge's own listener.
	restPrefix = "/api/v4"
	// retiredPrefix is where clients that are too old look for it.
	retiredPrefix = "/api/v3"
)

// retired is the answer to them.
func retired() *endpoint.Error {
	return &endpoint.Error{
		Status: http.StatusGone, Body: map[string]string{"error": "API V3 is no longer supported. Use API V4 instead."},
	}
}

// restOptions are what the families work with.
type restOptions struct {
	external *url.URL
	version  string
	guard    *auth.Guard
	catalog  *catalog.Catalog
	writer   store.Writer
	ids      accesslevel.Allocator
	// subscriptions and uses are in the activity database.
	subscriptions labels.Subscriptions
	uses          triggertokens.Uses
	clock         clock.PassiveClock
	repos         *repository.Repositories
	// pushed is told of each project whose refs have changed.
	pushed  func(project types.NamespacedName)
	log     logr.Logger
	observe func(e *endpoint.Endpoint, status int, took time.Duration)
	// quotas are how much users make.
	quotas quota.Limits
	// memory is what is held for callers, and disk what they upload; nil for any amount.
	memory, disk *fair.Memory
	// uploads is the directory for that.
	uploads string
	// stopping is closed when the server begins to stop.
	stopping <-chan struct{}
	// outdated is endpoint.Options.Outdated.
	outdated func(ctx context.Context) bool
	// credentials are those that REST receives or generates for objects of tenants.
	credentials *credential.Store
	// home is the namespace of objects that are created over REST and have no other namespace.
	home string
	// targets says which hosts outside users may name.
	targets *egress.Policy
	// features are those that are on; nil for those that are on by default.
	features *feature.Flags
}

// newREST returns the tree of the REST API, which both doors serve.
func newREST(o restOptions) *endpoint.Handler { return newTree(o, families(o)) }

// newTree returns a tree of the tables.
func newTree(o restOptions, tables []endpoint.Table) *endpoint.Handler {
	return endpoint.NewHandler(endpoint.Options{
		Guard: o.guard, Log: o.log, Observe: o.observe, Outdated: told(o.outdated), Routed: routed,
		Refused: refusal.Anyway, Memory: o.memory, Exceeded: git.LimitReached,
		Spool: o.uploads, Disk: o.disk, Stopping: o.stopping,
		Info:    endpoint.Info{Title: "Forgeplane", Version: o.version},
		BaseURL: o.external.JoinPath(restPrefix),
	}, tables...)
}

// families are the tables of all families. It is here that one is added.
func families(o restOptions) []endpoint.Table {
	webURL := strings.TrimSuffix(o.external.String(), "/")
	refs := ref.NewWriter(o.guard, o.catalog, o.repos, o.pushed)
	return []endpoint.Table{
		instance.New(o.version).Table().Named("Instance"),
		features.New(o.features, o.writer).Table().Named("Features"),
		users.New(o.catalog, o.writer, webURL, o.home).Within(o.quotas).Table().Named("Users"),
		accesstokens.New(o.catalog, o.writer, o.clock).Table().Named("Personal access tokens"),
		groups.New(o.catalog, o.guard, o.writer, o.clock, webURL, o.home).Table().Named("Groups"),
		projects.New(o.catalog, o.guard, o.writer, refs, o.clock, webURL, o.home).Table().Named("Projects"),
		members.New(o.catalog, o.writer, o.clock, webURL).Table().Named("Members"),
		deploykeys.New(o.catalog, o.writer, o.guard).Table().Named("Deploy keys"),
		protectedbranches.New(o.catalog, o.writer, o.ids, o.guard).Table().Named("Protected branches"),
		triggertokens.New(o.catalog, o.writer, o.credentials, o.uses, webURL).Table().Named("Pipeline triggers"),
		badges.New(o.catalog, o.writer, o.repos).Table().Named("Badges"),
		jobtokenscopes.New(o.catalog, o.writer, o.guard, webURL).Table().Named("Job token scope"),
		remotemirrors.New(o.catalog, o.writer, o.credentials, o.clock, o.targets).Table().Named("Remote mirrors"),
		labels.New(o.catalog, o.guard, o.writer, o.subscriptions, labels.Nothing{}).Table().Named("Labels"),
		repositories.New(o.repos, o.catalog, o.guard, refs, repositories.NoMergeRequests{}, o.features, o.clock, webURL).Table().Named("Repository"),
		branches.New(o.repos, o.catalog, o.guard, refs, webURL).Table().Named("Branches"),
		tags.New(o.repos, refs, o.clock, webURL).Table().Named("Tags"),
		commits.New(o.repos, refs, o.clock, webURL).Table().Named("Commits"),
		files.New(o.repos, refs, o.clock).Table().Named("Files"),
	}
}

// told is outdated, which tells the audit of a request that is served once more; nil for nil.
func told(outdated func(ctx context.Context) bool) func(ctx context.Context) bool {
	if outdated == nil {
		return nil
	}
	return func(ctx context.Context) bool {
		again := outdated(ctx)
		if again {
			audit.From(ctx).Again()
		}
		return again
	}
}

// routed notes for the audit which endpoint a request is for.
func routed(r *http.Request, e *endpoint.Endpoint) {
	if record := audit.From(r.Context()); record != nil {
		record.Action(e.String(), r.URL.EscapedPath())
	}
}

// split sends what is below restPrefix to the REST API, the page about it to the reader, and all else to Git. The path goes on
// as it was sent.
func split(rest, retired, page, gitServer http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		escaped := r.URL.EscapedPath()
		if path, below := strings.CutPrefix(escaped, restPrefix+"/"); below {
			inner := *r
			inner.URL = cloneWithPath(r.URL, "/"+path)
			rest.ServeHTTP(w, &inner)
			return
		}
		if strings.HasPrefix(escaped, retiredPrefix+"/") {
			retired.ServeHTTP(w, r)
			return
		}
		if escaped == docs.Path || strings.HasPrefix(escaped, docs.Path+"/") {
			page.ServeHTTP(w, r)
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
func Costly() []string { return []string{"archive", "blob", "changelog", "file"} }
