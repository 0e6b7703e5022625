// Package store writes the objects that are declared for a project for callers of the REST API, and finds them. Each write does what
// every write must: it finds the project's own object, asks spec.restWrites of the project, holds the condition of the request against the
// object, writes once, returns when the cache shows it, and says to the client why something was not written. Families write through it
// alone, so none can forget any of that.
package store

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/conditional"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/refusal"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/declare"
	"github.com/forgeplane/forgeplane/internal/frame"
)

// Find returns the project's own object of a key. The error is catalog.ErrNotFound where there is none. The object is shared with the
// cache.
type Find[K any, T frame.Object] func(ctx context.Context, in catalog.Scope, key K) (T, error)

// Store has the objects of one kind, which requests name by a key.
type Store[K any, T frame.Object] struct {
	writer  *declare.Writer
	find    Find[K, T]
	missing string
	removed string
}

// New returns a store of the objects that find finds.
func New[K any, T frame.Object](w *declare.Writer, find Find[K, T]) *Store[K, T] {
	return &Store[K, T]{writer: w, find: find}
}

// Named replaces how endpoint.NotFound names an object that is not there, and one that is to be removed: by nothing.
func (s *Store[K, T]) Named(missing, removed string) *Store[K, T] {
	s.missing, s.removed = missing, removed
	return s
}

// Get returns an object, which is shared with the cache.
func (s *Store[K, T]) Get(ctx context.Context, of auth.Subject, key K) (T, error) {
	return s.get(ctx, of, key, s.missing)
}

func (s *Store[K, T]) get(ctx context.Context, of auth.Subject, key K, missing string) (T, error) {
	obj, err := s.find(ctx, of.Scope, key)
	if errors.Is(err, catalog.ErrNotFound) {
		err = endpoint.NotFound(missing)
	}
	return obj, err
}

// Create makes an object of the subject's project, and then what goes with it, such as its Secret: where that fails, the object is taken
// back. The error is declare.ErrExists where the name is taken.
func (s *Store[K, T]) Create(ctx context.Context, of auth.Subject, obj T, then ...func(context.Context, *declare.Writer) error) error {
	err := s.allow(ctx, of, nil)
	if err == nil {
		err = s.writer.Create(ctx, obj)
	}
	if err != nil {
		return refusal.Of(err, "")
	}
	for _, complete := range then {
		if err := complete(ctx, s.writer); err != nil {
			return errors.Join(refusal.Of(err, ""), s.writer.Discard(ctx, obj))
		}
	}
	return nil
}

// Update changes an object, and returns it. change is called again when somebody else was faster; what it changes then is the object as
// that one has left it.
func (s *Store[K, T]) Update(ctx context.Context, of auth.Subject, key K, change func(T) error) (obj T, err error) {
	found, err := s.Get(ctx, of, key)
	if err != nil {
		return obj, err
	}
	if err := s.allow(ctx, of, found); err != nil {
		return obj, refusal.Of(err, s.missing)
	}
	return s.update(ctx, found, change)
}

// UpdateOrCreate is Update for an object that is made, from fresh, where there is none yet.
func (s *Store[K, T]) UpdateOrCreate(ctx context.Context, of auth.Subject, key K, fresh func() T, change func(T) error) error {
	_, err := s.find(ctx, of.Scope, key)
	if errors.Is(err, catalog.ErrNotFound) {
		if err = s.createChanged(ctx, of, fresh(), change); !errors.Is(err, declare.ErrExists) {
			return err
		}
		err = s.awaitOther(ctx, of, key, fresh())
	}
	if err == nil {
		_, err = s.Update(ctx, of, key, change)
	}
	return err
}

// createChanged is Create for an object that the change makes what it is to be.
func (s *Store[K, T]) createChanged(ctx context.Context, of auth.Subject, obj T, change func(T) error) error {
	if err := s.allow(ctx, of, nil); err != nil {
		return refusal.Of(err, "")
	}
	if err := change(obj); err != nil {
		return err
	}
	return s.Create(ctx, of, obj)
}

// awaitOther waits until the cache shows what somebody else has made under the name of obj. The error is 409 where that is not the object
// of the key: another project's has the name.
func (s *Store[K, T]) awaitOther(ctx context.Context, of auth.Subject, key K, obj T) error {
	if err := s.writer.Ensure(ctx, obj); err != nil {
		return refusal.Of(err, "")
	}
	holder, err := s.find(ctx, of.Scope, key)
	if errors.Is(err, catalog.ErrNotFound) || err == nil && holder.GetUID() != obj.GetUID() {
		return endpoint.Conflict("")
	}
	return err
}

// allow asks the project of a subject whether it takes a write; a group takes all.
func (s *Store[K, T]) allow(ctx context.Context, of auth.Subject, obj client.Object) error {
	if of.Scope.Project == nil {
		return nil
	}
	return s.writer.Allow(ctx, of.Scope.Project, obj)
}

func (s *Store[K, T]) update(ctx context.Context, found T, change func(T) error) (T, error) {
	obj := found.DeepCopyObject().(T)
	err := s.writer.Update(ctx, obj, func() error { return change(obj) })
	return obj, refusal.Of(err, s.missing)
}

// Act changes an object in a way that changes nothing of what is declared, such as an annotation by which a controller is asked for
// something. A project that refuses changes over REST takes it.
func (s *Store[K, T]) Act(ctx context.Context, of auth.Subject, key K, change func(T) error) (obj T, err error) {
	found, err := s.Get(ctx, of, key)
	if err != nil {
		return obj, err
	}
	return s.update(ctx, found, change)
}

// Delete removes an object, unless the condition of the request fails.
func (s *Store[K, T]) Delete(ctx context.Context, of auth.Subject, key K) error {
	found, err := s.get(ctx, of, key, s.removed)
	if err != nil {
		return err
	}
	obj := found.DeepCopyObject().(T)
	err = s.allow(ctx, of, obj)
	if err == nil {
		err = conditional.Delete(ctx, s.writer, obj)
	}
	return refusal.Of(err, s.removed)
}
