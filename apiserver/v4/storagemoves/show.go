package storagemoves

import (
	"context"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/storagemove"
)

// Move is a move of the repositories of a project.
type Move struct {
	ID                     int64                  `json:"id"`
	CreatedAt              endpoint.Time          `json:"created_at"`
	State                  string                 `json:"state" doc:"initial, scheduled, started, replicated, finished, failed or cleanup failed."`
	SourceStorageName      string                 `json:"source_storage_name"`
	DestinationStorageName string                 `json:"destination_storage_name"`
	Project                entity.ProjectIdentity `json:"project"`
}

// showIn returns a function that shows a move of the history with the current state of its project, or with the recorded one if the project
// is gone.
func (f *Family) showIn(ctx context.Context) func(storagemove.Move) Move {
	return func(m storagemove.Move) Move {
		return Move{
			ID: m.ID, CreatedAt: endpoint.Time(m.Created), State: string(m.State), SourceStorageName: m.Source, DestinationStorageName: m.Destination,
			Project: f.identify(ctx, m.Project),
		}
	}
}

func (f *Family) identify(ctx context.Context, was storagemove.Project) entity.ProjectIdentity {
	if p, err := catalog.ByID[*v1alpha1.Project](ctx, f.Catalog, was.ID); err == nil && p.UID == was.UID {
		if scope, err := f.Catalog.ProjectScope(ctx, p); err == nil {
			return entity.IdentifyProject(scope)
		}
	}
	return entity.ProjectIdentity{
		ID: was.ID, Description: was.Description, Name: was.Name, NameWithNamespace: was.NameWithNamespace,
		Path: was.Path, PathWithNamespace: was.PathWithNamespace, CreatedAt: endpoint.Time(was.Created),
	}
}
