// Package markdown is the family that renders Markdown.
package markdown

import (
	"context"
	"errors"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/markdown"
)

// maxBody is the maximum size of a request in bytes. markdown.Render has further limits, because rendering depends more on the form of a text.
const maxBody = 512 << 10

// Family renders Markdown.
type Family struct {
	family.Kit
}

// New returns the family.
func New(k family.Kit) *Family { return &Family{k} }

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	return endpoint.Table{
		endpoint.Post("/markdown", f.render).Anybody().Asks(auth.ReadProject).MaxBody(maxBody).
			Doc("Render a text in Markdown as HTML that is safe to show."),
	}
}

// Rendered is the HTML of a text.
type Rendered struct {
	HTML string `json:"html"`
}

type renderRequest struct {
	Text    string `param:"text" required:"" example:"**Hello**" doc:"A text in Markdown."`
	GFM     bool   `param:"gfm" doc:"Accepted for compatibility. Tables, task lists and strikethrough are always available; references are not replaced."`
	Project string `param:"project" doc:"Id or full path of the project that the text is about."`
}

func (f *Family) render(ctx context.Context, s auth.Instance, r *renderRequest) (Rendered, error) {
	if r.Project != "" {
		if err := f.see(ctx, s, r.Project); err != nil {
			return Rendered{}, err
		}
	}
	rendered, err := markdown.Render(r.Text)
	if errors.Is(err, markdown.ErrExpensive) {
		err = endpoint.BadRequest("text " + err.Error())
	}
	return Rendered{HTML: rendered}, err
}

// see returns 404 for a project that the caller cannot see.
func (f *Family) see(ctx context.Context, s auth.Instance, project string) error {
	scope, err := f.Guard.Project(ctx, project)
	if err == nil {
		_, err = f.Guard.Visible(ctx, s.Caller, scope)
	}
	if errors.Is(err, catalog.ErrNotFound) {
		return endpoint.NotFound("Project")
	}
	return err
}
