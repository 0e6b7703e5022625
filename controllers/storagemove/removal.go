package storagemove

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/internal/storagemove"
)

// maxRetry is the number of characters of the annotation that count.
const maxRetry = 64

// retry makes a move remove the former copy again if a user has requested that.
func (c *Controller) retry(_ context.Context, m *v1alpha1.StorageMove) error {
	value := m.Annotations[v1alpha1.AnnotationRetry]
	value = strings.ToValidUTF8(value[:min(len(value), maxRetry)], "")
	if value == m.Status.HandledRetry {
		return nil
	}
	m.Status.HandledRetry = value
	if value != "" && m.Status.State == v1alpha1.StorageMoveCleanupFailed {
		m.Status.State, m.Status.FinishedAt, m.Status.LastError = v1alpha1.StorageMoveReplicated, nil, ""
	}
	return nil
}

// cleanUp removes the former copy from the source.
func (c *Controller) cleanUp(_ context.Context, m *v1alpha1.StorageMove) error {
	if m.Status.State != v1alpha1.StorageMoveReplicated {
		return nil
	}
	s := c.removals.Look(m.UID)
	switch {
	case s.Phase == job.Done && s.Err == nil:
		c.end(m, v1alpha1.StorageMoveFinished, nil)
		return nil
	case s.Phase == job.Done && !errors.Is(s.Err, context.Canceled):
		c.end(m, v1alpha1.StorageMoveCleanupFailed, s.Err)
		return nil
	case s.Phase == job.Done, s.Phase == job.Idle:
		c.beginRemoval(m)
	}
	return frame.Progressing(c.settling(m), v1alpha1.ReasonProgressing, "the project uses storage %s: removing the former copy from %s once nobody reads it",
		m.Status.Destination, m.Status.Source)
}

// beginRemoval begins to remove the former copy, unless a server may not know the new one yet.
func (c *Controller) beginRemoval(m *v1alpha1.StorageMove) {
	if c.settling(m) > 0 {
		return // this must not take the place of a removal that can begin
	}
	object := m.DeepCopy()
	c.removals.begin(m, func(ctx context.Context) error { return c.remove(audit.For(ctx, object), object) })
}

// settling returns how long a move still waits until every server knows the new copy.
func (c *Controller) settling(m *v1alpha1.StorageMove) time.Duration {
	seen, _ := c.switched.LoadOrStore(m.UID, time.Now())
	return max(c.options.Limits.Settle-time.Since(seen.(time.Time)), 0)
}

// remove removes the former copy, once the reads that had begun have ended.
func (c *Controller) remove(ctx context.Context, m *v1alpha1.StorageMove) error {
	patience := c.options.Limits.Removal
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("somebody has read it for longer than %s", patience))
	defer cancel()
	p, err := c.locks.Project(ctx, m)
	if err == nil && p.Status.Storage == m.Status.Source {
		return nil // a later move has brought the project back, and has removed the former copy before
	}
	if err != nil && !errors.Is(err, storagemove.ErrGone) {
		return err
	}
	from, err := c.repositories.OfMove(ctx, m, m.Status.Source)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil // an administrator has given the shard up
	}
	if err != nil {
		return fmt.Errorf("finding the source %s: %w", m.Status.Source, err)
	}
	if err := c.repositories.Mounted(ctx, m.Status.Source); err != nil {
		return err
	}
	if err := from.RemoveRetired(ctx, by(m, m.Status.Attempt)); err != nil {
		return err
	}
	return c.disown(ctx, m, m.Status.Source)
}

// disown removes the record of a shard about a project that neither is there nor moves there.
func (c *Controller) disown(ctx context.Context, m *v1alpha1.StorageMove, storage string) error {
	p, err := c.locks.Project(ctx, m)
	if err == nil && (p.Status.Storage == storage || p.Status.Move != nil && p.Status.Move.Destination == storage) {
		return nil
	}
	if err != nil && !errors.Is(err, storagemove.ErrGone) {
		return err
	}
	return c.repositories.DisownOf(ctx, m, storage)
}

// abandon undoes what attempts have left, and releases the project. If the project uses the destination, it changes nothing and returns the
// attempt by which it does.
func (c *Controller) abandon(ctx context.Context, m *v1alpha1.StorageMove) (switched *v1alpha1.ProjectMove, err error) {
	p, err := c.locks.Change(ctx, m, func(p *v1alpha1.Project) error { return storagemove.Advance(p, m) })
	switch {
	case errors.Is(err, storagemove.ErrNotHeld):
		if p, err = c.locks.Project(ctx, m); err != nil {
			return nil, ignoreGone(err)
		}
		return storagemove.Switched(p, m), nil
	case errors.Is(err, storagemove.ErrGone):
		return c.undoWithout(ctx, m)
	case err != nil:
		return nil, err
	}
	attempt := p.Status.Move.Attempt
	if err := c.undo(ctx, m, func(ctx context.Context) error { return c.confirm(ctx, m, attempt) }); err != nil {
		return nil, err
	}
	switched, err = c.release(ctx, m, attempt)
	if errors.Is(err, storagemove.ErrNotHeld) { // another process has begun one meanwhile
		return nil, frame.Progressing(again, v1alpha1.ReasonProgressing, "waiting: %w", errUnfinished)
	}
	return switched, err
}

// release ends the hold of a move at an attempt. If another attempt has made the project use the destination, it returns that one.
func (c *Controller) release(ctx context.Context, m *v1alpha1.StorageMove, attempt int64) (switched *v1alpha1.ProjectMove, err error) {
	p, err := c.locks.Change(ctx, m, func(p *v1alpha1.Project) error { return storagemove.Release(p, m, attempt) })
	if err != nil {
		return nil, ignoreGone(err)
	}
	return storagemove.Switched(p, m), nil
}

// undoWithout is undo for a project that is gone. If an attempt has retired the source, the destination is complete, and may have been the live
// copy: it stays, and the controller of shards retains it. undoWithout returns the attempt then, so that the source is removed.
func (c *Controller) undoWithout(ctx context.Context, m *v1alpha1.StorageMove) (switched *v1alpha1.ProjectMove, err error) {
	if m.Status.RepositoryPath == "" {
		return nil, nil
	}
	from, to, err := c.both(ctx, m)
	if err == nil {
		var retired string
		if retired, err = from.RetiredBy(); err == nil && retired != "" && to.Check() == nil {
			return attemptOf(m, retired), nil
		}
	}
	if err != nil && !errors.Is(err, catalog.ErrNotFound) {
		return nil, err
	}
	return nil, c.undo(ctx, m, func(ctx context.Context) error {
		if _, err := c.locks.Project(ctx, m); !errors.Is(err, storagemove.ErrGone) {
			return errors.Join(storagemove.ErrNotHeld, err)
		}
		return nil
	})
}

// attemptOf returns the attempt of a move that has a name on the shards, or nil if the name is not of the move.
func attemptOf(m *v1alpha1.StorageMove, name string) *v1alpha1.ProjectMove {
	text, ours := strings.CutPrefix(name, string(m.UID)+"-")
	number, err := strconv.ParseInt(text, 10, 64)
	if !ours || err != nil {
		return nil
	}
	return &v1alpha1.ProjectMove{
		Name: m.Name, UID: string(m.UID), Attempt: number, Source: m.Status.Source, Destination: m.Status.Destination,
	}
}

func ignoreGone(err error) error {
	if errors.Is(err, storagemove.ErrGone) {
		return nil
	}
	return err
}

// undoPatience is the time for which an attempt to undo something waits for running writes of the source. It is tried again.
const undoPatience = time.Second

// undo makes the source live again, and removes what attempts have left at the destination. A shard that is not available keeps nobody
// waiting: the controller of projects makes a source live that appears later, and what is left at a destination is removed before the next
// move there.
func (c *Controller) undo(ctx context.Context, m *v1alpha1.StorageMove, confirm func(context.Context) error) error {
	if m.Status.RepositoryPath == "" || m.Status.Source == m.Status.Destination {
		return nil
	}
	from, err := c.repositories.OfMove(ctx, m, m.Status.Source)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if errors.Is(from.Check(), git.ErrNotFound) {
		return nil // the project took it along, or nobody knows what the copy is worth
	}
	to, err := c.repositories.OfMove(ctx, m, m.Status.Destination)
	// The shard has a record of the project before it has anything else of it. Whatever is there without a record belongs to somebody else.
	owned := false
	if err == nil {
		owned, err = c.repositories.OwnsOf(ctx, m, m.Status.Destination)
	}
	if err != nil && !errors.Is(err, catalog.ErrNotFound) {
		return err
	}
	if owned = owned && !from.Is(to); !owned {
		to = nil
	}
	// All moves share the workers, so a long write must not keep one of them.
	soon, stop := context.WithTimeoutCause(ctx, undoPatience, fmt.Errorf("they took longer than %s: %w", undoPatience, git.ErrBusy))
	defer stop()
	switch err := from.Undo(soon, to, func(context.Context) error { return confirm(ctx) }); {
	case errors.Is(err, git.ErrClosed), errors.Is(err, git.ErrBusy):
		return frame.Progressing(again, v1alpha1.ReasonProgressing, "waiting: %w", errUnfinished)
	case errors.Is(err, git.ErrStorageMissing):
		return nil
	case err != nil || !owned:
		return err
	}
	return c.disown(ctx, m, m.Status.Destination)
}

// finalize ends a move that is being deleted, and removes what it has left.
func (c *Controller) finalize(ctx context.Context, m *v1alpha1.StorageMove) error {
	if !c.copies.leave(m.UID) {
		return frame.Progressing(again, v1alpha1.ReasonDeleting, "waiting for the copying to end")
	}
	if m.Status.ProjectName == "" { // it may hold its project although its status does not say so yet
		if p, err := c.frame.Catalog.Target(ctx, m); err == nil {
			identify(m, p)
		}
	}
	if m.Status.MayHold() {
		if err := c.withdraw(ctx, m); err != nil {
			return err
		}
	}
	if m.Status.State == v1alpha1.StorageMoveReplicated || m.Status.State == v1alpha1.StorageMoveCleanupFailed {
		if err := c.removeFormer(m); err != nil {
			return err
		}
	}
	return c.recordEnd(ctx, m)
}

// identify records the project of a move. The frame does so only for a project whose groups exist.
func identify(m *v1alpha1.StorageMove, p client.Object) {
	m.Status.ProjectName = p.GetName()
	if m.Status.TargetRef == nil {
		m.Status.TargetRef = &v1alpha1.Reference{Name: p.GetName(), UID: string(p.GetUID())}
	}
}

// removeFormer removes the former copy of a move that is being deleted, or returns the state of that.
func (c *Controller) removeFormer(m *v1alpha1.StorageMove) error {
	switch s := c.removals.Look(m.UID); {
	case s.Phase == job.Done && s.Err == nil:
		m.Status.State = v1alpha1.StorageMoveFinished
		return nil
	case s.Phase == job.Done:
		c.end(m, v1alpha1.StorageMoveCleanupFailed, s.Err)
		return c.stuck(m, retryRemoval)
	case s.Phase == job.Idle:
		if rest := c.rest(m); rest > 0 {
			return c.stuck(m, rest)
		}
		c.beginRemoval(m)
	}
	if m.Status.State == v1alpha1.StorageMoveCleanupFailed {
		return c.stuck(m, retryRemoval) // the condition does not change with each attempt
	}
	return frame.Progressing(c.settling(m), v1alpha1.ReasonDeleting, "removing the former copy from storage %s", m.Status.Source)
}

// rest returns how long a move whose former copy could not be removed waits for the next attempt.
func (c *Controller) rest(m *v1alpha1.StorageMove) time.Duration {
	if m.Status.State != v1alpha1.StorageMoveCleanupFailed || m.Status.FinishedAt == nil {
		return 0
	}
	return retryRemoval - c.options.Clock.Since(m.Status.FinishedAt.Time)
}

// stuck says that a move cannot be deleted because its former copy cannot be removed, which is tried again after d.
func (c *Controller) stuck(m *v1alpha1.StorageMove, d time.Duration) error {
	return frame.WaitingFor(d, v1alpha1.ReasonCleanupFailed, "the former copy on storage %s could not be removed: %s. "+
		"If the volume is lost, remove the finalizer %s", m.Status.Source, m.Status.LastError, Finalizer)
}

// recordEnd records how a move has ended that is being deleted.
func (c *Controller) recordEnd(ctx context.Context, m *v1alpha1.StorageMove) error {
	if c.options.History == nil || m.RESTID() == 0 {
		return nil
	}
	state := m.Status.State
	if !m.Status.Ended() {
		state = v1alpha1.StorageMoveFailed
	}
	// A database that does not answer keeps neither a project nor a namespace.
	ctx, stop := context.WithTimeout(ctx, recordTime)
	defer stop()
	if err := c.options.History.End(ctx, m, state); err != nil {
		log.FromContext(ctx).Error(err, "Failed to record the end of a deleted move")
	}
	return nil
}

// recordTime limits how long the deletion of a move waits for the history.
const recordTime = 5 * time.Second

// retryRemoval is the interval at which a move that is being deleted tries to remove the former copy.
const retryRemoval = 30 * time.Second

// withdraw ends the hold of a move that is being deleted. If the project has changed its shard already, the state says so afterwards.
func (c *Controller) withdraw(ctx context.Context, m *v1alpha1.StorageMove) error {
	p, err := c.locks.Project(ctx, m)
	if err != nil && !errors.Is(err, storagemove.ErrGone) {
		return err
	}
	if err == nil {
		lock := storagemove.LockOf(p, m)
		if lock == nil {
			return nil
		}
		m.Status.Source, m.Status.Destination = lock.Source, lock.Destination
		m.Status.RepositoryPath, m.Status.ProjectID = repository.Path(p), p.RESTID()
	}
	switched, err := c.abandon(ctx, m)
	if err == nil && switched != nil {
		c.replicated(m, switched)
	}
	return err
}
