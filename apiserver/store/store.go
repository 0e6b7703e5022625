// Package store writes declared objects for callers of the REST API, and finds them. Each write does what every write must: it finds the
// object that is the subject's own, asks spec.restWrites of the project, holds the condition of the request against the object, writes
// once, returns when the cache shows it, and says to the client why something was not written. Families write through it alone, so none
// can forget any of that. What no caller asked for, and follows from what one did ask for, is written by methods that say Unasked.
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

// ErrExists says that there is an object already that stands for the same.
var ErrExists = declare.ErrExists

// Find returns the subject's own object of a key, which is shared with the cache. If the object does not exist, it
// returns nil or catalog.ErrNotFound. Another error says why the caller must not write the object.
type Find[K any, T client.Object] func(ctx context.Context, of auth.Subject, key K) (T, error)

// Only is the key of the one object of a kind that a subject has, or is.
type Only struct{}

// Writer is what stores write through. Nothing but a store can.
type Writer struct{ declare *declare.Writer }

// NewWriter returns a writer.
func NewWriter(w *declare.Writer) Writer { return Writer{w} }

// Changed is when somebody last changed what is declared of an object, to the second.
func Changed(obj client.Object) time.Time { return declare.Changed(obj) }

// Store has the objects of one kind, which requests name by a key.
type Store[K any, T client.Object] struct {
	writer  *declare.Writer
	find    Find[K, T]
	missing string
	removed string
	// holder is what an object is made in and can go meanwhile.
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
	obj, err := s.find(ctx, of, key)
	if errors.Is(err, catalog.ErrNotFound) {
		err = endpoint.NotFound(missing)
	}
	return obj, err
}

// Create makes an object of the subject's project, and then what goes with it, such as its Secret: where that fails, the object is taken
// back. The error is ErrExists where the name is taken.
func (s *Store[K, T]) Create(ctx context.Context, of auth.Subject, obj T, then ...Then) error {
	return s.create(ctx, of, obj, func() error { return s.writer.Create(ctx, obj) }, then)
}

// CreateUnique is Create for an object that is named by what it stands for: a key. The error is ErrExists where an object, as the API
// server has it, stands for the same. What has the name and stands for something else by now is not in the way.
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

// Replace is Create for an object that takes the place of another one, and so does not count as one more. end ends that one afterwards, so
// that there is no moment without either; where it fails, the new one is taken back.
func (s *Store[K, T]) Replace(ctx context.Context, of auth.Subject, key K, end func(T) error, obj T, then ...Then) error {
	if err := s.Create(declare.Replacing(ctx), of, obj, then...); err != nil {
		return err
	}
	if _, err := s.Update(ctx, of, key, end); err != nil {
		return errors.Join(err, s.writer.Discard(ctx, obj))
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
	if err := s.allow(ctx, of.Scope, found); err != nil {
		return obj, answer(err, s.missing)
	}
	return s.update(ctx, found, change)
}

// UpdateOrCreate is Update for an object that is made, from fresh, where there is none yet.
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

// createChanged is Create for an object that the change makes what it is to be.
func (s *Store[K, T]) createChanged(ctx context.Context, of auth.Subject, obj T, change func(T) error) error {
	if err := s.allow(ctx, of.Scope, nil); err != nil {
		return answer(err, "")
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
		return answer(err, "")
	}
	holder, err := s.find(ctx, of, key)
	if errors.Is(err, catalog.ErrNotFound) || err == nil && holder.GetUID() != obj.GetUID() {
		return endpoint.Conflict("")
	}
	return err
}

// allow asks the project that something is of whether it takes a write; what is of none takes all.
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

// changed is update without the answer to its error.
func (s *Store[K, T]) changed(ctx context.Context, found T, change func(T) error) (T, error) {
	obj := found.DeepCopyObject().(T)
	err := s.writer.Update(ctx, obj, func() error { return change(obj) })
	return obj, err
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
	return s.remove(ctx, of, key, (*declare.Writer).DeleteUnmodified)
}

// Check is for a write that begins with something other than an object: it says what would keep Delete from removing that, and as far as
// the request has no condition Update from changing it.
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
