package store

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/internal/declare"
)

// Then writes what belongs to an object that was created.
type Then func(ctx context.Context, w Unasked) error

// Unasked writes what no caller requested: objects and values that belong to an object that a caller creates, such as its Secret or its
// status.
type Unasked interface {
	Create(ctx context.Context, obj client.Object) error
	// Ensure creates an object unless it exists, and reads it in either case.
	Ensure(ctx context.Context, obj client.Object) error
	// Update changes an object with mutate, which is called again if another writer changed the object at the same time.
	Update(ctx context.Context, obj client.Object, mutate func() error) error
	// Observe writes a status that a controller would also write, if the answer cannot wait for the controller.
	Observe(ctx context.Context, obj client.Object, mutate func()) error
	// Discard removes what was created, even if the client has disconnected.
	Discard(ctx context.Context, objects ...client.Object) error
}

// UpdateUnasked makes a change to an object that follows from a caller's change elsewhere, and returns the object. An object that restWrites
// protects from REST callers, or that is gone, stays as it is.
func (s *Store[K, T]) UpdateUnasked(ctx context.Context, found T, change func(T) error) (T, error) {
	if err := s.policy.allow(ctx, found); err != nil {
		return found, s.unlessKept(err)
	}
	obj, err := s.changed(ctx, found, change)
	if err != nil {
		return found, s.unlessKept(err)
	}
	return obj, nil
}

// DeleteUnasked is UpdateUnasked for a removal.
func (s *Store[K, T]) DeleteUnasked(ctx context.Context, found T) error {
	err := s.policy.allow(ctx, found)
	if err == nil {
		err = s.writer.Delete(ctx, found.DeepCopyObject().(T))
	}
	return s.unlessKept(err)
}

// SweepUnasked removes an object that was created over REST and that has not been declared since, and reports whether it is gone. Every other
// object stays.
func (s *Store[K, T]) SweepUnasked(ctx context.Context, found T) (gone bool, err error) {
	gone, err = s.writer.DeleteMadeHere(ctx, found.DeepCopyObject().(T))
	return gone, answer(err, s.missing)
}

// CheckUnasked returns an error if restWrites protects an object from REST callers, for operations that must be done completely or not at
// all.
func (s *Store[K, T]) CheckUnasked(ctx context.Context, found T) error {
	return answer(s.policy.allow(ctx, found), s.missing)
}

// EnsureUnasked creates an object that a caller needs for their request, unless it exists, and reads it in either case. It then calls then.
func (s *Store[K, T]) EnsureUnasked(ctx context.Context, obj T, then ...Then) error {
	err := s.writer.Ensure(ctx, obj)
	for _, complete := range then {
		if err == nil {
			err = complete(ctx, s.writer)
		}
	}
	return answer(err, s.missing)
}

// CompleteUnasked writes what belongs to an object that Update has changed, such as its Secret.
func (s *Store[K, T]) CompleteUnasked(ctx context.Context, then Then) error {
	return answer(then(ctx, s.writer), s.missing)
}

// unlessKept returns the answer to an error, or nil if the object stays as it is because restWrites protects it or because it is gone.
func (s *Store[K, T]) unlessKept(err error) error {
	if errors.Is(err, declare.ErrGone) || errors.As(err, new(*refusedError)) {
		return nil
	}
	return answer(err, s.missing)
}
