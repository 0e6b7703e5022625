package catalog

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// maxKinds is of how many kinds a remembered answer can be made.
const maxKinds = 8

// Revision is of what there is of some kinds, in their order. Two that are equal are of the same content, apart from what
// v1alpha1.Observing drops.
type Revision = [maxKinds]string

// Revisions tells whether objects of some kinds have changed that a catalog reads, by their Go types as in "*v1alpha1.Group"; an
// informer.Factory does.
type Revisions interface {
	Revision(kinds []string) (r Revision, ok bool)
}

// Remember has the memories of the catalog remember answers; the revisions are those of the cache that it reads.
func (c *Catalog) Remember(revisions Revisions) { c.revisions = revisions }

// Memory holds the answers to questions of one sort for as long as no object changes of the kinds that they are made of. What is derived
// from thousands of objects is asked for again and again, and changes seldom. A push is no such change: no answer is made of what
// v1alpha1.Observing drops from an object, and objects in an answer are without it. Catalog.Current has it.
//
// The key is the question: it says all that the answer depends on apart from these objects, such as the Version of a scope.
type Memory[K comparable, V any] struct {
	of      *Catalog
	reads   *Catalog
	kinds   []string
	size    int
	current atomic.Pointer[generation]
}

// generation is what was answered at one revision.
type generation struct {
	revision Revision
	answers  *lru.Cache
}

type answer[V any] struct {
	value V
	// until is when time alone makes it untrue; never when it is zero.
	until time.Time
}

// NewMemory returns a memory of at most size answers, which are made of the objects of these kinds and of nothing else.
func NewMemory[K comparable, V any](c *Catalog, size int, kinds ...client.Object) *Memory[K, V] {
	m := &Memory[K, V]{of: c, size: size}
	only := only{Reader: c.reader}
	for _, kind := range kinds {
		m.kinds = append(m.kinds, fmt.Sprintf("%T", kind))
		only.types = append(only.types, reflect.TypeOf(kind))
		if listed, ok := kind.(v1alpha1.Object); ok {
			only.types = append(only.types, reflect.TypeOf(listed.NewList()))
		}
	}
	m.reads = &Catalog{reader: only, rootRules: c.rootRules}
	return m
}

// Recall returns the answer to a question, which find finds if no object has changed since it was asked before. find must read what it
// makes the answer of from the catalog that it is given, which refuses objects of other kinds and has nothing of the others that changes
// with a push; until is when the answer becomes untrue by
// time alone, or zero. The answer is shared: nobody changes it. Errors are not remembered.
func (m *Memory[K, V]) Recall(key K, now time.Time, find func(*Catalog) (found V, until time.Time, err error)) (V, error) {
	g := m.at()
	if g == nil {
		found, _, err := find(m.reads)
		return found, err
	}
	if known, ok := g.answers.Get(key); ok {
		if a := known.(answer[V]); a.until.IsZero() || now.Before(a.until) {
			return a.value, nil
		}
	}
	// The revision was read before what it is to speak of, so the answer is at least as new.
	found, until, err := find(m.reads)
	if err == nil {
		g.answers.Add(key, answer[V]{found, until})
	}
	return found, err
}

// RecallFor is Recall for a question about a scope alone, whose answer no time makes untrue. find gets the scope as the catalog that it is
// given would return it.
func RecallFor[V any](m *Memory[string, V], s Scope, find func(*Catalog, Scope) (V, error)) (V, error) {
	return m.Recall(s.Version(), time.Time{}, func(c *Catalog) (V, time.Time, error) {
		found, err := find(c, s.lasting())
		return found, time.Time{}, err
	})
}

// at returns the generation of now, nil where nothing can be remembered.
func (m *Memory[K, V]) at() *generation {
	if m.of.revisions == nil {
		return nil
	}
	now, ok := m.of.revisions.Revision(m.kinds)
	if !ok {
		return nil
	}
	for {
		g := m.current.Load()
		if g != nil && g.revision == now {
			return g
		}
		// Of two that see different revisions at once the later one may lose its answers to the earlier; they are found again.
		next := &generation{revision: now, answers: lru.New(m.size)}
		if m.current.CompareAndSwap(g, next) {
			return next
		}
	}
}

// only reads objects of some kinds, without what changes with every push: an answer that is made of anything else would be remembered
// although that has changed.
type only struct {
	client.Reader
	types []reflect.Type
}

func (r only) check(o any) error {
	if !slices.Contains(r.types, reflect.TypeOf(o)) {
		return fmt.Errorf("%T is read for an answer that is remembered until other kinds change", o)
	}
	return nil
}

// Get implements client.Reader.
func (r only) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if err := r.check(o); err != nil {
		return err
	}
	err := r.Reader.Get(ctx, key, o, options...)
	drop(o)
	return err
}

// List implements client.Reader.
func (r only) List(ctx context.Context, l client.ObjectList, options ...client.ListOption) error {
	if err := r.check(l); err != nil {
		return err
	}
	if err := r.Reader.List(ctx, l, options...); err != nil {
		return err
	}
	// A list holds copies, whose parts alone are shared with the cache.
	return meta.EachListItem(l, func(o runtime.Object) error {
		drop(o)
		return nil
	})
}

func drop(o any) {
	if o, ok := o.(v1alpha1.Observing); ok {
		o.DropObserved()
	}
}
