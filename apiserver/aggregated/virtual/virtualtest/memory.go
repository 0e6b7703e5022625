package virtualtest

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/apiserver/aggregated/virtual"
)

// Memory is a source of toys in memory.
type Memory struct {
	// AtOnce is the number of changes that Changes returns at once, or 0 for all. It must be set before others use the source.
	AtOnce int

	mutex    sync.Mutex
	toys     map[string]*Toy // by namespace/name
	revision int64
	log      []entry
	// forgotten is the revision of the last change that is no longer in the log.
	forgotten int64
}

// entry is a change in the log.
type entry struct {
	watch.Event
	revision int64
}

var _ virtual.Source = (*Memory)(nil)

// NewMemory returns a source without toys.
func NewMemory() *Memory { return &Memory{toys: map[string]*Toy{}, revision: 1} }

// Put creates a toy or changes its status.
func (m *Memory) Put(namespace, name string, status ToyStatus) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	key, kind := namespace+"/"+name, watch.Modified
	t := &Toy{}
	if is := m.toys[key]; is != nil {
		t = is.DeepCopyObject().(*Toy)
	} else {
		kind = watch.Added
		t.Namespace, t.Name, t.UID = namespace, name, types.UID(key+"@"+strconv.FormatInt(m.revision, 10))
	}
	t.Status, m.toys[key] = status, t
	m.changed(kind, t)
}

// Delete deletes a toy.
func (m *Memory) Delete(namespace, name string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	key := namespace + "/" + name
	t := m.toys[key].DeepCopyObject().(*Toy)
	delete(m.toys, key)
	m.changed(watch.Deleted, t)
}

// Forget removes all changes from the log.
func (m *Memory) Forget() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.log, m.forgotten = nil, m.revision
}

func (m *Memory) changed(kind watch.EventType, t *Toy) {
	m.revision++
	t.ResourceVersion = strconv.FormatInt(m.revision, 10)
	m.log = append(m.log, entry{watch.Event{Type: kind, Object: t.DeepCopyObject()}, m.revision})
}

// Get implements virtual.Source.
func (m *Memory) Get(_ context.Context, namespace, name string) (client.Object, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if t := m.toys[namespace+"/"+name]; t != nil {
		return t.DeepCopyObject().(*Toy), nil
	}
	return nil, virtual.ErrNotFound
}

// List implements virtual.Source.
func (m *Memory) List(_ context.Context, q virtual.Query) (virtual.Page, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	page := virtual.Page{Revision: m.revision}
	last := ""
	for _, key := range slices.Sorted(maps.Keys(m.toys)) {
		t := m.toys[key]
		selected := q.Selector.Matches(virtual.WithMetadata(t, Fields(t)))
		if key <= q.After || q.Namespace != "" && t.Namespace != q.Namespace || !selected {
			continue
		}
		if q.Limit > 0 && int64(len(page.Objects)) == q.Limit {
			page.Next = last
			break
		}
		page.Objects, last = append(page.Objects, t.DeepCopyObject().(*Toy)), key
	}
	return page, nil
}

// Changes implements virtual.Source.
func (m *Memory) Changes(_ context.Context, namespace string, after int64) ([]watch.Event, int64, bool, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if after < m.forgotten || after > m.revision {
		return nil, 0, false, virtual.ErrExpired
	}
	var changes []watch.Event
	for _, e := range m.log {
		if e.revision <= after || namespace != "" && e.Object.(*Toy).Namespace != namespace {
			continue
		}
		changes = append(changes, watch.Event{Type: e.Type, Object: e.Object.DeepCopyObject()})
		if len(changes) == m.AtOnce {
			return changes, e.revision, true, nil
		}
	}
	return changes, m.revision, false, nil
}
