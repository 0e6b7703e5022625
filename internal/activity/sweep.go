package activity

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/retained"
	"github.com/forgeplane/forgeplane/internal/sweep"
)

// swept is sweep.Objects for any catalog.
type swept struct {
	kind   string
	having func(*catalog.Catalog) sweep.Having
	rows   sweep.Rows
	// images says that the rows have contents in the container registry.
	images bool
	// move moves the rows of a deleted project to the project that adopts its repository; nil if there is nothing to move here.
	move func(ctx context.Context, from, to database.Subject) error
}

// rows are rows that belong to the objects of a kind.
func rows[T v1alpha1.Identified](kind string, r sweep.Rows) swept {
	return swept{kind: kind, having: known[T], rows: r}
}

// places are rows that belong to projects and groups. The rows of a deleted project stay for as long as a project can adopt its repository.
// Values of the unique columns are unique in a project.
func places(r sweep.Inherited, unique ...string) []swept {
	move := func(ctx context.Context, from, to database.Subject) error { return r.Move(ctx, from, to, unique...) }
	return []swept{{kind: database.KindProject, having: knownOrRetained, rows: r, move: move}, rows[*v1alpha1.Group](database.KindGroup, r)}
}

// Sweeper returns the sweeper that removes the activity of objects that are gone. Without images, it leaves the container repositories alone.
func (s Stores) Sweeper(cat *catalog.Catalog, images bool, c clock.WithTicker, log logr.Logger) *sweep.Sweeper {
	var objects []sweep.Objects
	for _, o := range s.swept {
		if images || !o.images {
			objects = append(objects, sweep.Objects{Kind: o.kind, Having: o.having(cat), Rows: o.rows})
		}
	}
	return sweep.New(objects, s.Written.Forget, c, log)
}

// known looks up which objects of a kind declare an id.
func known[T v1alpha1.Identified](c *catalog.Catalog) sweep.Having {
	return func(ctx context.Context, id int64) ([]types.UID, error) {
		found, err := catalog.AllWithID[T](ctx, c, id)
		all := make([]types.UID, len(found))
		for i, o := range found {
			all[i] = o.GetUID()
		}
		return all, err
	}
}

// knownOrRetained looks up which projects declare an id, and which deleted ones have left a repository. Their images stay for as long as a
// project can adopt them.
func knownOrRetained(c *catalog.Catalog) sweep.Having {
	projects := known[*v1alpha1.Project](c)
	return func(ctx context.Context, id int64) ([]types.UID, error) {
		all, err := projects(ctx, id)
		if err != nil {
			return nil, err
		}
		left, err := retained.WithID(ctx, c, id)
		for _, r := range left {
			all = append(all, types.UID(r.Spec.Project.UID))
		}
		return all, err
	}
}

// Adopt moves the activity of a deleted project, such as its issues and images, to the project that adopts its repository. A milestone or image
// stays if the project already has one of that name. Adopt can be repeated, also after an error, which can leave it half done: one transaction
// would take too long.
func (s Stores) Adopt(ctx context.Context, former types.UID, projectID int64, project types.UID) error {
	if former == project {
		return nil // it was restored with its UID
	}
	for _, o := range s.swept {
		if o.move == nil {
			continue
		}
		from, to := database.Subject{Kind: o.kind, UID: former}, database.Subject{Kind: o.kind, ID: projectID, UID: project}
		if err := o.move(ctx, from, to); err != nil {
			return err
		}
	}
	return nil
}
