package apiserver

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/go-logr/logr"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/v4/instance"
	"github.com/forgeplane/forgeplane/apiserver/v4/protectedbranches"
	"github.com/forgeplane/forgeplane/apiserver/v4/users"
	"github.com/forgeplane/forgeplane/internal/accesslevel"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/declare"
)

// restPrefix is where the REST API is on the forge's own listener.
const restPrefix = "/api/v4"

// restOptions are what the families work with.
type restOptions struct {
	external *url.URL
	version  string
	guard    *auth.Guard
	catalog  *catalog.Catalog
	writer   *declare.Writer
	ids      accesslevel.Allocator
	log      logr.Logger
}

// newREST returns the tree of the REST API, which both doors serve. It is here that a family is added.
func newREST(o restOptions) *endpoint.Handler {
	webURL := strings.TrimSuffix(o.external.String(), "/")
	return endpoint.NewHandler(
		endpoint.Options{
			Guard: o.guard, Log: o.log,
			BaseURL: func(*http.Request) *url.URL { return o.external.JoinPath(restPrefix) },
		},
		instance.New(o.version).Table(),
		users.New(webURL).Table(),
		protectedbranches.New(o.catalog, o.writer, o.ids).Table(),
	)
}

// split sends what is below restPrefix to the REST API, and all else to Git. The path goes on as it was sent.
func split(rest, git http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, below := strings.CutPrefix(r.URL.EscapedPath(), restPrefix+"/")
		if !below {
			git.ServeHTTP(w, r)
			return
		}
		inner := *r
		inner.URL = cloneWithPath(r.URL, "/"+path)
		rest.ServeHTTP(w, &inner)
	})
}

// cloneWithPath returns u with another escaped path.
func cloneWithPath(u *url.URL, escaped string) *url.URL {
	inner := *u
	inner.RawPath = escaped
	// The escaped path is part of one that was unescaped before.
	inner.Path, _ = url.PathUnescape(escaped)
	return &inner
}
