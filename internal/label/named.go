package label

import (
	"context"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// DefaultColor is the color of labels that are made only by their titles.
const DefaultColor = "#6699cc"

// Key is what the name is derived from of a label that REST creates in a project or group, so that no second one can have the title.
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
