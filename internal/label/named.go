package label

import (
	"context"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// DefaultColor is the color of labels that are created from a title alone.
const DefaultColor = "#6699cc"

// Key returns the parts of the name of a label that REST creates in a project or group. The same title gives the same name, so that a title is
// created only once.
func Key(in catalog.Scope, title string) []string {
	kind := "group"
	if in.Project != nil {
		kind = "project"
	}
	return []string{kind, in.Target().GetName(), title}
}

// Titled returns the labels with a title, of all projects and groups.
func Titled(ctx context.Context, c *catalog.Catalog, title string) ([]*v1alpha1.Label, error) {
	return catalog.List[*v1alpha1.Label](ctx, c, indexTitle, title)
}
