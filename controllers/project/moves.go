package project

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// moveDelay is the interval for checking whether a move has ended.
const moveDelay = time.Second

// reviveDelay is the interval at which a shard is tried again that is read-only. A shard that becomes ready is tried at once.
const reviveDelay = time.Minute

// awaitMove waits until the move of a project that is being deleted has ended, or shows that it has changed the shard. It does not wait for a
// move that no longer exists.
func (c *Controller) awaitMove(ctx context.Context, p *v1alpha1.Project) error {
	for _, by := range []*v1alpha1.ProjectMove{p.Status.Move, p.Status.LastMove} {
		if there, err := c.moving(ctx, p, by); err != nil {
			return err
		} else if there {
			return frame.Progressing(moveDelay, v1alpha1.ReasonDeleting, "waiting for StorageMove %s to end", by.Name)
		}
	}
	return nil
}

// moving reports whether a move that the status of a project names exists, and waits for its turn or copies.
func (c *Controller) moving(ctx context.Context, p *v1alpha1.Project, held *v1alpha1.ProjectMove) (bool, error) {
	if held == nil {
		return false, nil
	}
	m, err := catalog.Get[*v1alpha1.StorageMove](ctx, c.frame.Catalog, p.Namespace, held.Name)
	if err == nil && string(m.UID) == held.UID {
		return m.Status.MayHold(), nil
	}
	if err != nil && !errors.Is(err, catalog.ErrNotFound) {
		return false, err
	}
	var there v1alpha1.StorageMoveList
	if err := c.options.Live.List(ctx, &there, client.InNamespace(p.Namespace), client.MatchingFields{"metadata.name": held.Name}); err != nil {
		return false, fmt.Errorf("reading StorageMove %s: %w", held.Name, err)
	}
	for i := range there.Items {
		if m := &there.Items[i]; string(m.UID) == held.UID {
			return m.Status.MayHold(), nil
		}
	}
	return false, nil
}

// standing returns whether a move may hold its project.
func standing(o client.Object) string { return fmt.Sprint(o.(*v1alpha1.StorageMove).Status.MayHold()) }

// revive lets a project be moved again if its move is gone, for example because somebody has removed its finalizer, and lets its repository
// take writes again if such a move, or an attempt that was replaced, has retired it.
func (c *Controller) revive(ctx context.Context, p *v1alpha1.Project, repo *repository.Handle) error {
	if there, err := c.moving(ctx, p, p.Status.Move); err != nil || there {
		return err
	}
	retired, err := repo.Retired()
	if err != nil {
		return err
	}
	if retired {
		err = repo.Undo(ctx, nil, func(ctx context.Context) error { return c.stays(ctx, p) })
	}
	switch {
	case errors.Is(err, git.ErrClosed), errors.Is(err, git.ErrBusy), errors.Is(err, errElsewhere):
		return frame.Progressing(moveDelay, v1alpha1.ReasonProgressing, "waiting for a move to end: %w", err)
	case errors.Is(err, syscall.EROFS): // the shard takes no writes, and still serves its repositories
		log.FromContext(ctx).Error(err, "Failed to make a repository writable that a move had retired", "storage", p.Status.Storage)
		return frame.RequeueAfter(reviveDelay)
	case err != nil:
		return fmt.Errorf("making the repository writable: %w", err)
	}
	p.Status.Move = nil
	return nil
}

// errElsewhere says that the project is not as the cache shows it.
var errElsewhere = errors.New("the project has just been moved")

// stays returns an error unless a project uses the same shard past the cache, and has no other move.
func (c *Controller) stays(ctx context.Context, p *v1alpha1.Project) error {
	var now v1alpha1.Project
	if err := c.options.Live.Get(ctx, client.ObjectKeyFromObject(p), &now); err != nil {
		return fmt.Errorf("reading the project: %w", err)
	}
	other := now.Status.Move != nil && (p.Status.Move == nil || now.Status.Move.UID != p.Status.Move.UID)
	if now.UID != p.UID || now.Status.Storage != p.Status.Storage || other {
		return errElsewhere
	}
	return nil
}

// movedBy maps a move to its project.
func movedBy(_ context.Context, obj client.Object) []reconcile.Request {
	m := obj.(*v1alpha1.StorageMove)
	if m.Status.ProjectName == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: m.Namespace, Name: m.Status.ProjectName}}}
}
