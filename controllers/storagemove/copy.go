package storagemove

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/relocate"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/internal/storagemove"
)

const (
	// progressInterval is the interval at which the progress is shown, and again that at which something is looked at that no watch reports.
	progressInterval = 2 * time.Second
	again            = time.Second
	// maxAttempts is the maximum number of attempts of one move. Only a process that dies causes another one.
	maxAttempts = 10
)

// errUnfinished says that an earlier attempt, perhaps of another process, still works on the repository.
var errUnfinished = errors.New("an earlier attempt, or a write to the repository, has not ended yet")

// copy copies the repositories of a scheduled move, and reports how that has ended.
func (c *Controller) copy(ctx context.Context, m *v1alpha1.StorageMove) error {
	if !m.Status.Running() {
		c.copies.forget(m.UID)
		return nil
	}
	if m.Status.Source == m.Status.Destination {
		return c.stay(ctx, m)
	}
	s := c.copies.Look(m.UID)
	if s.Phase == job.Waiting || s.Phase == job.Running {
		return c.copying(ctx, m, s)
	}
	if s.Phase == job.Done {
		c.show(m)
		switch {
		case errors.Is(s.Err, errUnfinished): // the same attempt goes on
			return frame.Progressing(again, v1alpha1.ReasonProgressing, "waiting: %w", s.Err)
		case s.Err != nil && !errors.Is(s.Err, relocate.ErrUndecided) && !errors.Is(s.Err, storagemove.ErrNotHeld) && !errors.Is(s.Err, context.Canceled):
			c.copies.fail(m.UID, s.Err)
		default:
			c.copies.forget(m.UID)
		}
	}
	if cause := c.copies.failure(m.UID); cause != nil {
		return c.concede(ctx, m, c.copies.numbered(m.UID), cause)
	}
	return c.resume(ctx, m)
}

// concede is fail for an attempt that has ended in this process, and has undone what it did unless it could not. So there is no need to close
// the source once more, which a long write can delay.
func (c *Controller) concede(ctx context.Context, m *v1alpha1.StorageMove, attempt int64, cause error) error {
	from, to, err := c.both(ctx, m)
	if err != nil {
		return c.fail(ctx, m, cause)
	}
	if retired, err := from.Retired(); err != nil || retired || from.Check() != nil || !to.Untouched() {
		return c.fail(ctx, m, cause)
	}
	switched, err := c.release(ctx, m, attempt)
	switch {
	case errors.Is(err, storagemove.ErrNotHeld): // the number of the attempt was never known here
		return c.fail(ctx, m, cause)
	case err != nil:
		return err
	case switched != nil:
		c.replicated(m, switched)
		return nil
	}
	if err := c.disown(ctx, m, m.Status.Destination); err != nil {
		log.FromContext(ctx).Error(err, "Failed to remove the record of a project from the destination of a move", "storage", m.Status.Destination)
	}
	c.end(m, v1alpha1.StorageMoveFailed, cause)
	return nil
}

// stay ends a move to the shard that the project is on.
func (c *Controller) stay(ctx context.Context, m *v1alpha1.StorageMove) error {
	_, err := c.locks.Change(ctx, m, func(p *v1alpha1.Project) error { return storagemove.Release(p, m, 0) })
	if err := ignoreGone(err); err != nil {
		return err
	}
	c.end(m, v1alpha1.StorageMoveFinished, nil)
	return nil
}

// copying shows the progress of an attempt. It ends the attempt if the project is being deleted.
func (c *Controller) copying(ctx context.Context, m *v1alpha1.StorageMove, s job.State) error {
	p, err := c.frame.Catalog.Target(ctx, m)
	if errors.Is(err, catalog.ErrNotFound) || err == nil && !p.GetDeletionTimestamp().IsZero() {
		if !c.copies.leave(m.UID) {
			return frame.Progressing(again, v1alpha1.ReasonProgressing, "the project is being deleted: waiting for the copying to end")
		}
		return c.resume(ctx, m)
	}
	if err != nil {
		return err
	}
	if s.Phase == job.Waiting {
		return frame.Progressing(0, v1alpha1.ReasonProgressing, "waiting for other moves to end")
	}
	now := c.show(m)
	if m.Status.State != v1alpha1.StorageMoveStarted {
		c.tell(m, "Started", "copying the repository from storage %s to %s", m.Status.Source, m.Status.Destination)
	}
	m.Status.State, m.Status.Phase = v1alpha1.StorageMoveStarted, string(now.Phase)
	if m.Status.StartedAt == nil {
		m.Status.StartedAt = ptr.To(metav1.NewTime(s.Began.Truncate(time.Second)))
	}
	return frame.Progressing(progressInterval, v1alpha1.ReasonProgressing, "moving from storage %s to %s: %s of %s",
		m.Status.Source, m.Status.Destination, git.FormatBytes(now.Bytes), git.FormatBytes(now.TotalBytes))
}

// show writes into the status of a move what its last attempt in this process has copied.
func (c *Controller) show(m *v1alpha1.StorageMove) relocate.Progress {
	now := c.copies.reported(m.UID)
	m.Status.CopiedBytes, m.Status.TotalBytes, m.Status.CopiedObjects = now.Bytes, now.TotalBytes, now.Objects
	return now
}

// resume decides by the project as it is now how a move without a running attempt goes on.
func (c *Controller) resume(ctx context.Context, m *v1alpha1.StorageMove) error {
	p, err := c.locks.Project(ctx, m)
	if errors.Is(err, storagemove.ErrGone) {
		return c.fail(ctx, m, err)
	}
	if err != nil {
		return err
	}
	switch switched := storagemove.Switched(p, m); {
	case switched != nil:
		c.replicated(m, switched)
		return nil
	case m.Status.LastError != "", !storagemove.Held(p, m):
		return c.fail(ctx, m, errors.New("it was interrupted"))
	case !p.DeletionTimestamp.IsZero():
		return c.fail(ctx, m, storagemove.ErrLeaving)
	case p.Status.Move.Attempt >= maxAttempts:
		return c.fail(ctx, m, fmt.Errorf("it was interrupted %d times", maxAttempts))
	}
	object := m.DeepCopy()
	s := c.copies.begin(m, func(ctx context.Context) error { return c.attempt(audit.For(ctx, object), object) })
	return c.copying(ctx, m, s)
}

// fail undoes what attempts have left, releases the project, and puts the move into the state failed, unless the project uses the destination
// by now.
func (c *Controller) fail(ctx context.Context, m *v1alpha1.StorageMove, cause error) error {
	if m.Status.LastError == "" { // it is still known if that must be tried again
		m.Status.LastError = frame.Sanitise(words(cause))
	}
	switched, err := c.abandon(ctx, m)
	if err != nil {
		return err
	}
	if switched != nil {
		c.replicated(m, switched)
		return nil
	}
	c.end(m, v1alpha1.StorageMoveFailed, errors.New(m.Status.LastError)) //nolint:err113 // the text of an earlier error
	return nil
}

// replicated records that the project uses the destination.
func (c *Controller) replicated(m *v1alpha1.StorageMove, by *v1alpha1.ProjectMove) {
	m.Status.State, m.Status.Attempt, m.Status.Phase, m.Status.LastError = v1alpha1.StorageMoveReplicated, by.Attempt, "", ""
	c.tell(m, "Replicated", "the project uses storage %s", m.Status.Destination)
	if m.Status.StartedAt == nil {
		m.Status.StartedAt = ptr.To(metav1.NewTime(c.options.Clock.Now().Truncate(time.Second)))
	}
}

// attempt copies the repositories, and makes the project use the copies. An attempt that had to wait goes on with its number.
func (c *Controller) attempt(ctx context.Context, m *v1alpha1.StorageMove) error {
	number := c.copies.numbered(m.UID)
	p, err := c.locks.Project(ctx, m)
	if err == nil && (number == 0 || !storagemove.Holds(p, m, number)) {
		p, err = c.locks.Change(ctx, m, func(p *v1alpha1.Project) error { return storagemove.Advance(p, m) })
	}
	if err != nil {
		return err
	}
	number = p.Status.Move.Attempt
	c.copies.number(m.UID, number)
	from, to, err := c.both(ctx, m)
	if err != nil {
		return err
	}
	if err := c.admissible(ctx, m, from, to); err != nil {
		return err
	}
	if err := c.repositories.OwnAlso(ctx, c.options.Live, p, m.Status.Destination); err != nil {
		return err
	}
	if err := c.clear(ctx, m, from, to, number); err != nil {
		return err
	}
	count := c.meters.attempt()
	return from.Relocate(ctx, to, relocate.Options{
		By: by(m, number), Drain: c.options.Limits.Drain,
		Report:  func(p relocate.Progress) { count(p); c.copies.report(m.UID, p) },
		Confirm: func(ctx context.Context) error { return c.confirm(ctx, m, number) },
		Switch:  func(ctx context.Context) error { return c.switchOver(ctx, m, number) },
	})
}

// admissible returns an error unless the destination can take the project. A REST server that schedules a move does not look at the volumes, and
// they can have changed since.
func (c *Controller) admissible(ctx context.Context, m *v1alpha1.StorageMove, from, to *repository.Handle) error {
	s, err := catalog.Get[*v1alpha1.RepositoryStorage](ctx, c.frame.Catalog, "", m.Status.Destination)
	switch {
	case err != nil:
		return fmt.Errorf("finding the destination %s: %w", m.Status.Destination, err)
	case !frame.InForce(s):
		return unready(s)
	case from.Is(to):
		return fmt.Errorf("the RepositoryStorages %s and %s have the same directory: delete one of them", m.Status.Source, m.Status.Destination)
	}
	return nil
}

// confirm returns an error unless an attempt is still in charge of the project.
func (c *Controller) confirm(ctx context.Context, m *v1alpha1.StorageMove, attempt int64) error {
	p, err := c.locks.Project(ctx, m)
	if err == nil && (!storagemove.Holds(p, m, attempt) || p.Status.Storage != m.Status.Source) {
		err = storagemove.ErrNotHeld
	}
	return err
}

// both returns the repositories at the source and at the destination.
func (c *Controller) both(ctx context.Context, m *v1alpha1.StorageMove) (from, to *repository.Handle, err error) {
	if from, err = c.repositories.OfMove(ctx, m, m.Status.Source); err != nil {
		return nil, nil, fmt.Errorf("finding the source %s: %w", m.Status.Source, err)
	}
	if to, err = c.repositories.OfMove(ctx, m, m.Status.Destination); err != nil {
		return nil, nil, fmt.Errorf("finding the destination %s: %w", m.Status.Destination, err)
	}
	return from, to, nil
}

// clear removes what earlier attempts, and earlier moves, have left.
func (c *Controller) clear(ctx context.Context, m *v1alpha1.StorageMove, from, to *repository.Handle, attempt int64) error {
	retired, err := from.Retired()
	if err != nil || to.Untouched() && !retired {
		return err
	}
	if err := c.confirm(ctx, m, attempt); err != nil {
		return err
	}
	limited, stop := context.WithTimeoutCause(ctx, vacation, errors.New("the destination still has a former copy that somebody reads"))
	defer stop()
	confirm := func(ctx context.Context) error { return c.confirm(ctx, m, attempt) }
	if err := to.Vacate(limited, confirm); err != nil {
		return err
	}
	err = from.Undo(ctx, to, confirm)
	if errors.Is(err, git.ErrClosed) || errors.Is(err, git.ErrBusy) {
		return fmt.Errorf("%w: %w", errUnfinished, err)
	}
	return err
}

// vacation limits how long an attempt waits for the readers of a former copy at the destination.
const vacation = time.Minute

// switchTime limits how long an attempt tries to change the shard of the project, because nobody can write to it meanwhile.
const switchTime = time.Minute

// switchOver changes the shard of the project. If it cannot find out whether that has happened, the error is relocate.ErrUndecided.
func (c *Controller) switchOver(ctx context.Context, m *v1alpha1.StorageMove, attempt int64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), switchTime)
	defer cancel()
	unanswered := false
	for {
		_, err := c.locks.Change(ctx, m, func(p *v1alpha1.Project) error { return storagemove.Switch(p, m, attempt) })
		if err == nil {
			return nil
		}
		unanswered = unanswered || !definite(err)
		switch p, readErr := c.locks.Project(ctx, m); {
		case errors.Is(readErr, storagemove.ErrGone) && unanswered:
			return fmt.Errorf("changing the storage of the project: %w: %w", readErr, relocate.ErrUndecided)
		case errors.Is(readErr, storagemove.ErrGone):
			return readErr
		case readErr != nil:
		case storagemove.Switched(p, m) != nil && storagemove.Switched(p, m).Attempt == attempt:
			return nil
		case !storagemove.Holds(p, m, attempt), !p.DeletionTimestamp.IsZero():
			return err // it never can change the shard any more
		}
		// A request without an answer may still be carried out, and a conflict means that somebody else wrote.
		select {
		case <-time.After(switchPause):
		case <-ctx.Done():
			return fmt.Errorf("changing the storage of the project: %w: %w", err, relocate.ErrUndecided)
		}
	}
}

// definite reports whether an error says that a write was not carried out and never will be.
func definite(err error) bool {
	return errors.Is(err, storagemove.ErrNotHeld) || errors.Is(err, storagemove.ErrLeaving) || errors.Is(err, storagemove.ErrGone) ||
		apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err)
}

const switchPause = 200 * time.Millisecond

// by returns the name of an attempt on the shards.
func by(m *v1alpha1.StorageMove, attempt int64) string { return fmt.Sprintf("%s-%d", m.UID, attempt) }
