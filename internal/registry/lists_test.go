package registry

import (
	"slices"
	"testing"
)

func TestLists_areBounded(t *testing.T) {
	l := newLists()
	named := func(n int) tagList { return tagList{tags: slices.Repeat([]string{"v1"}, n)} }
	l.add(1, named(cachedList+1))
	if _, ok := l.get(1); ok {
		t.Error("a long list is remembered")
	}
	for id := int64(1); id <= 30; id++ {
		l.add(id, named(cachedList))
		l.add(id, named(cachedList)) // it counts once
	}
	remembered := 0
	for id := int64(1); id <= 30; id++ {
		if _, ok := l.get(id); ok {
			remembered++
		}
	}
	if remembered != cachedTags/cachedList {
		t.Errorf("%d lists are remembered", remembered)
	}
	if _, ok := l.get(30); !ok {
		t.Error("the newest list is forgotten")
	}
	for id := int64(100); id < 100+2*cachedLists; id++ {
		l.add(id, named(1))
	}
	if l.tags != cachedLists {
		t.Errorf("%d tags are counted", l.tags)
	}
}
