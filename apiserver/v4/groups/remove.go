package groups

import (
	"context"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/store"
)

// Accepted is the response to a request that continues in the background.
type Accepted struct {
	Message string `json:"message"`
}

// remove deletes a group with everything below it, unless restWrites of one of the projects forbids that.
func (f *Family) remove(ctx context.Context, s auth.Group, _ *endpoint.None) (Accepted, error) {
	if err := f.groups.Check(ctx, s.Subject, store.Only{}); err != nil {
		return Accepted{}, err
	}
	projects, groups, err := f.Catalog.View(nil, f.Clock.Now()).Below(ctx, s.Scope.Groups[0])
	if err != nil {
		return Accepted{}, err
	}
	return Accepted{Message: "202 Accepted"}, f.tree.Remove(ctx, projects, groups)
}
