package storagemove

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/internal/storagemove"
)

// schedule makes a move the only one of its project, once the project and the destination are ready.
func (c *Controller) schedule(ctx context.Context, m *v1alpha1.StorageMove) error {
	if m.Status.State != v1alpha1.StorageMoveInitial {
		return nil
	}
	p, err := c.project(ctx, m)
	if errors.Is(err, storagemove.ErrGone) {
		c.end(m, v1alpha1.StorageMoveFailed, err)
		return nil
	}
	if err != nil {
		return err
	}
	if begun, err := c.begun(ctx, m); begun || err != nil {
		return err
	}
	if err := c.unused(ctx, m); err != nil {
		return err
	}
	if m.Spec.Suspend {
		return frame.Settled(v1alpha1.ReasonSuspended, "nothing is moved: spec.suspend is true")
	}
	destination, err := c.destination(ctx, m, p)
	if err != nil {
		return err
	}
	all, err := catalog.ListForProject[*v1alpha1.StorageMove](ctx, c.frame.Catalog, p)
	if err != nil {
		return err
	}
	held, err := c.locks.Change(ctx, m, func(p *v1alpha1.Project) error {
		if o := storagemove.Blocking(all, p, m, destination); o != nil {
			return &storagemove.HeldError{By: o.Name}
		}
		return storagemove.Hold(p, m, destination)
	})
	var other *storagemove.HeldError
	switch {
	case errors.As(err, &other):
		return frame.Progressing(progressInterval, v1alpha1.ReasonProgressing, "waiting: %w", other)
	case errors.Is(err, storagemove.ErrNoRepository):
		return frame.Progressing(0, v1alpha1.ReasonReferenceNotReady, "projectRef: the project %s has no repository yet", p.Name)
	case errors.Is(err, storagemove.ErrLeaving), errors.Is(err, storagemove.ErrGone):
		return frame.Waiting(v1alpha1.ReasonReferenceNotFound, "projectRef: the project %s is being deleted", p.Name)
	case err != nil:
		return err
	}
	return c.scheduledBy(ctx, m, held, held.Status.Move)
}

// scheduledBy stores that a move holds its project, or has held it, before anything is copied. That fails if it was decided from an old state of
// the move, in a process that was paused, and the move has ended since.
func (c *Controller) scheduledBy(ctx context.Context, m *v1alpha1.StorageMove, p *v1alpha1.Project, lock *v1alpha1.ProjectMove) error {
	storagemove.Schedule(m, p, lock)
	written, before := m.DeepCopy(), m.DeepCopy()
	before.Status = v1alpha1.StorageMoveStatus{} // the patch also has the project, which this reconcile has found out
	if err := c.frame.Client.Status().Patch(ctx, written, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("recording that the move is scheduled: %w", err)
	}
	m.ResourceVersion = written.ResourceVersion
	return nil
}

// begun puts a move that holds its project, or has changed its shard, into the state that follows from that. A process may have ended before it
// wrote the state, and the cache may not show it yet.
func (c *Controller) begun(ctx context.Context, m *v1alpha1.StorageMove) (bool, error) {
	p, err := c.locks.Project(ctx, m)
	if err != nil {
		return false, ignoreGone(err)
	}
	lock := storagemove.LockOf(p, m)
	if lock == nil {
		return false, nil
	}
	return true, c.scheduledBy(ctx, m, p, lock)
}

// unused returns an error if the history has an earlier move with the id of a move. The earlier one's object may be gone.
func (c *Controller) unused(ctx context.Context, m *v1alpha1.StorageMove) error {
	if c.options.History == nil {
		return nil
	}
	id := m.RESTID()
	switch earlier, err := c.options.History.Get(ctx, id); {
	case errors.Is(err, storagemove.ErrNotRecorded), err == nil && earlier.UID == m.UID:
		return nil
	case err != nil:
		return err
	}
	m.Status.ID = 0 // otherwise the frame would put the id back when somebody drops it
	return frame.Stalled(v1alpha1.ReasonAlreadyExists, "id %d belongs to an earlier StorageMove, which the history has; omit spec.id to get a free one", id)
}

// project returns the project of a move that was not scheduled yet. The error is storagemove.ErrGone if the project that the move has found
// earlier no longer exists.
func (c *Controller) project(ctx context.Context, m *v1alpha1.StorageMove) (*v1alpha1.Project, error) {
	target, err := c.frame.Catalog.Target(ctx, m)
	if errors.Is(err, catalog.ErrNotFound) && m.Status.ProjectName != "" {
		if _, gone := c.locks.Project(ctx, m); errors.Is(gone, storagemove.ErrGone) {
			return nil, gone
		}
	}
	if err != nil {
		return nil, frame.Unresolved("projectRef", err)
	}
	p := target.(*v1alpha1.Project)
	identify(m, p)
	if p.Status.Storage == "" || p.Status.RefsChecksum == "" {
		return nil, frame.Progressing(0, v1alpha1.ReasonReferenceNotReady, "projectRef: the project %s has no repository yet", p.Name)
	}
	return p, nil
}

// destination returns the shard to which a move leads, which must be ready.
func (c *Controller) destination(ctx context.Context, m *v1alpha1.StorageMove, p *v1alpha1.Project) (string, error) {
	if m.Spec.Destination != "" {
		s, err := catalog.Get[*v1alpha1.RepositoryStorage](ctx, c.frame.Catalog, "", m.Spec.Destination)
		if err != nil {
			return "", frame.Unresolved("destination", err)
		}
		if s.Name == p.Status.Storage {
			return s.Name, nil // nothing is moved
		}
		switch admits, err := repository.Admits(ctx, c.frame.Catalog, s, c.options.Namespace, p.Namespace); {
		case err != nil:
			return "", err
		case !admits:
			return "", frame.Waiting(v1alpha1.ReasonReferenceNotAllowed, "destination: RepositoryStorage %s does not admit the namespace %s in its "+
				"allowedNamespaces: admit it, or set another destination", s.Name, p.Namespace)
		case !frame.InForce(s):
			return "", unready(s)
		}
		return s.Name, nil
	}
	admitting, err := repository.Admitting(ctx, c.frame.Catalog, c.options.Namespace, p.Namespace)
	if err != nil {
		return "", err
	}
	if chosen := storagemove.Choose(frame.AllInForce(admitting), p); chosen != "" {
		return chosen, nil
	}
	return "", frame.Waiting(v1alpha1.ReasonStorageUnavailable, "no other RepositoryStorage with a weight above 0 is ready and admits the namespace %s: "+
		"declare one, or set destination", p.Namespace)
}

// unready says that a destination is not ready.
func unready(s *v1alpha1.RepositoryStorage) error {
	return frame.Waiting(v1alpha1.ReasonReferenceNotReady, "destination: RepositoryStorage %s is not ready", s.Name)
}
