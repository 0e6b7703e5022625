// Package landing is what a browser finds at the address of the installation, and at the web_url of a project.
package landing

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/go-logr/logr"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/docs"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/namespace"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/watermark"
)

// policy lets a page load nothing and send nothing.
const policy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

//go:embed page.html
var source string

var page = template.Must(template.New("page").Parse(source))

// Options configure a Handler.
type Options struct {
	Guard *auth.Guard
	// External is the address of the installation for clients.
	External *url.URL
	// Outdated reports whether the cache may be older than a write of another server, and returns when it no longer is.
	// The error is watermark.ErrBehind if it still is.
	Outdated func(ctx context.Context) (bool, error)
	Log      logr.Logger
}

// Handler serves the pages.
type Handler struct {
	Options
	external string
}

// New returns a handler.
func New(o Options) *Handler {
	return &Handler{Options: o, external: strings.TrimSuffix(o.External.String(), "/")}
}

// places are the paths that a project can have, below at least one group.
var places = regexp.MustCompile(`^(/[a-zA-Z0-9_]([a-zA-Z0-9_.-]*[a-zA-Z0-9_])?){2,}/?$`)

// Serves reports whether a request is for a page: for the root, or for a path that a project can have. The paths of Git over HTTP and those
// that the listener reserves are not.
func Serves(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	path := r.URL.EscapedPath()
	if path == "/" {
		return true
	}
	root, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return places.MatchString(path) && !namespace.Reserved(root) && !forGit(path)
}

// forGit reports whether git asks for a path, with or without the suffix .git, which people forget.
func forGit(path string) bool {
	for _, end := range []string{".git", "/info/refs", "/git-upload-pack", "/git-receive-pack"} {
		if strings.HasSuffix(strings.TrimSuffix(path, "/"), end) {
			return true
		}
	}
	return strings.Contains(path, ".git/")
}

// shown is what the template shows.
type shown struct {
	Title, Description, Clone, Reference, Home string
}

// ServeHTTP serves a request for which Serves is true.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content := shown{Title: "Forgeplane", Description: "Git repositories, with a REST API.", Reference: h.external + docs.Path}
	status := http.StatusOK
	if r.URL.Path != "/" {
		p, err := h.project(r)
		switch status = h.status(w, r, err); {
		case err == nil:
			content.Title, content.Description, content.Clone, content.Home = p.NameWithNamespace, p.Description, p.HTTPURLToRepo, h.external+"/"
		case status == http.StatusNotFound:
			content = shown{Title: "Not found", Description: "There is nothing at this address, or you cannot see it.", Home: h.external + "/"}
		default:
			content = shown{Title: http.StatusText(status), Home: h.external + "/"}
		}
	}
	var text bytes.Buffer
	if err := page.Execute(&text, content); err != nil {
		h.Log.Error(err, "Writing a page", "path", r.URL.Path)
		http.Error(w, "500 Internal Server Error", http.StatusInternalServerError)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-store") // the answer depends on the caller
	w.WriteHeader(status)
	_, _ = w.Write(text.Bytes())
}

// project returns the project at the path of a request, or catalog.ErrNotFound if the caller can see no project there.
func (h *Handler) project(r *http.Request) (entity.ProjectSummary, error) {
	ctx, caller, err := h.Guard.Identify(r)
	if err != nil {
		return entity.ProjectSummary{}, err
	}
	path := strings.Trim(r.URL.Path, "/")
	s, err := h.visible(ctx, caller, path)
	if errors.Is(err, catalog.ErrNotFound) {
		again, behind := h.Outdated(ctx)
		if err = cmp.Or(behind, err); again {
			s, err = h.visible(ctx, caller, path)
		}
	}
	if err != nil {
		return entity.ProjectSummary{}, err
	}
	return entity.SummarizeProject(s, h.external), nil
}

func (h *Handler) visible(ctx context.Context, caller auth.Caller, path string) (catalog.Scope, error) {
	s, err := h.Guard.Project(ctx, path)
	if err == nil {
		_, err = h.Guard.Visible(ctx, caller, s)
	}
	return s, err
}

// status returns the status of an answer, and sets the headers that an error of the REST API has.
func (h *Handler) status(w http.ResponseWriter, r *http.Request, err error) int {
	var refused *endpoint.Error
	switch {
	case err == nil:
		return http.StatusOK
	case errors.Is(err, catalog.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, watermark.ErrBehind):
		return http.StatusServiceUnavailable
	case errors.As(err, &refused):
		for name, values := range refused.Header {
			w.Header()[name] = values
		}
		return refused.Status
	}
	if r.Context().Err() == nil {
		h.Log.Error(err, "Finding the project of a page", "path", r.URL.Path)
	}
	return http.StatusInternalServerError
}
