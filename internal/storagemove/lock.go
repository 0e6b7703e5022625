// Package storagemove has the rules by which moves of repositories between shards follow each other: which move a project admits, and which
// attempt of it can change the shard of the project.
package storagemove

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// Errors about the lock of a project.
var (
	// ErrGone: the project of the move no longer exists.
	ErrGone = errors.New("the project no longer exists")
	// ErrNotHeld: the move does not hold the lock of its project, or another attempt of it does.
	ErrNotHeld = errors.New("the move is no longer in charge of the project")
	// ErrNoRepository: the project has no repository yet.
	ErrNoRepository = errors.New("the project has no repository yet")
	// ErrSwitched: the move has changed the shard of the project already.
	ErrSwitched = errors.New("the project has been moved already")
	// ErrLeaving: the project is being deleted.
	ErrLeaving = errors.New("the project is being deleted")
)

// HeldError says that another move of the project has not ended.
type HeldError struct {
	// By is the name of the other StorageMove.
	By string
}

func (e *HeldError) Error() string {
	return "StorageMove " + e.By + " of the same project has not ended"
}

// Hold makes a move the only one of its project, and plans the shards. It does nothing if the move is that already. The error is a
// *HeldError, ErrSwitched, ErrNoRepository or ErrLeaving if the project does not admit it.
func Hold(p *v1alpha1.Project, m *v1alpha1.StorageMove, destination string) error {
	switch held := p.Status.Move; {
	case Held(p, m):
		return nil
	case held != nil:
		return &HeldError{held.Name}
	case Switched(p, m) != nil:
		return ErrSwitched
	case !p.DeletionTimestamp.IsZero():
		return ErrLeaving
	case p.Status.Storage == "" || p.Status.RefsChecksum == "":
		return ErrNoRepository
	}
	p.Status.Move = &v1alpha1.ProjectMove{Name: m.Name, UID: string(m.UID), Source: p.Status.Storage, Destination: destination}
	return nil
}

// Choose returns the shard to which a project moves that names none: by weight, and never the present one. It is empty if no other shard has a
// weight above 0.
func Choose(ready []*v1alpha1.RepositoryStorage, p *v1alpha1.Project) string {
	others := slices.DeleteFunc(slices.Clone(ready), func(s *v1alpha1.RepositoryStorage) bool { return s.Name == p.Status.Storage })
	if chosen := repository.Choose(others, p); chosen != nil {
		return chosen.Name
	}
	return ""
}

// Schedule puts a move into the state scheduled that holds a project, or has held it, by a lock.
func Schedule(m *v1alpha1.StorageMove, p *v1alpha1.Project, lock *v1alpha1.ProjectMove) {
	m.Status.State, m.Status.RepositoryPath = v1alpha1.StorageMoveScheduled, repository.Path(p)
	m.Status.ProjectName, m.Status.ProjectID = p.Name, p.RESTID()
	m.Status.Source, m.Status.Destination = lock.Source, lock.Destination
}

// Advance begins the next attempt of a move. The earlier attempts can no longer change the shard from then on.
func Advance(p *v1alpha1.Project, m *v1alpha1.StorageMove) error {
	if !Held(p, m) {
		return ErrNotHeld
	}
	next := *p.Status.Move
	next.Attempt++
	p.Status.Move = &next
	return nil
}

// Switch changes the shard of a project, and ends the move's hold of it. The error is ErrNotHeld for any attempt except the last.
func Switch(p *v1alpha1.Project, m *v1alpha1.StorageMove, attempt int64) error {
	switch {
	case !Holds(p, m, attempt) || p.Status.Storage != p.Status.Move.Source:
		return ErrNotHeld
	case !p.DeletionTimestamp.IsZero():
		return ErrLeaving
	}
	p.Status.Storage, p.Status.LastMove, p.Status.Move = p.Status.Move.Destination, p.Status.Move, nil
	return nil
}

// Release ends a move's hold of its project at an attempt, without changing the shard. It does nothing if the move does not hold the project.
// The error is ErrNotHeld if another attempt of the move does, which perhaps runs.
func Release(p *v1alpha1.Project, m *v1alpha1.StorageMove, attempt int64) error {
	switch {
	case Holds(p, m, attempt):
		p.Status.Move = nil
	case Held(p, m):
		return ErrNotHeld
	}
	return nil
}

// Blocking returns the move among all moves of a project that another one to a destination must wait for, or nil: one that runs, or does not
// show yet how it has ended, or still removes its former copy from the destination. The project must be current; what is known of the moves
// can be old, as in a process that was paused.
func Blocking(all []*v1alpha1.StorageMove, p *v1alpha1.Project, m *v1alpha1.StorageMove, destination string) *v1alpha1.StorageMove {
	for _, o := range all {
		leaves := o.Status.State == v1alpha1.StorageMoveReplicated && o.Status.Source == destination
		if by := Switched(p, o); by != nil && by.Source == destination && !o.Status.Ended() {
			leaves = true
		}
		if o.UID != m.UID && (o.Status.Running() || leaves) {
			return o
		}
	}
	return nil
}

// Switched returns the attempt of a move by which its project came to its shard, or nil.
func Switched(p *v1alpha1.Project, m *v1alpha1.StorageMove) *v1alpha1.ProjectMove {
	if last := p.Status.LastMove; last != nil && last.UID == string(m.UID) {
		return last
	}
	return nil
}

// LockOf returns the lock by which a move holds a project, or has changed its shard, or nil.
func LockOf(p *v1alpha1.Project, m *v1alpha1.StorageMove) *v1alpha1.ProjectMove {
	if Held(p, m) {
		return p.Status.Move
	}
	return Switched(p, m)
}

// Held reports whether a move is the one of its project, at any attempt.
func Held(p *v1alpha1.Project, m *v1alpha1.StorageMove) bool {
	return p.Status.Move != nil && p.Status.Move.UID == string(m.UID)
}

// Holds reports whether a move is the one of its project at an attempt.
func Holds(p *v1alpha1.Project, m *v1alpha1.StorageMove, attempt int64) bool {
	return Held(p, m) && p.Status.Move.Attempt == attempt
}

// Locks reads and writes the locks of projects.
type Locks struct {
	// Client writes projects.
	Client client.Client
	// Live reads projects past the cache.
	Live client.Reader
}

// Project reads the project of a move past the cache. The error is ErrGone if it no longer exists.
func (l Locks) Project(ctx context.Context, m *v1alpha1.StorageMove) (*v1alpha1.Project, error) {
	ref := m.Status.TargetRef
	if ref == nil || m.Status.ProjectName == "" {
		return nil, fmt.Errorf("reading the project of StorageMove %s: it is not known which one that is: %w", m.Name, ErrGone)
	}
	var p v1alpha1.Project
	err := l.Live.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: m.Status.ProjectName}, &p)
	if apierrors.IsNotFound(err) || err == nil && string(p.UID) != ref.UID {
		return nil, ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("reading the project of StorageMove %s: %w", m.Name, err)
	}
	return &p, nil
}

// contention is the backoff after a conflict with another writer of a project: ten attempts within three seconds.
var contention = wait.Backoff{Steps: 10, Duration: 5 * time.Millisecond, Factor: 2, Jitter: 0.5}

// Change applies a change to the project of a move as it is now, unless the change fails. It is called again with the new state if another
// client writes the project at the same time. It returns the project as it was written.
func (l Locks) Change(ctx context.Context, m *v1alpha1.StorageMove, change func(*v1alpha1.Project) error) (p *v1alpha1.Project, err error) {
	err = retry.RetryOnConflict(contention, func() error {
		if p, err = l.Project(ctx, m); err != nil {
			return err
		}
		before := p.DeepCopy()
		if err := change(p); err != nil {
			return err
		}
		// The optimistic lock prevents a process that was paused from writing what was decided long ago.
		return l.Client.Status().Patch(ctx, p, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		return nil, fmt.Errorf("changing the move of project %s/%s: %w", m.Namespace, m.Status.ProjectName, err)
	}
	return p, nil
}
