// Package store writes declared objects for callers of the REST API, and finds them. Each write checks spec.restWrites of the project and its
// groups, and of what is below a group whose change reaches it, writes once, waits until the cache shows the result, and explains to the client
// why something was not written. An update or removal first finds the subject's own object, and a removal also checks the condition of the
// request. Families write only through this package, so that none can forget a step. Writes that no caller requested, but that follow from a
// request, use the methods with Unasked in their names.
package store

import (
	"context"
	"errors"
	"reflect"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/declare"
	"github.com/forgeplane/forgeplane/internal/fieldmanager"
)

// ErrExists says that an equivalent object exists already.
var ErrExists = declare.ErrExists

// Find returns the subject's own object with a key. The object is shared with the cache. If the object does not exist, Find returns nil or
// catalog.ErrNotFound. Any other error says why the caller must not write the object.
type Find[K any, T client.Object] func(ctx context.Context, of auth.Subject, key K) (T, error)

// Only is the key for a kind of which a subject has, or is, exactly one object.
type Only struct{}

// Backend is required by the constructors of stores. Only stores can write with it.
type Backend struct {
	declare *declare.Writer
	policy  policy
}

// NewBackend returns a backend. root is the restWrites of root groups that do not declare their own; empty for Allow.
func NewBackend(w *declare.Writer, c *catalog.Catalog, root v1alpha1.RESTWrites) Backend {
	return Backend{w, policy{c, w, root}}
}

// Changed returns the time of the last change to the declared part of an object, to the second.
func Changed(obj client.Object) time.Time { return fieldmanager.Changed(obj) }

// Store reads and writes the objects of one kind, which requests name by a key.
type Store[K any, T client.Object] struct {
	writer  *declare.Writer
	policy  policy
	find    Find[K, T]
	missing string
	removed string
	// holder names the container of the objects in the answer if it disappears during a creation.
	holder string
}

// New returns a store of the objects that find finds.
func New[K any, T client.Object](b Backend, find Find[K, T]) *Store[K, T] {
	found := func(ctx context.Context, of auth.Subject, key K) (T, error) {
		obj, err := find(ctx, of, key)
		if err == nil && reflect.ValueOf(obj).IsNil() {
			err = catalog.ErrNotFound
		}
		return obj, err
	}
	return &Store[K, T]{writer: b.declare, policy: b.policy, find: found}
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

// Create creates an object, and then calls then for what belongs to it, such as its Secret. If that fails, Create removes the object again.
// The error is ErrExists if the name is taken.
func (s *Store[K, T]) Create(ctx context.Context, obj T, then ...Then) error {
	return s.create(ctx, obj, func() error { return s.writer.Create(ctx, obj) }, then)
}

// CreateUnique is Create for an object whose name is derived from key, the thing that it stands for. The error is ErrExists if an object
// that stands for the same exists in the API server. An object that has the name, but stands for something else by now, is not in the way.
func (s *Store[K, T]) CreateUnique(ctx context.Context, obj T, same func(holder T) bool, key []string, then ...Then) error {
	return s.create(ctx, obj, func() error { return declare.CreateUnique(ctx, s.writer, obj, same, key...) }, then)
}

func (s *Store[K, T]) create(ctx context.Context, obj T, write func() error, then []Then) error {
	err := s.policy.allowNew(ctx, obj)
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
	if err := s.Create(declare.Replacing(ctx), obj, then...); err != nil {
		return err
	}
	if _, err := s.Update(ctx, of, key, end); err != nil {
		return errors.Join(err, s.writer.Discard(ctx, obj))
	}
	return nil
}

// Update changes an object and returns it. If another writer changes the object at the same time, change is called again with the new state.
// A change of the path of a project or group is taken back, with ErrExists, if another one gets the path at the same time.
func (s *Store[K, T]) Update(ctx context.Context, of auth.Subject, key K, change func(T) error) (obj T, err error) {
	return s.Move(ctx, of, key, catalog.Scope{}, change)
}

// Move is Update for a change that moves a project or group to another place in the tree, which can refuse it as well. The move is taken back
// if another request makes it impossible at the same time: the error is ErrExists if the path is taken, catalog.ErrCycle if the group would
// be its own ancestor, and 404 if the group above is gone.
func (s *Store[K, T]) Move(ctx context.Context, of auth.Subject, key K, to catalog.Scope, change func(T) error) (obj T, err error) {
	found, err := s.movable(ctx, of, key, to)
	if err != nil {
		return obj, err
	}
	return s.update(ctx, found, change)
}

// movable returns an object that restWrites lets callers move.
func (s *Store[K, T]) movable(ctx context.Context, of auth.Subject, key K, to catalog.Scope) (T, error) {
	found, err := s.Get(ctx, of, key)
	if err == nil {
		err = answer(s.policy.allowThrough(ctx, found, of.Scope, to), s.missing)
	}
	return found, err
}

// CheckMove returns the error with which restWrites would refuse Move. Use it for requests that write something else first.
func (s *Store[K, T]) CheckMove(ctx context.Context, of auth.Subject, key K, to catalog.Scope) error {
	found, err := s.movable(ctx, of, key, to)
	if err == nil {
		err = answer(s.policy.allowBelow(ctx, found, of.Scope), s.missing)
	}
	return err
}

// CheckNew returns the error with which restWrites would refuse Create in a place. Use it for requests that create the place first.
func (s *Store[K, T]) CheckNew(in catalog.Scope) error { return answer(s.policy.accept(in), s.holder) }

// UpdateOrCreate is Update for an object that is created from fresh if it does not exist.
func (s *Store[K, T]) UpdateOrCreate(ctx context.Context, of auth.Subject, key K, fresh func() T, change func(T) error) error {
	_, err := s.find(ctx, of, key)
	if errors.Is(err, catalog.ErrNotFound) {
		if err = s.createChanged(ctx, fresh(), change); !errors.Is(err, declare.ErrExists) {
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
func (s *Store[K, T]) createChanged(ctx context.Context, obj T, change func(T) error) error {
	if err := s.policy.allowNew(ctx, obj); err != nil {
		return answer(err, "")
	}
	if err := change(obj); err != nil {
		return err
	}
	return s.Create(ctx, obj)
}

// awaitOther waits until the cache shows the object that another writer created under the name of obj. The error is 409 if it is not the
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

func (s *Store[K, T]) update(ctx context.Context, found T, change func(T) error) (T, error) {
	obj, err := s.changed(ctx, found, change)
	return obj, answer(err, s.missing)
}

// changed is update, but returns its error unconverted.
func (s *Store[K, T]) changed(ctx context.Context, found T, change func(T) error) (T, error) {
	obj, was := found.DeepCopyObject().(T), found
	err := s.writer.Update(ctx, obj, func() error {
		was = obj.DeepCopyObject().(T)
		if err := change(obj); err != nil {
			return err
		}
		return s.policy.allowChange(ctx, was, obj)
	})
	if err == nil {
		err = s.policy.settle(ctx, was, obj)
	}
	return obj, err
}

// Observe changes the status of an object where a request decides about it, such as an avatar, and returns the object.
func (s *Store[K, T]) Observe(ctx context.Context, of auth.Subject, found T, change func(T)) (obj T, err error) {
	if err := s.policy.allowThrough(ctx, found, of.Scope); err != nil {
		return obj, answer(err, s.missing)
	}
	obj = found.DeepCopyObject().(T)
	err = s.writer.Observe(ctx, obj, func() { change(obj) })
	return obj, answer(err, s.missing)
}

// Act changes an object without changing its declaration, such as an annotation that asks a controller to do something. It also works in
// projects and groups that refuse changes over REST.
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
	err = s.policy.allowThrough(ctx, obj, of.Scope)
	if err == nil {
		err = remove(s.writer, ctx, obj, endpoint.UnmodifiedSince(ctx))
	}
	return answer(err, s.removed)
}
