package informer

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"strconv"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// changes are the resource versions at which something that counts has changed in a store. They are noted before the store has them, in
// the order in which it gets them. Which of them it has reached follows from its own version, which it changes together with its
// content. Bookmarks do not count, and neither does what v1alpha1.Observing drops.
type changes struct {
	store cache.Store
	// index is the informer that has the store, and synced whether it was seen to have read everything.
	index  cache.SharedIndexInformer
	synced atomic.Bool
	mu     sync.Mutex
	// at are the latest change that the store has reached, and those that are on their way to it.
	at []change
	// known are the digests of what counts of the objects of a kind that is Observing; listing, those of a list that is being read.
	known, listing map[types.UID]uint64
}

type change struct {
	version int64
	// text is the version in decimal.
	text string
}

// complete reports whether the store has received all objects that existed when it began.
func (c *changes) complete() bool {
	if !c.synced.Load() && c.index.HasSynced() {
		c.synced.Store(true)
	}
	return c.synced.Load()
}

// reached returns the version of the store.
func (c *changes) reached() (int64, bool) {
	version, err := strconv.ParseInt(c.store.LastStoreSyncResourceVersion(), 10, 64)
	return version, err == nil
}

// revision returns the version of the latest change that the store has reached. It reports false while that is not known.
func (c *changes) revision() (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	version, ok := c.reached()
	if !ok {
		return "", false
	}
	c.forget(version)
	if len(c.at) == 0 || c.at[0].version > version {
		return "", false
	}
	return c.at[0].text, true
}

// forget drops the changes that others follow up to a version.
func (c *changes) forget(version int64) {
	for len(c.at) > 1 && c.at[1].version <= version {
		c.at = c.at[1:]
	}
}

func (c *changes) note(version string) {
	n, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		c.at = nil // the revision is not known until the next change
		return
	}
	if version, ok := c.reached(); ok {
		c.forget(version)
	}
	c.at = append(c.at, change{n, version})
}

// listed notes a page of a list, which is a change once it is complete.
func (c *changes) listed(page runtime.Object, first bool) error {
	of, err := meta.ListAccessor(page)
	if err != nil {
		return fmt.Errorf("reading a page of a list: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if first {
		c.listing = map[types.UID]uint64{}
	}
	err = meta.EachListItem(page, func(o runtime.Object) error {
		if object, ok := o.(v1alpha1.Observing); ok {
			c.listing[object.GetUID()] = digest(object)
		}
		return nil
	})
	if err == nil && of.GetContinue() == "" {
		c.known, c.listing = c.listing, nil
		c.note(of.GetResourceVersion())
	}
	return err
}

// saw notes an event of a watch.
func (c *changes) saw(e watch.Event) {
	object, ok := e.Object.(metav1.Object)
	if !ok || e.Type == watch.Bookmark || e.Type == watch.Error {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if observing, ok := object.(v1alpha1.Observing); ok && !c.differs(e.Type, observing) {
		return
	}
	c.note(object.GetResourceVersion())
}

// differs reports whether what counts of an object has changed.
func (c *changes) differs(by watch.EventType, o v1alpha1.Observing) bool {
	uid := o.GetUID()
	if by == watch.Deleted {
		delete(c.known, uid)
		return true
	}
	was, there := c.known[uid]
	is := digest(o)
	c.known[uid] = is
	return !there || was != is
}

// seed makes it impossible to choose two objects of one digest.
var seed = maphash.MakeSeed()

// digest returns a digest of the relevant parts of an object.
func digest(o v1alpha1.Observing) uint64 {
	strip(o) // as the cache does
	counts := o.DeepCopyObject().(v1alpha1.Observing)
	counts.DropObserved()
	counts.SetResourceVersion("")
	text, err := json.Marshal(counts)
	if err != nil {
		panic(fmt.Errorf("writing an object that was read as JSON: %w", err))
	}
	return maphash.Bytes(seed, text)
}

// noting returns a watch that calls see with each event before it passes it on.
func noting(from watch.Interface, see func(watch.Event)) watch.Interface {
	events := make(chan watch.Event)
	to := watch.NewProxyWatcher(events)
	go func() {
		defer close(events)
		defer from.Stop()
		for {
			select {
			case e, ok := <-from.ResultChan():
				if !ok {
					return
				}
				see(e)
				select {
				case events <- e:
				case <-to.StopChan():
					return
				}
			case <-to.StopChan():
				return
			}
		}
	}()
	return to
}
