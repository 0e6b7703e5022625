package store

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/declare"
)

// Then writes what goes with an object that was made.
type Then func(ctx context.Context, w Unasked) error

// Unasked writes what no caller asks for: what goes with an object that one makes, such as its Secret or its status.
type Unasked interface {
	Create(ctx context.Context, obj client.Object) error
	// Ensure makes an object unless it is there, and reads it in either case.
	Ensure(ctx context.Context, obj client.Object) error
	// Update changes an object as mutate says, which is called again when somebody else was faster.
	Update(ctx context.Context, obj client.Object, mutate func() error) error
	// Observe writes into the status what a controller would come to as well, where an answer cannot wait for it.
	Observe(ctx context.Context, obj client.Object, mutate func()) error
	// Discard takes back what was made, be the client there or not.
	Discard(ctx context.Context, objects ...client.Object) error
}

// UpdateUnasked changes an object as follows from what a caller has asked for elsewhere, and returns it. What its project keeps from REST
// callers, and what has gone, stays as it is.
func (s *Store[K, T]) UpdateUnasked(ctx context.Context, in catalog.Scope, found T, change func(T) error) (T, error) {
	if err := s.allow(ctx, in, found); err != nil {
		return found, s.unlessKept(err)
	}
	obj, err := s.changed(ctx, found, change)
	if err != nil {
		return found, s.unlessKept(err)
	}
	return obj, nil
}

// DeleteUnasked is UpdateUnasked for what is removed.
func (s *Store[K, T]) DeleteUnasked(ctx context.Context, in catalog.Scope, found T) error {
	err := s.allow(ctx, in, found)
	if err == nil {
		err = s.writer.Delete(ctx, found.DeepCopyObject().(T))
	}
	return s.unlessKept(err)
}

// SweepUnasked removes an object that was made over REST and of which nobody has declared anything since, and reports whether it is gone.
// Every other object stays.
func (s *Store[K, T]) SweepUnasked(ctx context.Context, found T) (gone bool, err error) {
	gone, err = s.writer.DeleteMadeHere(ctx, found.DeepCopyObject().(T))
	return gone, answer(err, s.missing)
}

// CheckUnasked refuses what the project keeps from REST callers: for what is done as a whole or not at all.
func (s *Store[K, T]) CheckUnasked(ctx context.Context, in catalog.Scope, found T) error {
	return answer(s.allow(ctx, in, found), s.missing)
}

// EnsureUnasked makes an object that a caller needs for what he has asked for, unless it is there, and reads it in either case; then what
// goes with it.
func (s *Store[K, T]) EnsureUnasked(ctx context.Context, obj T, then ...Then) error {
	err := s.writer.Ensure(ctx, obj)
	for _, complete := range then {
		if err == nil {
			err = complete(ctx, s.writer)
		}
	}
	return answer(err, s.missing)
}

// unlessKept returns the answer to an error, and none where an object stays as it is because of its project or has gone.
func (s *Store[K, T]) unlessKept(err error) error {
	if errors.Is(err, declare.ErrGone) || errors.As(err, new(*declare.RefusedError)) {
		return nil
	}
	return answer(err, s.missing)
}
