// Package landing serves the pages for browsers at the address of the installation and at each web_url.
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
	"slices"
	"strings"

	"github.com/go-logr/logr"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/docs"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/namespace"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/watermark"
)

// policy forbids a page to load or send anything.
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

// roots are the paths of the home page.
var roots = []string{"/", "/api", "/api/", "/api/v4"}

// places matches the paths of web_url: of projects, groups and users, and of the content of projects.
var places = regexp.MustCompile(`^/([a-zA-Z0-9_](?:[a-zA-Z0-9_.-]*[a-zA-Z0-9_])?(?:/[a-zA-Z0-9_](?:[a-zA-Z0-9_.-]*[a-zA-Z0-9_])?)*)(/-/(?:commit|compare|tree)/.+)?/?$`)

// Serves reports whether a request is for a page. Requests of Git over HTTP are not.
func Serves(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && !forGit(r.URL.EscapedPath())
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

// shown has the data of the template.
type shown struct {
	Title, Description, Clone, API, Reference, Home string
}

// ServeHTTP serves a request for which Serves is true.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content := shown{Title: "Forgeplane", Description: "Git repositories, with a REST API.", API: h.external + "/api/v4", Reference: h.external + docs.Path}
	status := http.StatusOK
	if !slices.Contains(roots, r.URL.EscapedPath()) {
		found, err := h.find(r)
		switch status = h.status(w, r, err); {
		case err == nil:
			content = found
			content.Reference = h.external + docs.Path
		case status == http.StatusNotFound:
			content = shown{Title: "Not found", Description: "There is nothing at this address, or you cannot see it."}
		default:
			content = shown{Title: http.StatusText(status)}
			if errors.Is(err, watermark.ErrBehind) {
				content.Description = watermark.Behind
			}
		}
		content.Home = h.external + "/"
	}
	var text bytes.Buffer
	if err := page.Execute(&text, content); err != nil {
		h.Log.Error(err, "Failed to write a page", "path", r.URL.Path)
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

// find returns the content of the page for a request, or catalog.ErrNotFound if the caller can see nothing at its path.
func (h *Handler) find(r *http.Request) (shown, error) {
	ctx, caller, err := h.Guard.Identify(r)
	if err != nil {
		return shown{}, err
	}
	at := places.FindStringSubmatch(r.URL.EscapedPath())
	if at == nil {
		return shown{}, catalog.ErrNotFound
	}
	path, within := at[1], at[2] != ""
	content, err := h.visible(ctx, caller, path, within)
	if errors.Is(err, catalog.ErrNotFound) {
		again, behind := h.Outdated(ctx)
		if err = cmp.Or(behind, err); again {
			content, err = h.visible(ctx, caller, path, within)
		}
	}
	return content, err
}

// visible returns the page of the project at a path, or, unless within is true, of the group or user, if the caller can see it. Hidden and
// missing objects cost the same number of lookups.
func (h *Handler) visible(ctx context.Context, caller auth.Caller, path string, within bool) (shown, error) {
	content, err := h.project(ctx, caller, path)
	if within || !errors.Is(err, catalog.ErrNotFound) {
		return content, err
	}
	groups := []string{path}
	if below, cut := strings.CutPrefix(path, "groups/"); cut {
		groups = append(groups, below)
	}
	for _, group := range groups {
		if content, err = h.group(ctx, caller, group); !errors.Is(err, catalog.ErrNotFound) {
			return content, err
		}
	}
	return h.user(ctx, caller, path)
}

func (h *Handler) project(ctx context.Context, caller auth.Caller, path string) (shown, error) {
	s, err := h.Guard.Project(ctx, path)
	if err == nil {
		_, err = h.Guard.Visible(ctx, caller, s)
	}
	// The guard takes a number as an id.
	if err == nil && !strings.EqualFold(s.Path(), path) {
		err = catalog.ErrNotFound
	}
	if err != nil {
		return shown{}, err
	}
	p := entity.SummarizeProject(s, h.external)
	return shown{Title: p.NameWithNamespace, Description: p.Description, Clone: p.HTTPURLToRepo}, nil
}

func (h *Handler) group(ctx context.Context, caller auth.Caller, path string) (shown, error) {
	s, err := h.Guard.GroupAt(ctx, path)
	if err == nil {
		_, err = h.Guard.Visible(ctx, caller, s)
	}
	// A personal namespace has the path of its user. Not all callers can see users.
	if err == nil && namespace.Personal(s.Groups[0]) {
		err = catalog.ErrNotFound
	}
	if err != nil {
		return shown{}, err
	}
	return shown{Title: entity.FullName(s.Groups), Description: s.Groups[0].Spec.Description}, nil
}

// user returns a user or bot. As over REST, callers who have not signed in see none.
func (h *Handler) user(ctx context.Context, caller auth.Caller, username string) (shown, error) {
	if caller.Anonymous() {
		return shown{}, catalog.ErrNotFound
	}
	u, err := h.Guard.UserNamed(ctx, username)
	if errors.Is(err, catalog.ErrNotFound) {
		u, err = h.Guard.BotNamed(ctx, caller, username)
	}
	if err != nil {
		return shown{}, err
	}
	return shown{Title: catalog.DisplayName(u), Description: u.Spec.Username}, nil
}

// status returns the status of an answer, and sets the headers that an error of the REST API has.
func (h *Handler) status(w http.ResponseWriter, r *http.Request, err error) int {
	refused := store.AnswerLimit(err)
	switch {
	case err == nil:
		return http.StatusOK
	case errors.Is(err, catalog.ErrNotFound):
		return http.StatusNotFound
	case refused != nil, errors.As(err, &refused):
		for name, values := range refused.Header {
			w.Header()[name] = values
		}
		return refused.Status
	}
	if r.Context().Err() == nil {
		h.Log.Error(err, "Failed to look up the content of a page", "path", r.URL.Path)
	}
	return http.StatusInternalServerError
}
