package claim

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Register records which claims this process is taking, and which objects wait for one. Only one process takes claims at a time. Its cache
// shows a write only a moment later; until then, the register keeps a second object from taking the same claim. The zero Register is ready
// for use, by several goroutines.
type Register struct {
	mu     sync.Mutex
	taking map[string]types.UID
	// waiting are the names of objects by their kinds.
	waiting map[string]map[string]map[types.NamespacedName]struct{}
}

// Begin reports whether an object may take a claim now, because no other object is taking it.
func (r *Register) Begin(c Claim, taker types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := c.String()
	if by, ok := r.taking[key]; ok {
		return by == taker
	}
	if r.taking == nil {
		r.taking = map[string]types.UID{}
	}
	r.taking[key] = taker
	return true
}

// End says that the cache shows what became of the claims that an object had begun to take.
func (r *Register) End(taker types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, by := range r.taking {
		if by == taker {
			delete(r.taking, key)
		}
	}
}

// Cancel says that an object does not take a claim after all.
func (r *Register) Cancel(c Claim, taker types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if key := c.String(); r.taking[key] == taker {
		delete(r.taking, key)
	}
}

// Wait makes Released return an object of a kind when the claim is free.
func (r *Register) Wait(c Claim, kind string, name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := c.String()
	if r.waiting == nil {
		r.waiting = map[string]map[string]map[types.NamespacedName]struct{}{}
	}
	if r.waiting[key] == nil {
		r.waiting[key] = map[string]map[types.NamespacedName]struct{}{}
	}
	if r.waiting[key][kind] == nil {
		r.waiting[key][kind] = map[types.NamespacedName]struct{}{}
	}
	r.waiting[key][kind][name] = struct{}{}
}

// Released returns, and forgets, the objects of a kind that wait for a claim in canonical form.
func (r *Register) Released(key, kind string) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting := r.waiting[key]
	names := make([]types.NamespacedName, 0, len(waiting[kind]))
	for name := range waiting[kind] {
		names = append(names, name)
	}
	delete(waiting, kind)
	if len(waiting) == 0 {
		delete(r.waiting, key)
	}
	return names
}
