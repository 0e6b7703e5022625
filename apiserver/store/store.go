// Package store writes declared objects for callers of the REST API, and finds them. Each write finds the subject's own object, checks
// spec.restWrites of the project and the condition of the request, writes once, waits until the cache shows the result, and explains to the
// client why something was not written. Families write only through this package, so that none can forget a step. Writes that no caller
// requested, but that follow from a request, use the methods with Unasked in their names.
package store

import (
	"context"
	"errors"
	"reflect"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/declare"
)

// ErrExists says that an equivalent object exists already.
var ErrExists = declare.ErrExists

// Find returns the subject's own object with a key. The object is shared with the cache. If the object does not exist, Find returns nil or
// catalog.ErrNotFound. Any other error says why the caller must not write the object.
type Find[K any, T client.Object] func(ctx context.Context, of auth.Subject, key K) (T, error)

// Only is the key for a kind of which a subject has, or is, exactly one object.
type Only struct{}

// Writer is required by the constructors of stores. Only stores can write with it.
type Writer struct{ declare *declare.Writer }

// NewWriter returns a writer.
func NewWriter(w *declare.Writer) Writer { return Writer{w} }

// Changed returns the time of the last change to the declared part of an object, to the second.
func Changed(obj client.Object) time.Time { return declare.Changed(obj) }

// Store reads and writes the objects of one kind, which requests name by a key.
type Store[K any, T client.Object] struct {
	writer  *declare.Writer
	find    Find[K, T]
	missing string
	removed string
	// holder names the container of the objects in the answer if it disappears during a creation.
	holder string
}

// New returns a store of the objects that find finds.
func New[K any, T client.Object](w Writer, find Find[K, T]) *Store[K, T] {
	found := func(ctx context.Context, of auth.Subject, key K) (T, error) {
		obj, err := find(ctx, of, key)
		if err == nil && reflect.ValueOf(obj).IsNil() {
			err = catalog.ErrNotFound
		}
		return obj, err
	}
	return &Store[K, T]{writer: w.declare, find: found}
}

// Named replaces the names that endpoint.NotFound gives to a missing object, and to a missing object in a removal. The default of the
// latter is empty.
func (s *Store[K, T]) Named(missing, removed string) *Store[K, T] {
	s.missing, s.removed = missing, removed
	return s
}

// Get returns an object. It is shared with the cache.
func (s *Store[K, T]) Get(ctx context.Context, of auth.Subject, key K) (T, error) {
	return s.get(ctx, of, key, s.missing)
}

func (s *Store[K, T]) get(ctx context.Context, of auth.Subject, key K, missing string) (T, error) {
	obj, err := s.find(ctx, of, key)
	if errors.Is(err, catalog.ErrNotFound) {
		err = endpoint.NotFound(missing)
	}
	return obj, err
}

// Create creates an object in the subject's project, and then calls then for what belongs to it, such as its Secret. If that fails, Create
// removes the object again. The error is ErrExists if the name is taken.
func (s *Store[K, T]) Create(ctx context.Context, of auth.Subject, obj T, then ...Then) error {
	return s.create(ctx, of, obj, func() error { return s.writer.Create(ctx, obj) }, then)
}

// CreateUnique is Create for an object whose name is derived from key, the thing that it stands for. The error is ErrExists if an object
// that stands for the same exists in the API server. An object that has the name, but stands for something else by now, is not in the way.
func (s *Store[K, T]) CreateUnique(ctx context.Context, of auth.Subject, obj T, same func(holder T) bool, key []string, then ...Then) error {
	return s.create(ctx, of, obj, func() error { return declare.CreateUnique(ctx, s.writer, obj, same, key...) }, then)
}

func (s *Store[K, T]) create(ctx context.Context, of auth.Subject, obj T, write func() error, then []Then) error {
	err := s.allow(ctx, of.Scope, nil)
	if err == nil {
		err = write()
	}
	if err != nil {
		return answer(err, s.holder)
	}
	for _, complete := range then {
		if err := complete(ctx, s.writer); err != nil {
			return errors.Join(answer(err, s.missing), s.writer.Discard(ctx, obj))
		}
	}
	return nil
}

// Replace is Create for an object that replaces another one, and so does not count as an additional object. It then changes the old object
// with end, so that at least one of them is always in force. If that fails, the new object is removed again.
func (s *Store[K, T]) Replace(ctx context.Context, of auth.Subject, key K, end func(T) error, obj T, then ...Then) error {
	if err := s.Create(declare.Replacing(ctx), of, obj, then...); err != nil {
		return err
	}
	if _, err := s.Update(ctx, of, key, end); err != nil {
		return errors.Join(err, s.writer.Discard(ctx, obj))
	}
	return nil
}

// Update changes an object and returns it. If somebody else changes the object at the same time, change is called again with the new state.
func (s *Store[K, T]) Update(ctx context.Context, of auth.Subject, key K, change func(T) error) (obj T, err error) {
	found, err := s.Get(ctx, of, key)
	if err != nil {
		return obj, err
	}
	if err := s.allow(ctx, of.Scope, found); err != nil {
		return obj, answer(err, s.missing)
	}
	return s.update(ctx, found, change)
}

// UpdateOrCreate is Update for an object that is created from fresh if it does not exist.
func (s *Store[K, T]) UpdateOrCreate(ctx context.Context, of auth.Subject, key K, fresh func() T, change func(T) error) error {
	_, err := s.find(ctx, of, key)
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

// createChanged creates obj after applying change to it.
func (s *Store[K, T]) createChanged(ctx context.Context, of auth.Subject, obj T, change func(T) error) error {
	if err := s.allow(ctx, of.Scope, nil); err != nil {
		return answer(err, "")
	}
	if err := change(obj); err != nil {
		return err
	}
	return s.Create(ctx, of, obj)
}

// awaitOther waits until the cache shows the object that somebody else created under the name of obj. The error is 409 if it is not the
// object of the key, because an object of another project has the name.
func (s *Store[K, T]) awaitOther(ctx context.Context, of auth.Subject, key K, obj T) error {
	if err := s.writer.Ensure(ctx, obj); err != nil {
		return answer(err, "")
	}
	holder, err := s.find(ctx, of, key)
	if errors.Is(err, catalog.ErrNotFound) || err == nil && holder.GetUID() != obj.GetUID() {
		return endpoint.Conflict("")
	}
	return err
}

// allow checks whether the project of an object accepts a write. An object without a project accepts all.
func (s *Store[K, T]) allow(ctx context.Context, in catalog.Scope, obj client.Object) error {
	if in.Project == nil {
		return nil
	}
	return s.writer.Allow(ctx, in.Project, obj)
}

func (s *Store[K, T]) update(ctx context.Context, found T, change func(T) error) (T, error) {
	obj, err := s.changed(ctx, found, change)
	return obj, answer(err, s.missing)
}

// changed is update, but returns its error unconverted.
func (s *Store[K, T]) changed(ctx context.Context, found T, change func(T) error) (T, error) {
	obj := found.DeepCopyObject().(T)
	err := s.writer.Update(ctx, obj, func() error { return change(obj) })
	return obj, err
}

// Act changes an object without changing its declaration, such as an annotation that asks a controller to do something. It also works in
// projects that refuse changes over REST.
func (s *Store[K, T]) Act(ctx context.Context, of auth.Subject, key K, change func(T) error) (obj T, err error) {
	found, err := s.Get(ctx, of, key)
	if err != nil {
		return obj, err
	}
	return s.update(ctx, found, change)
}

// Delete removes an object, unless the condition of the request fails.
func (s *Store[K, T]) Delete(ctx context.Context, of auth.Subject, key K) error {
	return s.remove(ctx, of, key, (*declare.Writer).DeleteUnmodified)
}

// Check returns the error with which Delete would fail. If the request has no condition, Update would fail with it too. Use it for requests
// that write something other than an object first.
func (s *Store[K, T]) Check(ctx context.Context, of auth.Subject, key K) error {
	return s.remove(ctx, of, key, (*declare.Writer).Unmodified)
}

func (s *Store[K, T]) remove(
	ctx context.Context, of auth.Subject, key K, remove func(*declare.Writer, context.Context, client.Object, time.Time) error,
) error {
	found, err := s.get(ctx, of, key, s.removed)
	if err != nil {
		return err
	}
	obj := found.DeepCopyObject().(T)
	err = s.allow(ctx, of.Scope, obj)
	if err == nil {
		err = remove(s.writer, ctx, obj, endpoint.UnmodifiedSince(ctx))
	}
	return answer(err, s.removed)
}
