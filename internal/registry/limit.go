package registry

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/opencontainers/go-digest"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/registry/record"
)

// DefaultMaxSize is the usual Registry.MaxSize.
const DefaultMaxSize = 50 << 30

// fullError says that the repositories of a project accept no more.
type fullError struct{ limit int64 }

func (e *fullError) Error() string {
	return fmt.Sprintf("the images of the project would take up more than the limit of %s bytes: delete tags or repositories that nobody needs. "+
		"Their space is free after a garbage collection", resource.NewQuantity(e.limit, resource.BinarySI))
}

// room returns how many bytes more the repositories of a project can have; less than 0 if they have too many.
func (r *Registry) room(ctx context.Context, project types.UID) (int64, error) {
	if r.MaxSize == 0 {
		return math.MaxInt64, nil
	}
	stored, err := r.Records.Stored(ctx, project)
	return r.MaxSize - max(stored, 0), err
}

// admit returns an error that the handler can answer, unless there is room for a content, or the repository has it already.
func (r *repository) admit(ctx context.Context, d digest.Digest, size int64) error {
	room, err := r.registry.room(ctx, r.ProjectUID)
	if err != nil {
		return unavailable(ctx, err)
	}
	if size <= room {
		return nil
	}
	_, err = r.registry.Records.Recorded(ctx, r.ID, d.String())
	if errors.Is(err, record.ErrNotFound) {
		return refused(ctx, &fullError{r.registry.MaxSize})
	}
	if err != nil {
		return unavailable(ctx, err)
	}
	return nil
}

// keep records that the repository has a content, and no longer has those with the names in gone, even if the client goes. The error is one that the
// handler can answer. Without a limit nothing is recorded, and the next garbage collection makes up for that.
func (r *repository) keep(ctx context.Context, name string, size int64, gone ...string) error {
	if r.registry.MaxSize == 0 {
		return nil
	}
	err := r.registry.Records.Keep(context.WithoutCancel(ctx), record.Content{RepositoryID: r.ID, Name: name, Size: size}, gone...)
	switch {
	case errors.Is(err, record.ErrNotFound):
		return refused(ctx, err)
	case err != nil:
		return unavailable(ctx, err)
	default:
		return nil
	}
}
