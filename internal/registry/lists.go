package registry

import (
	"sync"
	"time"

	"k8s.io/utils/lru"
)

// tagList is a list of tags that was read at a count of changes.
type tagList struct {
	changes int64
	read    time.Time
	tags    []string
	// newest are the same tags in the order of their images. It is nil until it is needed. If it is settled, it is up to date until the
	// tags change.
	newest  []string
	settled bool
}

// lists remembers lists of tags, by the ids of repositories. It is safe for concurrent use.
type lists struct {
	mu    sync.Mutex
	lists *lru.Cache
	// tags is the number of tags in all lists.
	tags int
}

func newLists() *lists {
	l := &lists{}
	l.lists = lru.NewWithEvictionFunc(cachedLists, func(_ lru.Key, list any) { l.tags -= len(list.(tagList).tags) })
	return l
}

func (l *lists) get(repository int64) (tagList, bool) {
	known, ok := l.lists.Get(repository)
	if !ok {
		return tagList{}, false
	}
	return known.(tagList), true
}

// add remembers a list, unless it is long.
func (l *lists) add(repository int64, list tagList) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lists.Remove(repository)
	if len(list.tags) > cachedList {
		return
	}
	for l.tags+len(list.tags) > cachedTags {
		l.lists.RemoveOldest()
	}
	l.tags += len(list.tags)
	l.lists.Add(repository, list)
}
