package informer

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fieldIndex begins the names of the indexes that controller-runtime makes of fields.
const fieldIndex = "field:"

// everywhere begins the keys under which controller-runtime indexes the objects of all namespaces together.
const everywhere = "__all_namespaces/"

// lean is an informer that indexes each object once. controller-runtime indexes namespaced objects twice by each field, once with the
// namespace in the key. With a set for each key, the indexes of 50,000 objects used half as much memory as the objects. A lookup in one
// namespace uses the index of all.
type lean struct {
	cache.SharedIndexInformer
	adding sync.Mutex
	// full are the indexers as controller-runtime has made them. The map is never changed.
	full atomic.Pointer[cache.Indexers]
}

func newLean(informer cache.SharedIndexInformer) *lean {
	l := &lean{SharedIndexInformer: informer}
	full := maps.Clone(informer.GetIndexer().GetIndexers())
	l.full.Store(&full)
	return l
}

// AddIndexers implements cache.SharedIndexInformer.
func (l *lean) AddIndexers(indexers cache.Indexers) error {
	once := make(cache.Indexers, len(indexers))
	for name, values := range indexers {
		once[name] = values
		if isField(name) {
			once[name] = ofEverywhere(values)
		}
	}
	l.adding.Lock()
	defer l.adding.Unlock()
	if err := l.SharedIndexInformer.AddIndexers(once); err != nil {
		return err
	}
	full := maps.Clone(*l.full.Load())
	maps.Copy(full, indexers)
	l.full.Store(&full)
	return nil
}

// GetIndexer implements cache.SharedIndexInformer.
func (l *lean) GetIndexer() cache.Indexer { return leanIndexer{l.SharedIndexInformer.GetIndexer(), l} }

// isField reports whether an index is one that controller-runtime makes of a field.
func isField(index string) bool { return strings.HasPrefix(index, fieldIndex) }

// ofEverywhere leaves the keys of all namespaces; an object that has no namespace has only those.
func ofEverywhere(values cache.IndexFunc) cache.IndexFunc {
	return func(o any) ([]string, error) {
		all, err := values(o)
		if err != nil {
			return nil, err
		}
		kept := all[:0]
		for _, key := range all {
			if value, ok := strings.CutPrefix(key, everywhere); ok {
				kept = append(kept, strings.Clone(value)) // without the room of the prefix
			}
		}
		return kept, nil
	}
}

// leanIndexer answers what is asked with the keys of controller-runtime.
type leanIndexer struct {
	cache.Indexer
	of *lean
}

// GetIndexers implements cache.Indexer: what it returns makes the keys that controller-runtime asks for.
func (l leanIndexer) GetIndexers() cache.Indexers { return *l.of.full.Load() }

// ByIndex implements cache.Indexer.
func (l leanIndexer) ByIndex(index, key string) ([]any, error) {
	if !isField(index) {
		return l.Indexer.ByIndex(index, key)
	}
	// A namespace has no slash; a value may have.
	namespace, value, _ := strings.Cut(key, "/")
	found, err := l.Indexer.ByIndex(index, value)
	if err != nil || namespace+"/" == everywhere {
		return found, err
	}
	return slices.DeleteFunc(found, func(o any) bool { return o.(client.Object).GetNamespace() != namespace }), nil
}
