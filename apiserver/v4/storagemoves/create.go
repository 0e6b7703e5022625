package storagemoves

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/internal/storagemove"
)

// kept is the time for which objects of moves requested over REST are kept after the moves have ended. The history is kept forever.
const kept = 24 * time.Hour

type createRequest struct {
	Project     string                    `param:"id" doc:"Id or full path of the project."`
	Destination endpoint.Optional[string] `param:"destination_storage_name" doc:"Name of the RepositoryStorage to move to. Defaults to a different one from the present one, by weight."`
}

func (f *Family) create(ctx context.Context, _ auth.Instance, r *createRequest) (Move, error) {
	scope, err := f.project(ctx, r.Project)
	if err != nil {
		return Move{}, err
	}
	audit.From(ctx).About(scope.Project, scope.Path())
	p, err := f.Guard.Repository(ctx, scope.Project)
	if err != nil {
		return Move{}, err
	}
	destination, err := f.destination(ctx, p, r.Destination.Or(""))
	if err != nil {
		return Move{}, err
	}
	m := newMove(p, rand.Text())
	m.Spec.Destination = destination
	others, err := catalog.ListForProject[*v1alpha1.StorageMove](ctx, f.Catalog, p)
	if err != nil {
		return Move{}, err
	}
	if storagemove.Blocking(others, p, m, destination) != nil {
		return Move{}, readOnly
	}
	// restWrites protects declared settings. A move is not one.
	if err := f.moves.EnsureUnasked(ctx, m, f.schedule(m, p, others)); err != nil {
		return Move{}, err
	}
	recorded := storagemove.Of(m, scope)
	recorded.State = v1alpha1.StorageMoveScheduled // it may have begun by now
	if err := f.Activity.Moves.Begin(ctx, recorded); err != nil {
		return Move{}, err
	}
	return f.showIn(ctx)(recorded), nil
}

// newMove returns a move of a project. Its name is derived from the request.
func newMove(p *v1alpha1.Project, request string) *v1alpha1.StorageMove {
	return &v1alpha1.StorageMove{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: v1alpha1.NaturalName(p.Name, string(p.UID), request)},
		Spec:       v1alpha1.StorageMoveSpec{ProjectRef: catalog.ReferNamed(p), TTLAfterFinished: &metav1.Duration{Duration: kept}},
	}
}

// destination returns the shard to move to.
func (f *Family) destination(ctx context.Context, p *v1alpha1.Project, named string) (string, error) {
	if named != "" {
		s, err := f.shard(ctx, named)
		switch {
		case err != nil:
			return "", err
		case s == nil || !s.DeletionTimestamp.IsZero():
			return "", notInList
		case named == p.Status.Storage:
			return named, nil // already there
		}
		switch admits, err := repository.Admits(ctx, f.Catalog, s, f.Namespace, p.Namespace); {
		case err != nil:
			return "", err
		case !admits:
			return "", notAdmitted
		case !frame.InForce(s):
			return "", notReady
		}
		return named, nil
	}
	admitting, err := repository.Admitting(ctx, f.Catalog, f.Namespace, p.Namespace)
	if err != nil {
		return "", err
	}
	ready := frame.AllInForce(admitting)
	if chosen := storagemove.Choose(ready, p); chosen != "" {
		return chosen, nil
	}
	if chosen := repository.Choose(ready, p); chosen != nil { // the current shard is accepted, as if the caller had named it
		return chosen.Name, nil
	}
	return "", endpoint.Invalid(map[string][]string{"destination_storage_name": {"can't be chosen: no storage with a weight above 0 is ready and admits the namespace of the project"}})
}

var (
	notInList   = endpoint.Invalid(map[string][]string{"destination_storage_name": {"is not included in the list"}})
	notReady    = endpoint.Invalid(map[string][]string{"destination_storage_name": {"is not ready"}})
	notAdmitted = endpoint.Invalid(map[string][]string{"destination_storage_name": {"does not admit the namespace of the project"}})
)

// schedule makes a new move hold its project, so that the response can say that it is scheduled. It discards the new move if another move
// holds the project or blocks the new one.
func (f *Family) schedule(m *v1alpha1.StorageMove, of *v1alpha1.Project, others []*v1alpha1.StorageMove) store.Then {
	return func(ctx context.Context, w store.Unasked) error {
		p := of.DeepCopy()
		var refused error
		err := w.Observe(ctx, p, func() {
			if o := storagemove.Blocking(others, p, m, m.Spec.Destination); o != nil {
				refused = &storagemove.HeldError{By: o.Name}
			} else {
				refused = storagemove.Hold(p, m, m.Spec.Destination)
			}
		})
		if err == nil {
			err = refused
		}
		if errors.Is(err, storagemove.ErrSwitched) {
			return nil // the controller was faster
		}
		if err != nil {
			// The client may have disconnected after the move was scheduled.
			undo := context.WithoutCancel(ctx)
			released := w.Observe(undo, p, func() { _ = storagemove.Release(p, m, 0) })
			return errors.Join(unscheduled(err), released, w.Discard(undo, m))
		}
		lock := p.Status.Move
		err = w.Observe(ctx, m, func() {
			if m.Status.State == "" || m.Status.State == v1alpha1.StorageMoveInitial {
				storagemove.Schedule(m, p, lock)
			}
		})
		if err == nil && m.Status.Ended() { // the controller was faster, and has released the project before
			err = w.Observe(ctx, p, func() { _ = storagemove.Release(p, m, 0) })
		}
		return err
	}
}

var readOnly = endpoint.Invalid(map[string][]string{"project": {"is read-only"}})

// unscheduled returns the response for a project that does not admit a move.
func unscheduled(err error) error {
	switch {
	case errors.As(err, new(*storagemove.HeldError)), errors.Is(err, storagemove.ErrLeaving):
		return readOnly
	case errors.Is(err, storagemove.ErrNoRepository):
		return endpoint.Invalid(map[string][]string{"project": {"has no repository yet"}})
	default:
		return err
	}
}
