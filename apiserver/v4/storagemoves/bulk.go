package storagemoves

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/fieldmanager"
	"github.com/forgeplane/forgeplane/internal/job"
)

type createAllRequest struct {
	Source      string                    `param:"source_storage_name" required:"" example:"shard" doc:"Name of the RepositoryStorage to move the projects off."`
	Destination endpoint.Optional[string] `param:"destination_storage_name" doc:"Name of the RepositoryStorage to move to. Defaults to others than the source, by weight."`
}

// Accepted is the response to a request that continues in the background.
type Accepted struct {
	Message string `json:"message"`
}

// off is the payload of a task that moves all projects off a shard.
type off struct {
	Source      string `json:"source"`
	Destination string `json:"destination,omitempty"`
	// Request names the request, so that the work can be done again without a second move of a project.
	Request string `json:"request"`
}

func (f *Family) createAll(ctx context.Context, _ auth.Instance, r *createAllRequest) (Accepted, error) {
	source, err := f.shard(ctx, r.Source)
	if err != nil {
		return Accepted{}, err
	}
	if source == nil { // a shard that is being deleted is accepted, because its deletion waits for the moves
		return Accepted{}, endpoint.Parameters("source_storage_name does not have a valid value")
	}
	destination := r.Destination.Or("")
	if destination != "" {
		if takes, err := f.takes(ctx, destination); err != nil {
			return Accepted{}, err
		} else if !takes {
			return Accepted{}, endpoint.Parameters("destination_storage_name does not have a valid value")
		}
	}
	payload, err := json.Marshal(off{r.Source, destination, rand.Text()})
	if err != nil {
		return Accepted{}, fmt.Errorf("scheduling moves: %w", err)
	}
	audit.From(ctx).About(source, "")
	return Accepted{"202 Accepted"}, f.tasks.Add(ctx, job.Task{Key: v1alpha1.NaturalName(r.Source, destination), Payload: payload})
}

// process creates the moves of a task.
func (f *Family) process(ctx context.Context, a job.Attempt, progress func(string)) error {
	var work off
	if err := json.Unmarshal(a.Payload, &work); err != nil {
		return fmt.Errorf("reading the task: %w", err)
	}
	projects, err := catalog.List[*v1alpha1.Project](ctx, f.Catalog, catalog.IndexStorage, work.Source)
	if err != nil {
		return err
	}
	failed, created := error(nil), 0
	for _, p := range projects {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch moving, err := f.moveOff(ctx, p, work); {
		case err != nil:
			failed = errors.Join(failed, fmt.Errorf("moving project %s/%s: %w", p.Namespace, p.Name, err))
		case moving != "":
			log.FromContext(ctx).Info("Skipped a project that already has a move", "namespace", p.Namespace, "project", p.Name, "move", moving)
		default:
			created++
		}
		progress(fmt.Sprintf("%d of %d moves created", created, len(projects)))
	}
	return failed
}

// moveOff creates the move of a project, unless another move holds the project, or was requested over REST and has not ended. Then it
// returns the name of the other move. A second move without a destination would bring the project back.
func (f *Family) moveOff(ctx context.Context, p *v1alpha1.Project, work off) (moving string, err error) {
	m := newMove(p, work.Request)
	if held := p.Status.Move; held != nil && held.Name != m.Name {
		return held.Name, nil
	}
	others, err := catalog.ListForProject[*v1alpha1.StorageMove](ctx, f.Catalog, p)
	if err != nil {
		return "", err
	}
	for _, other := range others {
		if other.Name != m.Name && other.Status.MayHold() && fieldmanager.Owned(other) {
			return other.Name, nil
		}
	}
	m.Spec.Destination = work.Destination
	return "", f.background.EnsureUnasked(audit.For(ctx, p), m)
}

// shard returns the shard with a name, or nil if none is declared.
func (f *Family) shard(ctx context.Context, name string) (*v1alpha1.RepositoryStorage, error) {
	s, err := catalog.Get[*v1alpha1.RepositoryStorage](ctx, f.Catalog, "", name)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil, nil
	}
	return s, err
}

// takes reports whether there is a shard to which projects can be moved.
func (f *Family) takes(ctx context.Context, name string) (bool, error) {
	s, err := f.shard(ctx, name)
	return s != nil && s.DeletionTimestamp.IsZero(), err
}
