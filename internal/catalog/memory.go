package catalog

import (
	"sync/atomic"
	"time"

	"k8s.io/utils/lru"

	"github.com/forgeplane/forgeplane/internal/informer"
)

// Revisions tells whether the objects that a catalog reads have changed; an informer.Factory does.
type Revisions interface {
	Revision() (r informer.Revision, ok bool)
}

// How many answers are remembered at once: small ones, and lists of many objects.
const (
	maxAnswers = 16384
	maxLists   = 64
)

// memory holds answers for as long as no object changes. What is derived from thousands of objects is asked for again and
// again, and changes seldom.
type memory struct {
	revisions Revisions
	current   atomic.Pointer[generation]
}

// generation is what was answered at one revision.
type generation struct {
	revision       informer.Revision
	answers, lists *lru.Cache
}

type answer struct {
	value any
	// until is when time alone makes it untrue; never when it is zero.
	until time.Time
}

// Remember has the catalog remember answers; the revisions are those of the cache that it reads.
func (c *Catalog) Remember(revisions Revisions) { c.memory = &memory{revisions: revisions} }

// at returns the generation of now, nil where nothing can be remembered.
func (m *memory) at() *generation {
	if m == nil {
		return nil
	}
	now, ok := m.revisions.Revision()
	if !ok {
		return nil
	}
	for {
		g := m.current.Load()
		if g != nil && g.revision == now {
			return g
		}
		// Of two that see different revisions at once the later one may lose its answers to the earlier; they are found again.
		next := &generation{revision: now, answers: lru.New(maxAnswers), lists: lru.New(maxLists)}
		if m.current.CompareAndSwap(g, next) {
			return next
		}
	}
}

// Recall returns the answer to a question, which find finds if no object has changed since it was asked before. The key is the
// question, of a type that nobody else uses, and says all that find is given and that can change, such as the Version of a scope; until
// is when the answer becomes untrue by time alone, or zero. The answer is shared: nobody changes it. Errors are not remembered.
func Recall[T any](c *Catalog, key any, now time.Time, find func() (found T, until time.Time, err error)) (T, error) {
	g := c.memory.at()
	if g == nil {
		found, _, err := find()
		return found, err
	}
	return recall(g.answers, key, now, find)
}

// RecallList is Recall for answers of many objects, fewer of which are remembered.
func RecallList[T any](c *Catalog, key any, now time.Time, find func() (found []T, until time.Time, err error)) ([]T, error) {
	g := c.memory.at()
	if g == nil {
		found, _, err := find()
		return found, err
	}
	return recall(g.lists, key, now, find)
}

func recall[T any](in *lru.Cache, key any, now time.Time, find func() (T, time.Time, error)) (T, error) {
	if known, ok := in.Get(key); ok {
		if a := known.(answer); a.until.IsZero() || now.Before(a.until) {
			return a.value.(T), nil
		}
	}
	// The revision was read before what it is to speak of, so the answer is at least as new.
	found, until, err := find()
	if err == nil {
		in.Add(key, answer{found, until})
	}
	return found, err
}
