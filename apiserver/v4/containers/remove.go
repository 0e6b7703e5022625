package containers

import (
	"context"
	"net/http"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/registry"
)

// remove deletes a repository. The body of the response is the status, as in the reference product.
func (f *Family) remove(ctx context.Context, s auth.ProjectRecord[repository], _ *struct{}) (int, error) {
	if err := writable(s); err != nil {
		return 0, err
	}
	err := registry.Schedule(ctx, f.Images.Records, f.tasks, s.Record.Repository, fair.Namespace(s.Scope.Project.Namespace))
	if err != nil {
		return 0, err
	}
	audit.From(ctx).Did("delete", audit.ContainerRepository, registry.PathOf(s.Scope.Path(), s.Record.Name), s.Record.ID)
	return http.StatusAccepted, nil
}
