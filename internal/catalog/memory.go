package catalog

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// maxKinds is the maximum number of kinds on which a remembered answer can depend.
const maxKinds = 8

// Revision identifies the objects of some kinds at one time, in the order of the kinds. Equal revisions mean equal objects, except for what
// v1alpha1.Observing drops.
type Revision = [maxKinds]string

// Revisions tells whether objects have changed that a catalog reads, and how current those of one kind are. Kinds are Go types such as
// "*v1alpha1.Group". informer.Factory implements it.
type Revisions interface {
	Revision(kinds []string) (r Revision, ok bool)
	Reached(kind string) (resourceVersion int64, ok bool)
}

// Remember turns on the memories of the catalog. The revisions must be those of the cache that it reads.
func (c *Catalog) Remember(revisions Revisions) { c.revisions = revisions }

// Reached reports whether what is read of a kind from now on is at least as new as a resource version, or "" for any. Kinds have caches of
// their own: what refers to an object can be in the cache before the object is. A catalog without revisions has reached everything.
func (c *Catalog) Reached(kind client.Object, resourceVersion string) bool {
	if c.revisions == nil || resourceVersion == "" {
		return true
	}
	wanted, err := strconv.ParseInt(resourceVersion, 10, 64)
	reached, known := c.revisions.Reached(goType(kind))
	return err == nil && known && reached >= wanted
}

// Memory remembers the answers to one kind of question until an object changes on whose kind the answers depend. Such answers are derived
// from thousands of objects, are needed again and again, and change seldom. A push does not invalidate them: no answer may depend on what
// v1alpha1.Observing drops from an object, and the objects in an answer lack it. Use Catalog.Current to read it.
//
// The key is the question. It must contain everything else that the answer depends on, such as the Version of a scope.
type Memory[K comparable, V any] struct {
	of      *Catalog
	reads   *Catalog
	kinds   []string
	size    int
	current atomic.Pointer[generation]
}

// generation has the answers at one revision.
type generation struct {
	revision Revision
	answers  *lru.Cache
}

type answer[V any] struct {
	value V
	// until is the time from which an answer is no longer true; zero means that time does not matter.
	until time.Time
}

// NewMemory returns a memory of at most size answers, which may depend only on objects of these kinds.
func NewMemory[K comparable, V any](c *Catalog, size int, kinds ...client.Object) *Memory[K, V] {
	m := &Memory[K, V]{of: c, size: size}
	only := only{Reader: c.reader}
	for _, kind := range kinds {
		m.kinds = append(m.kinds, goType(kind))
		only.types = append(only.types, reflect.TypeOf(kind))
		if listed, ok := kind.(v1alpha1.Object); ok {
			only.types = append(only.types, reflect.TypeOf(listed.NewList()))
		}
	}
	m.reads = &Catalog{reader: only, rootRules: c.rootRules}
	return m
}

// Recall returns the answer to a question. It calls find unless no object has changed since the question was last asked. find must read
// objects only from the catalog that it is given, which refuses other kinds and omits what changes with every push. until is the time from
// which the answer is no longer true, or zero. The answer is shared, so callers must not change it. Errors are not remembered.
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
	// The revision was read before the objects, so the answer is at least as new as the revision.
	found, until, err := find(m.reads)
	if err == nil {
		g.answers.Add(key, answer[V]{found, until})
	}
	return found, err
}

// RecallFor is Recall for a question about a scope whose answer is true until the next share of the scope ends. find gets the scope without
// what changes with every push.
func RecallFor[V any](m *Memory[string, V], s Scope, now time.Time, find func(*Catalog, Scope) (V, error)) (V, error) {
	return m.Recall(s.Version(), now, func(c *Catalog) (V, time.Time, error) {
		found, err := find(c, s.lasting())
		return found, s.SharesEnd(now), err
	})
}

// at returns the current generation, or nil if nothing can be remembered.
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
		// If two goroutines see different revisions at once, the later one can lose its answers; they will be found again.
		next := &generation{revision: now, answers: lru.New(m.size)}
		if m.current.CompareAndSwap(g, next) {
			return next
		}
	}
}

// only reads objects of some kinds, without what changes with every push. An answer that depended on anything else would be remembered
// after that had changed.
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
	// A list holds copies, of which only nested values are shared with the cache.
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
