// Package accesslevel keeps the REST ids of the access levels of protections. A level is an element of an atomic list, which every new
// declaration replaces as a whole. Its id is therefore kept separately, in an annotation, by whom the level permits.
package accesslevel

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// Kind is the kind under which the ids are counted.
const Kind = "AccessLevel"

// Allocator hands out ids of a kind that has no objects of its own.
type Allocator interface {
	Next(ctx context.Context, kind string) (int64, error)
}

// Set is one of the three lists of a protection.
type Set string

// The lists of a protection.
const (
	Push      Set = "push"
	Merge     Set = "merge"
	Unprotect Set = "unprotect"
)

// levels returns one of the lists.
func levels(b *v1alpha1.ProtectedBranch, s Set) []v1alpha1.AccessLevel {
	switch s {
	case Push:
		return b.Spec.Push
	case Merge:
		return b.Spec.Merge
	default:
		return b.Spec.Unprotect
	}
}

// IDs are the ids of the levels of one protection.
type IDs map[string]int64

// standIn is the id of a level that is declared only because a list cannot be empty.
const standIn = -1

// Of returns the ids of a protection. It ignores an annotation that another writer has made invalid.
func Of(b *v1alpha1.ProtectedBranch) IDs {
	ids := IDs{}
	if err := json.Unmarshal([]byte(b.Annotations[v1alpha1.AnnotationAccessLevelIDs]), &ids); err != nil {
		return IDs{}
	}
	return ids
}

// Get returns the id of a level, or 0.
func (i IDs) Get(s Set, namespace string, l v1alpha1.AccessLevel) int64 {
	return max(i[key(s, namespace, l)], 0)
}

// StandIn has a level, the only one of its list, stand for a list that was emptied: it has no id, and is not shown.
func (i IDs) StandIn(s Set, namespace string, l v1alpha1.AccessLevel) {
	i[key(s, namespace, l)] = standIn
}

// StandsIn reports whether a level stands for an empty list.
func (i IDs) StandsIn(s Set, namespace string, l v1alpha1.AccessLevel) bool {
	return i[key(s, namespace, l)] == standIn
}

// DropStandIn forgets about a level that stands for an empty list, and reports whether it was one.
func (i IDs) DropStandIn(s Set, namespace string, l v1alpha1.AccessLevel) bool {
	if !i.StandsIn(s, namespace, l) {
		return false
	}
	delete(i, key(s, namespace, l))
	return true
}

// Put gives a level an id.
func (i IDs) Put(s Set, namespace string, l v1alpha1.AccessLevel, id int64) {
	i[key(s, namespace, l)] = id
}

// Write puts the ids of the levels that the protection has into its annotation, after giving one to each that has none and
// stands for itself. It reports whether that changed the object.
func (i IDs) Write(ctx context.Context, a Allocator, b *v1alpha1.ProtectedBranch) (bool, error) {
	now := IDs{}
	for _, set := range []Set{Push, Merge, Unprotect} {
		for _, l := range levels(b, set) {
			k := key(set, b.Namespace, l)
			id := i[k]
			if id == 0 {
				var err error
				if id, err = a.Next(ctx, Kind); err != nil {
					return false, fmt.Errorf("allocating an id for an access level: %w", err)
				}
			}
			now[k] = id
		}
	}
	if maps.Equal(now, Of(b)) {
		return false, nil
	}
	text, err := json.Marshal(now)
	if err != nil {
		return false, fmt.Errorf("writing the ids of access levels: %w", err)
	}
	if b.Annotations == nil {
		b.Annotations = map[string]string{}
	}
	b.Annotations[v1alpha1.AnnotationAccessLevelIDs] = string(text)
	return true, nil
}

// Assign gives an id to each level that has none, and keeps those that the status still shows where the annotation was lost.
func Assign(ctx context.Context, a Allocator, b *v1alpha1.ProtectedBranch) (bool, error) {
	ids := Of(b)
	if len(ids) == 0 {
		ids.restore(Push, b, b.Spec.Push, b.Status.Push)
		ids.restore(Merge, b, b.Spec.Merge, b.Status.Merge)
		ids.restore(Unprotect, b, b.Spec.Unprotect, b.Status.Unprotect)
	}
	return ids.Write(ctx, a, b)
}

// restore takes the ids of a status that was written for the same list.
func (i IDs) restore(s Set, b *v1alpha1.ProtectedBranch, declared []v1alpha1.AccessLevel, shown []v1alpha1.ResolvedAccessLevel) {
	if len(declared) != len(shown) {
		return
	}
	for n, l := range declared {
		if l.Role == shown[n].Role && shown[n].ID != 0 {
			i.Put(s, b.Namespace, l, shown[n].ID)
		}
	}
}

// key identifies a level by what it lets through.
func key(s Set, namespace string, l v1alpha1.AccessLevel) string {
	named := func(what, namespace string, ref v1alpha1.Reference) string {
		k := string(s) + what + catalog.Key(namespace, ref)
		if ref.UID != "" {
			k += "#" + ref.UID
		}
		return k
	}
	switch {
	case l.UserRef != nil:
		return named("/user/", "", *l.UserRef)
	case l.GroupRef != nil:
		return named("/group/", namespace, *l.GroupRef)
	case l.DeployKeyRef != nil:
		return named("/key/", namespace, *l.DeployKeyRef)
	default:
		return string(s) + "/role/" + string(l.Role)
	}
}
